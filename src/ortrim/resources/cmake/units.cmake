# Compiles only the units that the link takes. CMake reads this file at upstream's project(), because
# CMAKE_PROJECT_onnxruntime_INCLUDE names it; upstream's own files stay as they are. See
# docs/explanation/how-it-works.md.
#
# ORTRIM_DEPENDENCIES says where the sources of upstream's dependencies are; see sources/sources.py.
# The executor writes ORTRIM_SELECTION, which sets
#   ORTRIM_OMITTED      the sources that are not compiled; what no index knows is
#   ORTRIM_CUT_UNITS    the sources whose code depends on the operator configuration, and, in the same order,
#   ORTRIM_CUT_FOLDERS  the folders that hold each one's own kept_kernels.h, and its type control if it has one
#   ORTRIM_COLD_KERNELS the sources of kernels that the models spend next to no time in; without any, all are hot
#   ORTRIM_HOT_SOURCES  how the paths of hot sources begin, below upstream's own folder
#   ORTRIM_UNUSED_FUNCTIONS  functions of MLAS for weights of few bits that no model reaches; see few_bits.h
#   ORTRIM_LEFT_OUT     what of ortrim's own does not fit this version; see compiling/mechanisms.py
#   ORTRIM_LAID_OUT     ortrim's own sources and headers for the models' convolutions and products
#   ORTRIM_OPERATORS    the names of the models' operators, whatever their domain

set(ORTRIM_SOURCE_FILE [[\.(c|cc|cpp|cxx|m|mm|S|s|asm)$]])

# What link-time optimization leaves alone, because what of it is of use is told by its objects; see compiling/relink.py.
set(ORTRIM_COMPILED_TARGETS onnxruntime_mlas onnx_proto libprotobuf-lite libprotobuf)

# Libraries of kernels, and what calls XNNPACK's and arranges weights for them.
set(ORTRIM_KERNEL_TARGETS "^(onnxruntime_mlas|microkernels-prod|operator-run|packing)$")

# Kernels whose loops have conditions that never change, which -O2 leaves inside and so does not vectorize: they go with
# -O3, for what layer_norm_rows.h leaves to them. All kernels at -O3 are larger, and no faster on the whole.
set(ORTRIM_CONDITIONED_SOURCES "/nn/layer_norm_impl\\.cc$")
# Loops over a tensor's few dimensions, for which vectors only cost: they multiply 64-bit numbers without an instruction
# for it, and read wide what was written narrow a moment before. A transposition of a batch took 1.6 times as long.
set(ORTRIM_SHORT_LOOPS "/(framework/transpose_helper|tensor/concat|tensor/split)\\.cc$")
# Where all kernels of the processor are registered, also as upstream's reduction of operators has copied them.
set(ORTRIM_REGISTERING_SOURCES "/(cpu_execution_provider|cpu_contrib_kernels)\\.cc$")
set(ORTRIM_HOOKS "${CMAKE_CURRENT_LIST_DIR}")

# A dependency leaves its own standard in the cache, which a tree's second configuration would take for upstream's.
unset(CMAKE_CXX_STANDARD CACHE)

include("${ORTRIM_DEPENDENCIES}")
include("${ORTRIM_SELECTION}")
list(JOIN ORTRIM_HOT_SOURCES "|" ORTRIM_HOT_SOURCES)
string(REPLACE "." "\\." ORTRIM_HOT_SOURCES "${ORTRIM_HOT_SOURCES}")
# SafeInt multiplies as __int128 to see an overflow; told that there is none it calls __builtin_umulll_overflow, which takes
# 8 instructions instead of 21 for each dimension of a shape.
add_compile_definitions(SAFEINT_HAS_INT128=0)
if("refuse_sparse.h" IN_LIST ORTRIM_LEFT_OUT)
  set(onnxruntime_DISABLE_SPARSE_TENSORS OFF CACHE BOOL "" FORCE)
endif()
include("${CMAKE_CURRENT_LIST_DIR}/cxx_runtime.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/precompiled.cmake")
if(ORTRIM_APPLE_CROSS)
  include("${CMAKE_CURRENT_LIST_DIR}/apple_cross.cmake")
endif()
if(onnxruntime_USE_XNNPACK)
  include("${CMAKE_CURRENT_LIST_DIR}/xnnpack/xnnpack.cmake")
endif()

# Upstream gives ONNX's own sources options that hang on these two answers before it asks for them. They would come with
# a tree's second configuration, which would compile those sources once more. These are upstream's own questions.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-Wshorten-64-to-32 HAS_SHORTEN_64_TO_32)
check_cxx_compiler_flag(-Wunused-but-set-variable HAS_UNUSED_BUT_SET_VARIABLE)

# What the linker says that it read has compiler_rt.o, which zig may write anew as it links: there would always be work.
set(CMAKE_LINK_DEPENDS_USE_LINKER FALSE)

# musl has no execinfo.h; the one beside this file stands in for it.
if(ORTRIM_MUSL)
  include_directories("${CMAKE_CURRENT_LIST_DIR}")
endif()

# The headers in headers/ stand before upstream's of the same names.
if("messages.cc" IN_LIST ORTRIM_LEFT_OUT)
  set(ORTRIM_MESSAGES OFF)
endif()
if(ORTRIM_MESSAGES)
  include_directories(BEFORE "${CMAKE_CURRENT_LIST_DIR}/headers")
  if(ORTRIM_TERSE)
    add_compile_definitions(ORTRIM_TERSE)
  endif()
endif()

# Takes the sources in ORTRIM_OMITTED out of a static library; its headers and generator expressions stay.
function(ortrim_select_sources target)
  get_target_property(type ${target} TYPE)
  get_target_property(sources ${target} SOURCES)
  if(NOT type MATCHES "^(STATIC|OBJECT)_LIBRARY$" OR NOT sources OR NOT ORTRIM_OMITTED)
    return()
  endif()
  get_target_property(folder ${target} SOURCE_DIR)
  set(selected "")
  foreach(source IN LISTS sources)
    if(source MATCHES "${ORTRIM_SOURCE_FILE}")
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${folder}" NORMALIZE OUTPUT_VARIABLE path)
      if(path IN_LIST ORTRIM_OMITTED)
        # protoc writes a source and its header at once; others include the header of one that is not compiled.
        if(path MATCHES "\\.pb\\.cc$")
          set_source_files_properties("${path}" TARGET_DIRECTORY ${target} PROPERTIES HEADER_FILE_ONLY TRUE)
          list(APPEND selected "${path}")
        endif()
        continue()
      endif()
    endif()
    list(APPEND selected "${source}")
  endforeach()
  # A library that is left without sources is archived all the same, because the link names it; CMake wants a file.
  list(APPEND selected "${CMAKE_CURRENT_FUNCTION_LIST_FILE}")
  set_target_properties(${target} PROPERTIES SOURCES "${selected}" LINKER_LANGUAGE CXX)
endfunction()

function(ortrim_each_target folder call)
  get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    cmake_language(CALL ${call} ${target})
  endforeach()
  get_property(below DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
  foreach(subfolder IN LISTS below)
    ortrim_each_target("${subfolder}" ${call})
  endforeach()
endfunction()

# Returns the full paths of a target's sources in C and C++, but for those behind generator expressions.
function(ortrim_paths_of target result)
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  set(paths "")
  foreach(source IN LISTS sources)
    if(source MATCHES "\\.(c|cc|cpp|cxx)$")
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${folder}" NORMALIZE OUTPUT_VARIABLE path)
      list(APPEND paths "${path}")
    endif()
  endforeach()
  set(${result} "${paths}" PARENT_SCOPE)
endfunction()

# Gives each unit types and kernels of its own, so that a change of another unit's does not compile it again. All of
# upstream's libraries are targets of one folder, so that a source's properties hold for whichever it is of.
function(ortrim_cut)
  foreach(unit folder IN ZIP_LISTS ORTRIM_CUT_UNITS ORTRIM_CUT_FOLDERS)
    set_property(SOURCE "${unit}" TARGET_DIRECTORY onnxruntime_providers APPEND PROPERTY INCLUDE_DIRECTORIES "${folder}")
    set_property(SOURCE "${unit}" TARGET_DIRECTORY onnxruntime_providers APPEND PROPERTY
      COMPILE_OPTIONS -include kept_kernels.h)
  endforeach()
endfunction()

# Optimises each source as the profile wants it, kernels as what is hot; an empty word leaves it to upstream.
function(ortrim_optimize_sources target)
  ortrim_paths_of(${target} paths)
  foreach(path IN LISTS paths)
    set(kind cold)
    if(target MATCHES "${ORTRIM_KERNEL_TARGETS}" OR (path MATCHES "/(${ORTRIM_HOT_SOURCES})" AND NOT path IN_LIST ORTRIM_COLD_KERNELS))
      set(kind hot)
    endif()
    string(TOUPPER ${kind} name)
    separate_arguments(options UNIX_COMMAND "${ORTRIM_${name}}")
    if(path MATCHES "${ORTRIM_CONDITIONED_SOURCES}")
      list(TRANSFORM options REPLACE "^-O2$" "-O3")
    endif()
    if(target MATCHES "${ORTRIM_KERNEL_TARGETS}") # whose loops were written with registers in mind
      list(REMOVE_ITEM options -fno-unroll-loops)
    endif()
    if(kind STREQUAL hot AND path MATCHES "${ORTRIM_SHORT_LOOPS}")
      list(APPEND options -fno-tree-vectorize)
    endif()
    if(ORTRIM_LINK_TIME AND NOT target IN_LIST ORTRIM_COMPILED_TARGETS)
      list(APPEND options -flto)
    endif()
    if(ORTRIM_WITHOUT_FLOAT16 AND path MATCHES "${ORTRIM_REGISTERING_SOURCES}")
      set_property(SOURCE "${path}" TARGET_DIRECTORY ${target} APPEND PROPERTY INCLUDE_DIRECTORIES "${ORTRIM_HOOKS}")
      list(APPEND options -include without_float16.h)
    endif()
    set_property(SOURCE "${path}" TARGET_DIRECTORY ${target} APPEND PROPERTY COMPILE_OPTIONS ${options})
  endforeach()
endfunction()

# Includes a header of ortrim's ahead of a target's sources.
function(ortrim_include_ahead target header)
  set_property(SOURCE ${ARGN} TARGET_DIRECTORY ${target} APPEND PROPERTY INCLUDE_DIRECTORIES "${ORTRIM_HOOKS}")
  set_property(SOURCE ${ARGN} TARGET_DIRECTORY ${target} APPEND PROPERTY COMPILE_OPTIONS -include ${header})
endfunction()

# Lets a library without sparse tensors refuse a model that has them; see refuse_sparse.h.
function(ortrim_refuse_sparse)
  cmake_path(SET source NORMALIZE "${CMAKE_SOURCE_DIR}/../onnxruntime/core/graph/graph.cc")
  file(READ "${source}" text)
  string(FIND "${text}" "auto fbs_initializers = fbs_graph.initializers();" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "refuse_sparse.h does not fit this version of ${source}")
  endif()
  ortrim_include_ahead(onnxruntime_graph refuse_sparse.h "${source}")
endfunction()

# Includes a header of ortrim's ahead of one of upstream's sources, unless the two do not fit; each header says what for.
function(ortrim_hook target header name)
  if(NOT header IN_LIST ORTRIM_LEFT_OUT)
    cmake_path(SET source NORMALIZE "${CMAKE_SOURCE_DIR}/../onnxruntime/${name}")
    ortrim_include_ahead(${target} ${header} "${source}")
  endif()
endfunction()

# Lets log lines have their time without std::format; see log_times.h.
function(ortrim_write_log_times)
  get_target_property(sources onnxruntime_common SOURCES)
  list(FILTER sources INCLUDE REGEX "/(ostream_sink\\.cc|apple_log_sink\\.(mm|cc))$")
  ortrim_include_ahead(onnxruntime_common log_times.h ${sources})
endfunction()

# Adds a source that reads the headers of ONNX Runtime's session, and runs seldom.
function(ortrim_add_source name)
  set(source "${ORTRIM_HOOKS}/${name}")
  separate_arguments(options UNIX_COMMAND "${ORTRIM_COLD}")
  target_sources(onnxruntime PRIVATE "${source}")
  set_property(SOURCE "${source}" TARGET_DIRECTORY onnxruntime APPEND PROPERTY COMPILE_OPTIONS ${options})
  set_property(SOURCE "${source}" TARGET_DIRECTORY onnxruntime APPEND PROPERTY
    INCLUDE_DIRECTORIES "$<TARGET_PROPERTY:onnxruntime_session,INCLUDE_DIRECTORIES>")
endfunction()

# Keeps small blocks of memory from one inference to the next; see kept_blocks.cc.
function(ortrim_keep_blocks)
  ortrim_add_source(kept_blocks.cc)
  separate_arguments(options UNIX_COMMAND "${ORTRIM_HOT}")
  set_property(SOURCE "${ORTRIM_HOOKS}/kept_blocks.cc" TARGET_DIRECTORY onnxruntime APPEND PROPERTY
    COMPILE_OPTIONS ${options})
  set_property(SOURCE "${ORTRIM_HOOKS}/c_api.cc" TARGET_DIRECTORY onnxruntime APPEND PROPERTY
    COMPILE_DEFINITIONS ORTRIM_KEEPS_BLOCKS)
  if(NOT "room_arena.h" IN_LIST ORTRIM_LEFT_OUT)
    cmake_path(SET source NORMALIZE "${CMAKE_SOURCE_DIR}/../onnxruntime/core/framework/allocator_utils.cc")
    ortrim_include_ahead(onnxruntime_framework room_arena.h "${source}")
  endif()
endfunction()

# Hands applications a table of C functions of ours; see c_api.cc.
function(ortrim_keep_api)
  cmake_path(SET source NORMALIZE "${CMAKE_SOURCE_DIR}/../onnxruntime/core/session/onnxruntime_c_api.cc")
  if(APPLE) # where not every linker knows of weak definitions that yield
    set_property(SOURCE "${source}" TARGET_DIRECTORY onnxruntime_session APPEND PROPERTY
      COMPILE_DEFINITIONS OrtGetApiBase=ortrim_whole_api)
  else()
    ortrim_include_ahead(onnxruntime_session yield_api.h "${source}")
  endif()
  ortrim_add_source(c_api.cc)
  if(ORTRIM_KEEPS_BLOCKS)
    ortrim_keep_blocks()
  endif()
endfunction()

# Adds a source that reads MLAS's own headers; gives MLAS the tables of convolutions that minimal builds go without.
function(ortrim_widen name)
  set(source "${ORTRIM_HOOKS}/${name}")
  cmake_path(SET mlas NORMALIZE "${CMAKE_SOURCE_DIR}/../onnxruntime/core/mlas/lib")
  if(NOT EXISTS "${mlas}/mlasi.h")
    if(name MATCHES "avx512_nchwc|neon_convolutions|winograd_avx2")
      message(FATAL_ERROR "no MLAS in ${mlas}: models with NCHWc layout cannot run without ${name}")
    endif()
    message(STATUS "no MLAS in ${mlas}: it is given no ${name}")
    return()
  endif()
  target_sources(onnxruntime PRIVATE "${source}")
  if(name MATCHES "neon_convolutions|winograd_avx2") # as MLAS is compiled, of which the first has snchwc.cpp inside
    separate_arguments(options UNIX_COMMAND "${ORTRIM_HOT}")
    set_property(SOURCE "${source}" TARGET_DIRECTORY onnxruntime APPEND PROPERTY COMPILE_OPTIONS ${options})
  endif()
  set_property(SOURCE "${source}" TARGET_DIRECTORY onnxruntime APPEND PROPERTY
    INCLUDE_DIRECTORIES "$<TARGET_PROPERTY:onnxruntime_mlas,INCLUDE_DIRECTORIES>")
  set_property(SOURCE "${source}" TARGET_DIRECTORY onnxruntime APPEND PROPERTY
    COMPILE_DEFINITIONS "$<TARGET_PROPERTY:onnxruntime_mlas,COMPILE_DEFINITIONS>")
  if(name STREQUAL "avx512_kernels.cc")
    set_property(SOURCE "${mlas}/convsym.cpp" TARGET_DIRECTORY onnxruntime_mlas APPEND PROPERTY
      COMPILE_OPTIONS -UORT_MINIMAL_BUILD)
  endif()
endfunction()

function(ortrim_apply)
  if(onnxruntime_USE_XNNPACK)
    ortrim_trim_xnnpack()
  endif()
  ortrim_each_target("${CMAKE_SOURCE_DIR}" ortrim_select_sources)
  ortrim_cut()
  if(ORTRIM_APPLE_CROSS)
    ortrim_cross_build_for_apple()
  endif()
  if(ORTRIM_RUNTIME AND TARGET onnxruntime)
    ortrim_add_runtime()
  endif()
  ortrim_each_target("${CMAKE_SOURCE_DIR}" ortrim_optimize_sources)
  if(ORTRIM_COLD AND TARGET onnxruntime_common)
    ortrim_write_log_times()
  endif()
  if(ORTRIM_API AND TARGET onnxruntime AND NOT ORTRIM_LEFT_OUT MATCHES "(c_api|kept_blocks)\\.cc")
    ortrim_keep_api()
  endif()
  if(ORTRIM_MESSAGES AND TARGET onnxruntime)
    ortrim_add_source(messages.cc)
  endif()
  list(APPEND ORTRIM_SURROGATES ${ORTRIM_LAID_OUT})
  list(FILTER ORTRIM_SURROGATES EXCLUDE REGEX "\\.h$")
  if(ORTRIM_LEFT_OUT)
    list(REMOVE_ITEM ORTRIM_SURROGATES ${ORTRIM_LEFT_OUT})
  endif()
  if(ORTRIM_SURROGATES AND TARGET onnxruntime)
    foreach(name IN ITEMS avx512_kernels.cc avx512_convolutions.cc avx512_nchwc.cc neon_convolutions.cc winograd_avx2.cc)
      if(name IN_LIST ORTRIM_SURROGATES)
        list(REMOVE_ITEM ORTRIM_SURROGATES "${name}")
        ortrim_widen("${name}")
      endif()
    endforeach()
    set(cpuid "${CMAKE_SOURCE_DIR}/../onnxruntime/core/common/cpuid_info.cc")
    set(asks "")
    if(EXISTS "${cpuid}")
      file(STRINGS "${cpuid}" asks REGEX "__builtin_cpu_supports")
    endif()
    if(asks AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
      list(APPEND ORTRIM_SURROGATES cpu_features.c)
    endif()
    list(TRANSFORM ORTRIM_SURROGATES PREPEND "${ORTRIM_HOOKS}/")
    target_sources(onnxruntime PRIVATE ${ORTRIM_SURROGATES})
    set_property(TARGET onnxruntime APPEND PROPERTY LINK_DEPENDS "${ORTRIM_HOOKS}/unreached.ld")
  endif()
  if(ORTRIM_FRAMES AND TARGET onnxruntime) # upstream has it stripped of all, before anything could be read of it
    set_target_properties(onnxruntime PROPERTIES LINK_FLAGS_MINSIZEREL "")
  endif()
  if(onnxruntime_DISABLE_SPARSE_TENSORS AND NOT "refuse_sparse.h" IN_LIST ORTRIM_LEFT_OUT)
    ortrim_refuse_sparse()
  endif()
  if(ORTRIM_UNUSED_FUNCTIONS)
    file(GLOB sources "${CMAKE_SOURCE_DIR}/../onnxruntime/core/mlas/lib/sqnbitgemm_kernel_avx*.cpp")
    ortrim_include_ahead(onnxruntime_mlas few_bits.h ${sources})
    list(JOIN ORTRIM_UNUSED_FUNCTIONS "," unused)
    set_property(SOURCE ${sources} TARGET_DIRECTORY onnxruntime_mlas APPEND PROPERTY
      COMPILE_DEFINITIONS "ORTRIM_UNUSED_FUNCTIONS=${unused}")
  endif()
  if(ORTRIM_COLD AND TARGET onnxruntime_framework)
    ortrim_hook(onnxruntime_framework same_types.h core/framework/allocation_planner.cc)
    ortrim_hook(onnxruntime_framework weights_hash.h core/framework/prepacked_weights.cc)
  endif()
  if("depthwise_convolutions.h" IN_LIST ORTRIM_LAID_OUT AND TARGET onnxruntime_providers)
    ortrim_hook(onnxruntime_providers depthwise_convolutions.h core/providers/cpu/nn/conv.cc)
  endif()
  if(ORTRIM_HOT MATCHES "^-O[23]" AND TARGET onnxruntime_providers)
    ortrim_hook(onnxruntime_providers span_loops.h core/providers/cpu/math/element_wise_ops.cc)
    ortrim_hook(onnxruntime_providers direct_convolutions.h core/providers/cpu/nn/conv.cc)
    ortrim_hook(onnxruntime_providers direct_convolutions.h contrib_ops/cpu/fused_conv.cc)
    ortrim_hook(onnxruntime_providers one_row_lstm.h core/providers/cpu/rnn/lstm_base.cc)
    ortrim_hook(onnxruntime_providers one_row_gru.h core/providers/cpu/rnn/deep_cpu_gru.cc)
    ortrim_hook(onnxruntime_providers byte_softmax.h contrib_ops/cpu/quantization/qlinear_softmax.cc)
    # A sum in another order, rounded to an integer, can be another one: where operators round, upstream normalizes.
    if(NOT ORTRIM_OPERATORS MATCHES "(^|;)(Q[A-Z]|[A-Za-z]*(Quantize|Integer|NBits))")
      ortrim_hook(onnxruntime_providers layer_norm_rows.h core/providers/cpu/nn/layer_norm_impl.cc)
      ortrim_hook(onnxruntime_providers skip_layer_norm_rows.h contrib_ops/cpu/skip_layer_norm.cc)
    endif()
    ortrim_hook(onnxruntime_mlas one_row.h core/mlas/lib/sgemm.cpp)
    if("four_bits.h" IN_LIST ORTRIM_LAID_OUT)
      ortrim_hook(onnxruntime_mlas four_bits.h core/mlas/lib/sqnbitgemm_kernel_neon_int8.cpp)
    endif()
    if("winograd_filters.h" IN_LIST ORTRIM_LAID_OUT)
      ortrim_hook(onnxruntime_providers winograd_filters.h contrib_ops/cpu/nchwc_ops.cc)
    endif()
    if("hard_swish.h" IN_LIST ORTRIM_LAID_OUT) # behind others of the same sources
      ortrim_hook(onnxruntime_providers hard_swish.h core/providers/cpu/activation/activations.cc)
      ortrim_hook(onnxruntime_providers hard_swish.h core/providers/cpu/math/element_wise_ops.cc)
    endif()
  endif()
  if(ORTRIM_PRECOMPILED)
    ortrim_precompile()
  endif()
endfunction()

cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL ortrim_apply)
