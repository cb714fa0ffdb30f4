# Precompiles headers that many sources begin with: most of the time that a small source takes is its headers'. A source
# is marked with its header and a kind, and the compiler's wrapper makes the header of each kind when the first source
# asks for it; see build/toolchains.py. Clang takes such a header only for sources that are optimised as it is and have
# its macros, so that sources of one kind are those with the same options.

# A header takes as long as it saves two sources.
set(ORTRIM_FEWEST_PRECOMPILED 3)
# Options of single sources that a header serves all the same: they come after it, or only concern machine code.
set(ORTRIM_OWN_OPTIONS "(-include;[^;]*|-fno-tree-vectorize)(;|$)")

# Those of libc++'s sources that take long for their headers; some others define what headers declare.
set(ORTRIM_PRECOMPILED_CXX
  "/(filesystem/[a-z_]+|algorithm|chrono|fstream|future|ios\\.instantiations|iostream|ortrim_locale|ostream|thread)\\.cpp$")

# Says which of the headers in precompiled/ a target's sources begin with.
function(ortrim_header_of target result)
  set(header "")
  if(target MATCHES "^onnxruntime_(framework|graph|lora|optimizer|providers|session|util)$")
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

# Sorts a target's sources by header and kind.
function(ortrim_sort_by_kind target)
  ortrim_header_of(${target} header)
  if(NOT header)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  foreach(source IN LISTS sources)
    if(NOT source MATCHES "\\.(cc|cpp|cxx)$")
      continue()
    endif()
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${folder}" NORMALIZE OUTPUT_VARIABLE path)
    if(header STREQUAL cxx AND NOT path MATCHES "${ORTRIM_PRECOMPILED_CXX}")
      continue()
    endif()
    set(first "")
    if(EXISTS "${path}")
      file(STRINGS "${path}" first REGEX "^#[ \t]*(define|include)" LIMIT_COUNT 1)
    endif()
    set(own "")
    foreach(property IN ITEMS COMPILE_FLAGS COMPILE_OPTIONS COMPILE_DEFINITIONS)
      get_source_file_property(value "${path}" TARGET_DIRECTORY ${target} ${property})
      if(value)
        list(APPEND own "${value}")
      endif()
    endforeach()
    # A precompiled header would not see what a source defines for its headers, and log_times.h goes before those of logs.
    if(first MATCHES "define" OR own MATCHES "log_times\\.h")
      continue()
    endif()
    string(REGEX REPLACE "${ORTRIM_OWN_OPTIONS}" "" own "${own}")
    string(MD5 kind "${own}")
    string(SUBSTRING ${kind} 0 8 kind)
    set_property(GLOBAL APPEND PROPERTY ORTRIM_KINDS ${header}-${kind})
    set_property(GLOBAL APPEND PROPERTY ORTRIM_SOURCES_${header}-${kind} "${target}|${path}")
  endforeach()
endfunction()

function(ortrim_precompile)
  foreach(target IN ITEMS onnxruntime_util onnxruntime_lora) # which read less than their header does
    if(TARGET ${target} AND TARGET onnxruntime_session)
      target_include_directories(${target} PRIVATE "$<TARGET_PROPERTY:onnxruntime_session,INCLUDE_DIRECTORIES>")
    endif()
  endforeach()
  ortrim_each_target("${CMAKE_SOURCE_DIR}" ortrim_sort_by_kind)
  get_property(kinds GLOBAL PROPERTY ORTRIM_KINDS)
  list(REMOVE_DUPLICATES kinds)
  foreach(kind IN LISTS kinds)
    get_property(sources GLOBAL PROPERTY ORTRIM_SOURCES_${kind})
    list(LENGTH sources count)
    if(count LESS ORTRIM_FEWEST_PRECOMPILED)
      continue()
    endif()
    foreach(source IN LISTS sources)
      string(REGEX MATCH "^([^|]*)\\|(.*)$" _ "${source}")
      set_property(SOURCE "${CMAKE_MATCH_2}" TARGET_DIRECTORY ${CMAKE_MATCH_1} APPEND PROPERTY
        COMPILE_DEFINITIONS ORTRIM_PRECOMPILED=${kind})
    endforeach()
  endforeach()
endfunction()
