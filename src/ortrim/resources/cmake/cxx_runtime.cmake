# The C++ library for a library without exceptions, compiled from the toolchain's own sources. What the toolchain links by
# itself can throw and print every locale, which makes a fifth of a small library: see docs/guides/size.md.
#
# ORTRIM_RUNTIME is the folder that holds libcxx and libcxxabi. Wide characters are left out of these files alone: the
# headers that everything else is compiled with stay as they are.

# Nothing outside of the library meets its C++ library, which so takes the newer and smaller of its two forms.
if(ORTRIM_RUNTIME)
  set(options -U_LIBCPP_ABI_VERSION -D_LIBCPP_ABI_VERSION=2)
  # Vtables of offsets, which need no relocations; 32-bit ARM and x86 have none for them, and Macs what their loader reads.
  if(CMAKE_SIZEOF_VOID_P EQUAL 8 AND NOT ORTRIM_APPLE_CROSS)
    list(APPEND options -fexperimental-relative-c++-abi-vtables)
  endif()
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${options}>")
endif()

# What a locale has that nothing here asks for: money, messages, the order of words, and the reading of dates.
set(ORTRIM_UNUSED_FACETS "install\\(&make<[^;]*(collate|money|messages|time_get)[^;]*;")

set(ORTRIM_RUNTIME_SOURCES
  algorithm call_once charconv chrono condition_variable condition_variable_destructor error_category exception
  filesystem/directory_entry filesystem/directory_iterator filesystem/filesystem_clock filesystem/filesystem_error
  filesystem/operations filesystem/path fstream functional future hash ios ios.instantiations iostream locale memory
  mutex mutex_destructor new new_handler new_helpers optional ostream random ryu/d2fixed ryu/d2s ryu/f2s shared_mutex
  stdexcept string system_error thread typeinfo variant vector verbose_abort)
set(ORTRIM_RUNTIME_ABI_SOURCES
  abort_message cxa_aux_runtime cxa_default_handlers cxa_guard cxa_handlers cxa_noexception cxa_thread_atexit
  cxa_virtual stdlib_exception stdlib_new_delete stdlib_stdexcept stdlib_typeinfo)

function(ortrim_add_runtime)
  list(REMOVE_ITEM ORTRIM_RUNTIME_SOURCES locale)
  list(TRANSFORM ORTRIM_RUNTIME_SOURCES REPLACE "(.+)" "${ORTRIM_RUNTIME}/libcxx/src/\\1.cpp")
  file(READ "${ORTRIM_RUNTIME}/libcxx/src/locale.cpp" locale)
  string(REGEX REPLACE "${ORTRIM_UNUSED_FACETS}" "" locale "${locale}")
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/ortrim_locale.cpp" CONTENT "${locale}" @ONLY NEWLINE_STYLE UNIX)
  list(APPEND ORTRIM_RUNTIME_SOURCES "${CMAKE_BINARY_DIR}/ortrim_locale.cpp")
  list(TRANSFORM ORTRIM_RUNTIME_ABI_SOURCES REPLACE "(.+)" "${ORTRIM_RUNTIME}/libcxxabi/src/\\1.cpp")
  add_library(ortrim_cxx STATIC ${ORTRIM_RUNTIME_SOURCES} ${ORTRIM_RUNTIME_ABI_SOURCES})
  set_target_properties(ortrim_cxx PROPERTIES CXX_STANDARD 23 CXX_SCAN_FOR_MODULES OFF POSITION_INDEPENDENT_CODE ON INCLUDE_DIRECTORIES "")
  target_include_directories(ortrim_cxx PRIVATE
    "${ORTRIM_RUNTIME}/libcxx/src" "${ORTRIM_RUNTIME}/libcxx" "${ORTRIM_RUNTIME}/libcxxabi/include"
    "${ORTRIM_RUNTIME}/libcxxabi/src" "${ORTRIM_RUNTIME}/libcxx/include" "${ORTRIM_RUNTIME}/libcxx/libc")
  target_compile_definitions(ortrim_cxx PRIVATE
    _LIBCPP_BUILDING_LIBRARY LIBCXX_BUILDING_LIBCXXABI _LIBCXXABI_BUILDING_LIBRARY)
  target_compile_options(ortrim_cxx PRIVATE
    "-ffile-prefix-map=${ORTRIM_RUNTIME}=."
    -w -fno-exceptions -fno-rtti -fvisibility=hidden -fvisibility-inlines-hidden
    -U_LIBCPP_HAS_WIDE_CHARACTERS -D_LIBCPP_HAS_WIDE_CHARACTERS=0)
  target_link_libraries(onnxruntime PRIVATE ortrim_cxx)
endfunction()
