# Stands where CMake's module of this name is included: what is declared is printed, and nothing is fetched.

function(FetchContent_Declare name)
  cmake_parse_arguments(PARSE_ARGV 1 DECLARED "EXCLUDE_FROM_ALL" "URL" "PATCH_COMMAND;FIND_PACKAGE_ARGS")
  string(TOLOWER "${name}" name)
  set_property(GLOBAL PROPERTY "ortrim-${name}" "${DECLARED_URL}" "${DECLARED_PATCH_COMMAND}")
endfunction()

macro(FetchContent_MakeAvailable)
  foreach(name IN ITEMS ${ARGV})
    string(TOLOWER "${name}" name)
    get_cmake_property(declared "ortrim-${name}")
    list(POP_FRONT declared url)
    list(JOIN declared " " patch)
    execute_process(COMMAND "${CMAKE_COMMAND}" -E echo "${name}\t${url}\t${patch}")
    set(${name}_SOURCE_DIR "${CMAKE_CURRENT_LIST_DIR}/${name}")
    set(${name}_POPULATED TRUE)
  endforeach()
endmacro()

macro(FetchContent_Populate name)
  FetchContent_MakeAvailable(${name})
endmacro()

function(FetchContent_GetProperties)
endfunction()
