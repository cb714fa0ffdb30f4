# Evaluates the dependencies that upstream's CMake files declare for a target, as a script: no compiler is tried and
# nothing is fetched. Printed is a line for each: name, address, command that patches it, with tabs between.
#
#   cmake -DUPSTREAM=<onnxruntime/cmake> -DSYSTEM=<CMAKE_SYSTEM_NAME> -DPROCESSOR=<CMAKE_SYSTEM_PROCESSOR> -P <this file>

cmake_minimum_required(VERSION 3.28)

# What a script may not say, and what looks for programs: it does nothing here.
foreach(command IN ITEMS
    add_compile_definitions add_compile_options add_custom_command add_custom_target add_definitions add_dependencies
    add_executable add_library add_link_options add_subdirectory enable_language export find_package include_directories
    install link_directories link_libraries set_source_files_properties set_target_properties source_group
    target_compile_definitions target_compile_features target_compile_options target_include_directories
    target_link_directories target_link_libraries target_link_options target_precompile_headers target_sources try_compile)
  function(${command})
  endfunction()
endforeach()

function(get_property name)
  set(${name} "" PARENT_SCOPE)
endfunction()

function(get_target_property name)
  set(${name} "" PARENT_SCOPE)
endfunction()

# Upstream ends where a file is missing that a dependency would have brought.
function(message)
endfunction()

set(CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}" "${UPSTREAM}/external")
set(PROJECT_SOURCE_DIR "${UPSTREAM}")
set(CMAKE_SOURCE_DIR "${UPSTREAM}")
set(REPO_ROOT "${UPSTREAM}/..")
set(Patch_FOUND TRUE)
set(Patch_EXECUTABLE patch)
set(ONNX_CUSTOM_PROTOC_EXECUTABLE "${CMAKE_COMMAND}")
set(CMAKE_SYSTEM_NAME "${SYSTEM}")
set(CMAKE_SYSTEM_PROCESSOR "${PROCESSOR}")
set(onnxruntime_target_platform "${PROCESSOR}")
set(onnxruntime_MINIMAL_BUILD ON)
foreach(feature IN ITEMS ENABLE_CPUINFO USE_COREML USE_KLEIDIAI USE_XNNPACK)
  set(onnxruntime_${feature} ON)
endforeach()
set(UNIX TRUE)
if(SYSTEM STREQUAL "Android")
  set(ANDROID TRUE)
elseif(SYSTEM STREQUAL "Linux")
  set(LINUX TRUE)
else()
  set(APPLE TRUE)
endif()
if(SYSTEM STREQUAL "iOS")
  set(IOS TRUE)
endif()

include("${UPSTREAM}/external/onnxruntime_external_deps.cmake")
