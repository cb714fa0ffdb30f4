# Precompiles headers that many sources begin with: most of the time that a small source takes is its headers'. A source
# is marked with its header and a kind, and the compiler's wrapper makes the header of each kind when the first source
# asks for it; see compiling/toolchains.py. Clang takes such a header only for sources that are optimised as it is, so that
# sources of one kind are those with the same options; of their macros it only refuses those that contradict it.

# Options of single sources that a header serves all the same: they come after it, or only concern machine code.
set(ORTRIM_OWN_OPTIONS "(-include;[^;]*|-fno-tree-vectorize)(;|$)")
# What many of MLAS's sources are compiled with. Of other flags there are too few sources: a header takes as long as it
# saves two.
set(ORTRIM_PRECOMPILED_FLAGS "^(-mavx2.*)?$")

# Those of libc++'s sources that take long for their headers; some others define what headers declare.
set(ORTRIM_PRECOMPILED_CXX
  "/(filesystem/[a-z_]+|algorithm|chrono|fstream|future|ios\\.instantiations|iostream|ortrim_locale|ostream|thread)\\.cpp$")

# Says which of the headers in precompiled/ a target's sources begin with.
function(ortrim_header_of target result)
  set(header "")
  if(target MATCHES "^onnxruntime_(framework|graph|optimizer|providers|session|util)$")
    set(header onnxruntime)
  elseif(target MATCHES "^onnxruntime_(common|mlas)$")
    set(header ${CMAKE_MATCH_1})
  elseif(target MATCHES "^libprotobuf(-lite)?$")
    set(header protobuf)
  elseif(target STREQUAL ortrim_cxx)
    set(header cxx)
  endif()
  set(${result} "${header}" PARENT_SCOPE)
endfunction()

# Lets a source of a kind wait for its header, so that two jobs do not begin with making the same one: for the object of an
# empty source. That is always of the same target, or a tree's next model would compile what waits once more.
function(ortrim_wait_for_header kind target path flags options)
  set(maker ${target})
  if(kind MATCHES "^onnxruntime-")
    set(maker onnxruntime_session)
  endif()
  get_target_property(folder ${maker} BINARY_DIR)
  get_target_property(sources ${maker} SOURCES)
  set(first "${folder}/ortrim-${kind}.cc")
  if(NOT first IN_LIST sources)
    if(NOT EXISTS "${first}")
      file(WRITE "${first}" "")
    endif()
    set_property(TARGET ${maker} APPEND PROPERTY SOURCES "${first}")
    set_source_files_properties("${first}" TARGET_DIRECTORY ${maker} PROPERTIES
      COMPILE_FLAGS "${flags}" COMPILE_OPTIONS "${options}" COMPILE_DEFINITIONS ORTRIM_PRECOMPILED=${kind})
  endif()
  set_property(SOURCE "${path}" TARGET_DIRECTORY ${target} APPEND PROPERTY
    OBJECT_DEPENDS "${folder}/CMakeFiles/${maker}.dir/ortrim-${kind}.cc.o")
endfunction()

# Marks a target's sources with their header and kind.
function(ortrim_mark_sources target)
  ortrim_header_of(${target} header)
  if(NOT header)
    return()
  endif()
  ortrim_paths_of(${target} paths)
  list(FILTER paths EXCLUDE REGEX "\\.c$")
  foreach(path IN LISTS paths)
    if(header STREQUAL cxx AND NOT path MATCHES "${ORTRIM_PRECOMPILED_CXX}")
      continue()
    endif()
    set(first "")
    if(EXISTS "${path}")
      file(STRINGS "${path}" first REGEX "^#[ \t]*(define|include)" LIMIT_COUNT 1)
    endif()
    get_source_file_property(flags "${path}" TARGET_DIRECTORY ${target} COMPILE_FLAGS)
    get_source_file_property(options "${path}" TARGET_DIRECTORY ${target} COMPILE_OPTIONS)
    get_source_file_property(macros "${path}" TARGET_DIRECTORY ${target} COMPILE_DEFINITIONS)
    string(REGEX REPLACE "NOTFOUND" "" flags "${flags}")
    # A precompiled header would not see what a source defines for its headers, and log_times.h goes before those of logs.
    if(first MATCHES "define" OR macros OR options MATCHES "log_times\\.h|-U" OR NOT flags MATCHES "${ORTRIM_PRECOMPILED_FLAGS}"
        OR path MATCHES "${ORTRIM_CONDITIONED_SOURCES}")
      continue()
    endif()
    string(REGEX REPLACE "${ORTRIM_OWN_OPTIONS}" "" options "${options}")
    string(REGEX REPLACE "NOTFOUND|;$" "" options "${options}")
    string(MD5 kind "${flags} ${options}")
    string(SUBSTRING ${kind} 0 8 kind)
    set_property(SOURCE "${path}" TARGET_DIRECTORY ${target} APPEND PROPERTY
      COMPILE_DEFINITIONS ORTRIM_PRECOMPILED=${header}-${kind})
    ortrim_wait_for_header(${header}-${kind} ${target} "${path}" "${flags}" "${options}")
  endforeach()
endfunction()

function(ortrim_precompile)
  # It reads less than its header does.
  if(TARGET onnxruntime_util AND TARGET onnxruntime_session)
    target_include_directories(onnxruntime_util PRIVATE "$<TARGET_PROPERTY:onnxruntime_session,INCLUDE_DIRECTORIES>")
  endif()
  ortrim_each_target("${CMAKE_SOURCE_DIR}" ortrim_mark_sources)
endfunction()
