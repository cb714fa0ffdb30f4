# Builds for Apple's systems on another host, where there is nothing of Apple's but what zig carries: the headers of the C
# library.

# Upstream compiles for these as C++20, and CMake scans that for modules with a program that zig has not. Upstream has no
# modules. CMake's own test compilations are told, too: each of them would fail.
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CMAKE_CXX_SCAN_FOR_MODULES)

# Upstream includes this header of macOS, which zig has not, and on a Mac calls nothing of it.
set(ORTRIM_HEADERS "${CMAKE_BINARY_DIR}/ortrim_apple_headers")
if(NOT EXISTS "${ORTRIM_HEADERS}/sys/syscall.h")
  file(WRITE "${ORTRIM_HEADERS}/sys/syscall.h" "")
endif()
# abseil asks CoreFoundation for a Mac's own time zone.
file(MAKE_DIRECTORY "${ORTRIM_HEADERS}/CoreFoundation")
file(COPY_FILE "${CMAKE_CURRENT_LIST_DIR}/apple_time_zone.h" "${ORTRIM_HEADERS}/CoreFoundation/CFTimeZone.h"
     ONLY_IF_DIFFERENT)
include_directories(SYSTEM "${ORTRIM_HEADERS}")

# ONNX Runtime asks the library cpuinfo for what a processor has; see apple_cpu_features.h.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "arm64" AND NOT onnxruntime_ENABLE_CPUINFO)
  set(ORTRIM_ASKS_SYSTEM ON)
  file(TOUCH "${ORTRIM_HEADERS}/cpuinfo.h")
endif()

# Takes a target's words for the linker away that name a framework of Apple's.
function(ortrim_link_no_frameworks target)
  foreach(property IN ITEMS LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
    get_target_property(libraries ${target} ${property})
    if(libraries MATCHES "-framework")
      list(FILTER libraries EXCLUDE REGEX "-framework")
      set_target_properties(${target} PROPERTIES ${property} "${libraries}")
    endif()
  endforeach()
endfunction()

# Takes the sources of a target away that need a framework, and gives it one in their place.
function(ortrim_replace_sources target pattern)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources EXCLUDE REGEX "${pattern}")
  list(APPEND sources ${ARGN})
  set_target_properties(${target} PROPERTIES SOURCES "${sources}")
endfunction()

# Leaves Apple's frameworks out, and adds what has to come before zig's C++ library: operators that are not offered to the
# whole program, as its own are.
function(ortrim_cross_build_for_apple)
  ortrim_each_target("${CMAKE_SOURCE_DIR}" ortrim_link_no_frameworks)
  # What writes log lines asks for Foundation, and has a stand-in.
  ortrim_replace_sources(onnxruntime_common [[\.mm$]] "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/apple_log_sink.cc")
  if(ORTRIM_ASKS_SYSTEM)
    cmake_path(SET source NORMALIZE "${CMAKE_SOURCE_DIR}/../onnxruntime/core/common/cpuid_info.cc")
    ortrim_include_ahead(onnxruntime_common apple_cpu_features.h "${source}")
  endif()
  set(operators "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/apple_new.cc")
  target_sources(onnxruntime PRIVATE "${operators}")
  set_source_files_properties("${operators}" TARGET_DIRECTORY onnxruntime
                              PROPERTIES COMPILE_OPTIONS -fvisibility-global-new-delete=force-hidden)
  # CMake can call a library after its file alone; without a name of CMake's the file is called after no version.
  set_target_properties(onnxruntime PROPERTIES NO_SONAME ON)
  target_link_options(onnxruntime PRIVATE "SHELL:-install_name ${ORTRIM_INSTALL_NAME}")
endfunction()
