# Compiles XNNPACK for the operators of the models, and without what its processors' choice would have of cpuinfo and of
# KleidiAI. units.cmake includes it where the library has that execution provider.
#   ORTRIM_OPERATORS  the names of the models' operators, whatever their domain

# What the provider takes of a model, and what it makes of several nodes, which it cannot here; see kernels.h.
set(ORTRIM_XNNPACK_OPERATORS AveragePool Conv ConvTranspose Gemm MatMul MaxPool QLinearConv Resize Softmax)
set(ORTRIM_XNNPACK_FUSED QLinearAveragePool QLinearConvTranspose QLinearSoftmax)

# The microkernels of floats that these operators take. XNNPACK's tables name all others too, in functions that the link
# then drops, and a linker asks for nothing that such a function names.
string(CONCAT ORTRIM_FLOAT_KERNELS
  "src/(tables/|xx-(copy|fill|pad)/|x32-packw/|f32-vbinary/gen/f32-vmulc?-|f32-rminmax/gen/f32-rmax-|"
  "f32-(avgpool|dwconv|gemm|ibilinear|igemm|maxpool|pavgpool|raddstoreexpminusmax|vmulcaddc)/)")

# Kernels of few processors and for numbers that the provider has no use for.
foreach(kernels IN ITEMS
    ARM_BF16 ARM_I8MM ARM_SME ARM_SME2 AVX256SKX AVX256VNNI AVX256VNNIGFNI AVX512AMX AVX512FP16 AVX512VBMI
    AVX512VNNIGFNI AVXVNNIINT8 KLEIDIAI)
  set(XNNPACK_ENABLE_${kernels} OFF CACHE BOOL "" FORCE)
endforeach()
set(XNNPACK_BUILD_ALL_MICROKERNELS OFF CACHE BOOL "" FORCE)
if(NOT onnxruntime_ENABLE_CPUINFO) # for the runtime itself; XNNPACK reads the header here in any case
  add_library(ortrim_cpuinfo INTERFACE)
  add_library(cpuinfo ALIAS ortrim_cpuinfo)
endif()
add_library(ortrim_kleidiai INTERFACE)
add_library(kleidiai ALIAS ortrim_kleidiai)

# Takes float16's instructions out of the options of assembly for ARM64: upstream has one word for all of it, which zig does
# not know. The wrapper of the compiler knows the word for what is left, and kernels of floats ask for no more than that.
function(ortrim_ask_for_less)
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${googlexnnpack_SOURCE_DIR}" OUTPUT_VARIABLE path)
    get_source_file_property(flags "${path}" TARGET_DIRECTORY microkernels-prod COMPILE_FLAGS)
    if(flags MATCHES "\\+fp16\\+dotprod")
      string(REPLACE "+fp16+dotprod" "+dotprod" flags "${flags}")
      set_source_files_properties("${path}" TARGET_DIRECTORY microkernels-prod PROPERTIES COMPILE_FLAGS "${flags}")
    endif()
  endforeach()
endfunction()

# Leaves out what the models' operators do not need: kernels of the provider, and the functions that make XNNPACK's
# operators for other numbers, with all that only they lead to.
function(ortrim_trim_xnnpack)
  list(TRANSFORM ORTRIM_XNNPACK_FUSED REPLACE "(.+)" "ORTRIM_XNNPACK_\\1=0" OUTPUT_VARIABLE definitions)
  foreach(name IN LISTS ORTRIM_XNNPACK_OPERATORS)
    set(kept 0)
    if(name IN_LIST ORTRIM_OPERATORS)
      set(kept 1)
    endif()
    list(APPEND definitions ORTRIM_XNNPACK_${name}=${kept})
  endforeach()

  set(others f16)
  if(NOT "QLinearConv" IN_LIST ORTRIM_OPERATORS)
    list(APPEND others qs8 qs8_qc8w qu8 s8 u8)
  endif()
  list(JOIN others "|" others)
  file(STRINGS "${googlexnnpack_SOURCE_DIR}/include/xnnpack.h" declared REGEX "xnn_create_[a-z0-9_]+\\(")
  list(TRANSFORM declared REPLACE ".*(xnn_create_[a-z0-9_]+)\\(.*" "\\1")
  set(left_out ${declared})
  list(FILTER left_out INCLUDE REGEX "_n(hw)?c_(${others})$")
  if(NOT "ConvTranspose" IN_LIST ORTRIM_OPERATORS)
    list(APPEND left_out xnn_create_deconvolution2d_nhwc_f32)
  endif()
  list(REMOVE_DUPLICATES left_out)
  set(refusing "/* 4 is xnn_status_unsupported_parameter. */\n")
  foreach(name IN LISTS left_out)
    string(APPEND refusing "int ${name}(void) { return 4; }\n")
    target_compile_definitions(operators PRIVATE ${name}=${name}_left_out)
  endforeach()
  file(WRITE "${CMAKE_BINARY_DIR}/ortrim_refusing.c.new" "${refusing}")
  file(COPY_FILE "${CMAKE_BINARY_DIR}/ortrim_refusing.c.new" "${CMAKE_BINARY_DIR}/ortrim_refusing.c" ONLY_IF_DIFFERENT)
  target_sources(onnxruntime_providers_xnnpack PRIVATE "${CMAKE_BINARY_DIR}/ortrim_refusing.c")

  get_target_property(kernels microkernels-prod SOURCES)
  if("QLinearConv" IN_LIST ORTRIM_OPERATORS)
    list(FILTER kernels EXCLUDE REGEX "src/(bf16|f16|qd8)-")
  else()
    list(FILTER kernels INCLUDE REGEX "${ORTRIM_FLOAT_KERNELS}")
  endif()
  set_target_properties(microkernels-prod PROPERTIES SOURCES "${kernels}")
  ortrim_ask_for_less(${kernels})

  foreach(target IN ITEMS XNNPACK hardware-config)
    target_include_directories(${target} BEFORE PRIVATE "${ORTRIM_HOOKS}/xnnpack")
  endforeach()
  target_compile_definitions(onnxruntime_providers_xnnpack PRIVATE ${definitions})
  get_target_property(sources onnxruntime_providers_xnnpack SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cc$")
  ortrim_include_ahead(onnxruntime_providers_xnnpack xnnpack/kernels.h ${sources})
  set(table "${CMAKE_SOURCE_DIR}/../onnxruntime/core/providers/xnnpack/xnnpack_execution_provider.cc")
  cmake_path(NORMAL_PATH table)
  set_property(SOURCE "${table}" TARGET_DIRECTORY onnxruntime_providers_xnnpack APPEND PROPERTY
    COMPILE_DEFINITIONS ORTRIM_XNNPACK_TABLE)
endfunction()
