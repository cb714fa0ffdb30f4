# Compiles only the units that the link takes. CMake reads this file at upstream's project(), because
# CMAKE_PROJECT_onnxruntime_INCLUDE names it; upstream's own files stay as they are. See docs/build-time.md.
#
# The executor writes ORTRIM_SELECTION, which sets
#   ORTRIM_UNITS        the sources to compile; when it is empty, all of them are
#   ORTRIM_TYPED_UNITS  the sources whose kernels depend on the operator configuration's types, and, in the same order,
#   ORTRIM_TYPE_FOLDERS the folders that hold each one's own op_kernel_type_control_overrides.inc

set(ORTRIM_SOURCE_FILE [[\.(c|cc|cpp|cxx|m|mm|S|s|asm)$]])
set(ORTRIM_PRECOMPILED_TARGETS
  onnxruntime_framework onnxruntime_graph onnxruntime_optimizer onnxruntime_providers onnxruntime_session)

include("${ORTRIM_SELECTION}")

# Upstream gives ONNX's own sources options that hang on these two answers before it asks for them. They would come with
# a tree's second configuration, which would compile those sources once more. These are upstream's own questions.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-Wshorten-64-to-32 HAS_SHORTEN_64_TO_32)
check_cxx_compiler_flag(-Wunused-but-set-variable HAS_UNUSED_BUT_SET_VARIABLE)

# musl has no execinfo.h; the one beside this file stands in for it.
if(ORTRIM_MUSL)
  include_directories("${CMAKE_CURRENT_LIST_DIR}")
endif()

# Leaves a static library those of its sources that are in ORTRIM_UNITS; its headers and generator expressions stay.
function(ortrim_select_sources target)
  get_target_property(type ${target} TYPE)
  get_target_property(sources ${target} SOURCES)
  if(NOT type MATCHES "^(STATIC|OBJECT)_LIBRARY$" OR NOT sources OR NOT ORTRIM_UNITS)
    return()
  endif()
  get_target_property(folder ${target} SOURCE_DIR)
  set(selected "")
  foreach(source IN LISTS sources)
    if(source MATCHES "${ORTRIM_SOURCE_FILE}")
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${folder}" NORMALIZE OUTPUT_VARIABLE path)
      if(NOT path IN_LIST ORTRIM_UNITS)
        continue()
      endif()
    endif()
    list(APPEND selected "${source}")
  endforeach()
  # A library that is left without sources is archived all the same, because the link names it; CMake wants a file.
  list(APPEND selected "${CMAKE_CURRENT_FUNCTION_LIST_FILE}")
  set_target_properties(${target} PROPERTIES SOURCES "${selected}" LINKER_LANGUAGE CXX)
endfunction()

function(ortrim_select_in folder)
  get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    ortrim_select_sources(${target})
  endforeach()
  get_property(below DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
  foreach(subfolder IN LISTS below)
    ortrim_select_in("${subfolder}")
  endforeach()
endfunction()

# Gives each unit a type control of its own, so that a change of another unit's types does not compile it again.
function(ortrim_give_types)
  foreach(unit folder IN ZIP_LISTS ORTRIM_TYPED_UNITS ORTRIM_TYPE_FOLDERS)
    set_property(SOURCE "${unit}" TARGET_DIRECTORY onnxruntime_providers APPEND PROPERTY INCLUDE_DIRECTORIES "${folder}")
  endforeach()
endfunction()

# Marks what the compiler's wrapper compiles with the precompiled header.
function(ortrim_mark_precompiled)
  foreach(target IN LISTS ORTRIM_PRECOMPILED_TARGETS)
    if(TARGET ${target})
      target_compile_definitions(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:ORTRIM_PRECOMPILED>)
    endif()
  endforeach()
endfunction()

function(ortrim_apply)
  ortrim_select_in("${CMAKE_SOURCE_DIR}")
  ortrim_give_types()
  if(ORTRIM_PRECOMPILED)
    ortrim_mark_precompiled()
  endif()
endfunction()

cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL ortrim_apply)
