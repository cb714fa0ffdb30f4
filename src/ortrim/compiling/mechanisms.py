"""What of ortrim rests on upstream's insides: looked for in the very source tree, before anything is compiled.

A mechanism for which a tree lacks something is left out, with a line that says what it costs.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from ortrim.base.files import storage_errors
from ortrim.buildspec.build_options import Api
from ortrim.compiling import dead_kernels
from ortrim.compiling.dead_kernels import DEPTHWISE, FOUR_BITS, HARD_SWISH, WINOGRAD
from ortrim.compiling.plan import BuildJob
from ortrim.compiling.upstream import KERNELS, typed_units
from ortrim.compiling.upstream_arguments import keeps_blocks, laid_out_sources
from ortrim.compiling.workspace import JobPaths
from ortrim.errors import BuildError
from ortrim.models.operators import parse_config

C_API: Final = "c_api.cc"
API_TABLE: Final = "c_api_table.h"  # what `c_api.cc` includes: a line for each entry
UPSTREAM: Final = "onnxruntime/onnxruntime/core/session/onnxruntime_c_api.cc"
ENTRIES: Final = re.compile(r"static constexpr OrtApi ort_api_\w+ = \{(.*?)^\};", re.DOTALL | re.MULTILINE)
ENTRY: Final = re.compile(r"&OrtApis::(\w+)\s*,|^(\s*#.*)$|(\bnullptr)\s*,", re.MULTILINE)
COMMENTS: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
FOR_PROVIDERS: Final = frozenset({"SessionOptionsAppendExecutionProvider", "EnableProfiling", "SessionEndProfiling"})
"""What an application names an execution provider with, and what tells which nodes it took; kept where a library has
one beside the CPU's."""
INFERENCE: Final = frozenset(
    """
    CreateStatus GetErrorCode GetErrorMessage ReleaseStatus

    CreateEnv CreateEnvWithOptions CreateEnvWithCustomLogger ReleaseEnv UpdateEnvWithCustomLogLevel
    EnableTelemetryEvents DisableTelemetryEvents SetLanguageProjection GetAvailableProviders
    ReleaseAvailableProviders GetBuildInfoString

    CreateEnvWithGlobalThreadPools CreateEnvWithCustomLoggerAndGlobalThreadPools DisablePerSessionThreads
    CreateThreadingOptions ReleaseThreadingOptions SetGlobalIntraOpNumThreads SetGlobalInterOpNumThreads
    SetGlobalSpinControl SetGlobalDenormalAsZero

    CreateSessionOptions CloneSessionOptions ReleaseSessionOptions SetSessionExecutionMode EnableMemPattern
    DisableMemPattern EnableCpuMemArena DisableCpuMemArena SetSessionLogId SetSessionLogVerbosityLevel
    SetSessionLogSeverityLevel SetSessionGraphOptimizationLevel SetIntraOpNumThreads SetInterOpNumThreads
    AddSessionConfigEntry HasSessionConfigEntry GetSessionConfigEntry AddFreeDimensionOverride
    AddFreeDimensionOverrideByName SetDeterministicCompute GetSessionExecutionMode GetMemPatternEnabled
    SessionOptionsSetLoadCancellationFlag

    CreateSession CreateSessionFromArray ReleaseSession Run RunAsync SessionGetInputCount SessionGetInputName
    SessionGetInputTypeInfo SessionGetOutputCount SessionGetOutputName SessionGetOutputTypeInfo
    SessionGetOverridableInitializerCount SessionGetOverridableInitializerName
    SessionGetOverridableInitializerTypeInfo SessionGetProfilingStartTimeNs GetCompileApi

    CreateRunOptions ReleaseRunOptions RunOptionsSetRunLogVerbosityLevel RunOptionsSetRunLogSeverityLevel
    RunOptionsSetRunTag RunOptionsGetRunLogVerbosityLevel RunOptionsGetRunLogSeverityLevel RunOptionsGetRunTag
    RunOptionsSetTerminate RunOptionsUnsetTerminate AddRunConfigEntry

    CreateTensorAsOrtValue CreateTensorWithDataAsOrtValue CreateTensorWithDataAndDeleterAsOrtValue IsTensor HasValue
    GetTensorMutableData GetTensorData GetTensorElementTypeAndShapeDataReference TensorAt GetTensorSizeInBytes
    GetTensorMemoryInfo GetValue GetValueCount GetValueType GetTypeInfo ReleaseValue
    FillStringTensor FillStringTensorElement GetResizedStringTensorElementBuffer GetStringTensorDataLength
    GetStringTensorContent GetStringTensorElementLength GetStringTensorElement

    CastTypeInfoToTensorInfo CastTypeInfoToMapTypeInfo CastTypeInfoToSequenceTypeInfo CastTypeInfoToOptionalTypeInfo
    GetOnnxTypeFromTypeInfo GetDenotationFromTypeInfo GetMapKeyType GetMapValueType GetSequenceElementType
    GetOptionalContainedTypeInfo ReleaseTypeInfo ReleaseMapTypeInfo ReleaseSequenceTypeInfo
    CreateTensorTypeAndShapeInfo ReleaseTensorTypeAndShapeInfo GetTensorTypeAndShape GetTensorElementType
    SetTensorElementType GetDimensionsCount GetDimensions SetDimensions GetSymbolicDimensions
    GetTensorShapeElementCount TensorTypeAndShape_HasShape

    CreateMemoryInfo CreateMemoryInfo_V2 CreateCpuMemoryInfo ReleaseMemoryInfo CompareMemoryInfo MemoryInfoGetName
    MemoryInfoGetId MemoryInfoGetMemType MemoryInfoGetType MemoryInfoGetDeviceType MemoryInfoGetDeviceMemType
    MemoryInfoGetVendorId AllocatorAlloc AllocatorFree AllocatorGetInfo
    GetAllocatorWithDefaultOptions

    SessionGetModelMetadata ReleaseModelMetadata ModelMetadataGetProducerName ModelMetadataGetGraphName
    ModelMetadataGetGraphDescription ModelMetadataGetDomain ModelMetadataGetDescription ModelMetadataGetVersion
    ModelMetadataLookupCustomMetadataMap ModelMetadataGetCustomMetadataMapKeys
    """.split()  # noqa: SIM905 - as a list of strings it would fill three pages
)
"""What loads and runs a model, and asks about it: the functions of upstream's inference samples, the C++ header's
classes for them, the Java, Objective-C and C# APIs. Not: custom operators, IO binding, sparse tensors, arenas and
allocators of one's own, prepacked weights, adapters, training, profiling, providers that are not in the library."""
ALWAYS: Final = frozenset({"CreateStatus", "GetErrorCode", "GetErrorMessage", "ReleaseStatus"})
"""What says why a function refuses."""
FOR_PLUGINS: Final = re.compile(
    r"(?:Graph|Node|ValueInfo|OpAttr|ExternalInitializerInfo|EpDevice|HardwareDevice|EpAssigned(?:Subgraph|Node)"
    r"|DeviceEpIncompatibilityDetails|SyncStream)_\w+"
    r"|GetEpApi|GetModelEditorApi|GetInteropApi|\w*ExternalInitializerInfo|Session_GetEpGraphAssignmentInfo"
    r"|\w*EpDevice\w*|\w*HardwareDevice\w*|(?:Unr|R)egisterExecutionProviderLibrary"
    r"|SessionOptionsAppendExecutionProvider_V2|GetCompatibilityInfoFromModel\w*|(?:Create|Release)SharedAllocator"
    r"|CopyTensors|GetExperimentalFunction"
)
"""What plugins of execution providers are called with, what asks for them, and what edits or packs models: a minimal
build makes no such object, and nothing of these can succeed (upstream's core/session/onnxruntime_c_api.cc, from 1.22
on)."""


def api_table(source: str, api: Api, *, providers: bool) -> str:
    """Return the text of `c_api_table.h` for what is kept of `onnxruntime_c_api.cc`; empty without a table.

    `OrtGetApiBase` leads to one table of all functions, `OrtApi`, which keeps alive whatever any of them reaches. Ours,
    in `resources/cmake/c_api.cc`, has the same entries: a function that is not kept returns `ORT_NOT_IMPLEMENTED` with
    its name, or nothing where it has no status to return. Upstream: core/session/onnxruntime_c_api.{h,cc}.
    """
    found = ENTRIES.findall(COMMENTS.sub("", source))
    plain = found[0] if len(found) == 1 else ""
    entries = ENTRY.findall(plain)
    names = [name for name, _, _ in entries if name]
    if not names or any(missing for _, _, missing in entries) or plain.count("&") != len(names):
        return ""
    kept = kept_functions(names, api) | (FOR_PROVIDERS if providers else frozenset())
    lines = (f"ORTRIM_{'KEPT' if name in kept else 'REFUSED'}({name})" if name else line for name, line, _ in entries)
    return "".join(f"{line.strip()}\n" for line in lines)


def kept_functions(known: Collection[str], api: Api) -> frozenset[str]:
    """Return those of the `known` functions that are kept, of `all` those that a minimal build can do anything for."""
    if api == "all":
        return frozenset(name for name in known if not FOR_PLUGINS.fullmatch(name))
    named = frozenset() if isinstance(api, str) else frozenset(api) - {"inference"}
    unknown = sorted(named.difference(known))
    if unknown:
        close = get_close_matches(unknown[0], known, n=1)
        hint = f"did you mean {close[0]}?" if close else "names are those of the struct OrtApi in onnxruntime_c_api.h"
        what = f"this version of ONNX Runtime has no C function {unknown[0]}"
        raise BuildError("unknown-c-function", what, where="build_options.api", hint=hint)
    inference = INFERENCE.intersection(known) if api == "inference" or "inference" in api else frozenset[str]()
    return ALWAYS.intersection(known) | inference | named


CORE: Final = "onnxruntime/onnxruntime"
ASSIGNMENTS: Final = "avx512_assignments.h"
"""What `avx512_kernels.cc` and `avx512_nchwc.cc` include: the entries that they fill."""

BRANCHES: Final = {
    "UseAvx512F": "((Cpuid7[1] & 0x10000) != 0) && ((xcr0 & 0xE0) == 0xE0)",
    "UseAvx512Core": "(Cpuid7[1] & 0xC0020000) == 0xC0020000",
    "UseAvx512Vnni": "(Cpuid7[2] & 0x800) != 0",
    "UseAvx2VnniInt8": "(Cpuid7_1[3] & 0x10) != 0",
}
"""For each function of `avx512_kernels.cc`, upstream's words for the processors that it is called on."""
QUICKER: Final = re.compile(
    r"GemmFloatKernel|ComputeExpF32Kernel|ComputeSumExpF32Kernel|ReduceMaximumF32Kernel|QuantizeLinear[SU]8Kernel"
    r"|Gem[mv][SU]8[SU]8(?:Kernel|Dispatch)|ConvSymU8S8Dispatch|(?:Gelu)?ErfKernelRoutine|SiluKernelRoutine"
)
"""The entries whose kernels were measured to be quicker than a minimal build's; GELU's and SiLU's: never."""
OF_FEW_BITS: Final = re.compile("S?QNBitGemmDispatch")
"""The entry, as 1.21 and 1.20 call it, for products with weights of 4 bits and their like."""
NCHWC: Final = re.compile(r"Conv\w+FloatKernel|PoolFloatKernel\[\w+\]|NchwcBlockSize")
"""The entries that models in NCHWc layout with block size 16 are computed by."""
ASSIGNMENT: Final = re.compile(r"this->(\w+(?:\[\w+\])?) = (&?\w+);")
UNSIGNED: Final = "GemmU8U8Dispatch"
EXTENSION: Final = re.compile(r"Avx\w+$")  # what a kernel's name ends with, which macros of assembly put there
EXACT: Final = "Vnni"  # what the names of int8 kernels have that do not saturate

FOR_SPEED: Final = frozenset({"-O2", "-O3"})
"""The levels of what is hot at which `units.cmake` includes headers that make it quicker."""
HOT_SOURCES: Final = (
    "core/providers/cpu/",
    "contrib_ops/cpu/",
    "core/util/math",
    *(
        f"core/framework/{name}"
        for name in (
            "sequential_executor", "execution_frame", "op_kernel", "stream_execution", "execution_steps",
            "transpose_helper", "allocator", "bfc_arena", "tensor.cc", "ort_value", "tensor_shape", "utils.cc",
        )
    ),
)  # fmt: skip
"""What runs in every inference, besides MLAS: how paths of kernels, the executor, memory and tensors begin.

The measurements are in docs/dev/engineering-notes.md.
"""

COMMON: Final = "onnxruntime/include/onnxruntime/core/common"
MACROS: Final = {
    "common.h": (
        "ORT_THROW(...)", "ORT_NOT_IMPLEMENTED(...)", "ORT_ENFORCE(condition, ...)", "ORT_RETURN_IF(condition, ...)",
        "ORT_MAKE_STATUS(category, code, ...)", "ORT_RETURN_IF_ERROR_SESSIONID(expr, session_id)",
        "ORT_THROW_IF_ERROR(expr)",
    ),
    "logging/macros.h": (
        "CREATE_MESSAGE(logger, severity, category, datatype)", "LOGS_CATEGORY(logger, severity, category)",
    ),
    "status.h": (),
    "make_string.h": (),
}  # fmt: skip
"""The headers in `resources/cmake/headers`, by their names in `COMMON`, and the macros that they define anew."""
MADE: Final = re.compile(r"\bstd::string (\w+?)(?:Impl)?\(")
MAKERS: Final = frozenset({"MakeString", "MakeStringWithClassicLocale"})
"""The functions of upstream's `make_string.h`, which ours takes the place of."""
WEIGHTS: Final = "auto fbs_initializers = fbs_graph.initializers();"
"""The one place where the weights of a model in ORT format are read; see `refuse_sparse.h`."""
PROTOBUF: Final = "*/src/google/protobuf/**/*.cc"
REFUSE_SPARSE: Final = "refuse_sparse.h"
DIRECT: Final = "direct_convolutions.h"
MLAS_HEADER: Final = f"{CORE}/core/mlas/inc/mlas.h"
CONVOLVED: Final = re.compile(
    r"\bMlasConv\(\s*const MLAS_CONV_PARAMETERS\* Parameters,\s*const float\* Input,\s*const float\* Filter,"
    r"\s*const float\* Bias,\s*float\* WorkingBuffer,\s*float\* Output,\s*MLAS_THREADPOOL\* ThreadPool\s*\);"
)
"""The function of MLAS's that `direct_convolutions.h` and `depthwise_convolutions.h` take the place of."""
FILTERED: Final = {
    f"{CORE}/core/providers/cpu/nn/conv.cc": ("MlasConv(&Parameters,",),
    f"{CORE}/core/providers/cpu/nn/conv.h": (": OpKernel(info), conv_attrs_(info)", "ConvAttributes conv_attrs_;"),
}
"""Where it is called, and the member that has what is known of filters."""
ONE_ROW: Final = "one_row.h"
ONE_ROW_LSTM: Final = "one_row_lstm.h"
ONE_ROW_GRU: Final = "one_row_gru.h"
PRODUCT: Final = {
    f"{CORE}/core/mlas/lib/sgemm.cpp": (
        "RowsHandled = GetMlasPlatform().GemmFloatKernel(A, B, C, CountK, CountM, CountN, lda, ldc, alpha, ZeroMode);",
        "RowsHandled = MlasSgemmKernelZero(A, B, C, CountK, CountM, CountN, lda, ldc, alpha);",
        "RowsHandled = MlasSgemmKernelAdd(A, B, C, CountK, CountM, CountN, lda, ldc, alpha);",
        "const float* pb = (const float*)PackedB + AlignedN * k + CountK * SliceStartN;",
    ),
    f"{CORE}/core/mlas/lib/mlasi.h": ("MLAS_SGEMM_PACKED_STRIDEK", "MLAS_SGEMM_THREAD_COMPLEXITY"),
}
"""Where `one_row.h` comes between, and how weights are packed that it reads."""
SELECTOR: Final = ", const MLAS_BACKEND_KERNEL_SELECTOR_CONFIG* mlas_backend_kernel_selector_config"
"""What takes threads takes, too, from 1.25 on; see `one_row_product.h`."""
ADDED: Final = {
    f"{CORE}/core/providers/cpu/rnn/rnn_helpers.h": (
        "uint8_t* quantized_A_buffer, int32_t* quantize_agg_C_buffer, concurrency::ThreadPool* thread_pool) {",
    ),
}
"""What `one_row_product.h` calls."""
LSTM: Final = {
    f"{CORE}/core/providers/cpu/rnn/lstm_base.cc": ("lstm::UniDirectionalLstm<InputT> fw(alloc, logger, seq_length,",),
    f"{CORE}/core/providers/cpu/rnn/uni_directional_lstm.h": (
        "float clip, concurrency::ThreadPool* thread_pool, const bool training_mode = false);",
    ),
    **ADDED,
}
"""The class that `one_row_lstm.h` takes the place of, and what it calls."""
GRU: Final = {
    **ADDED,
    f"{CORE}/core/providers/cpu/rnn/deep_cpu_gru.h": (
        "GemmWeights<T>& recurrent_weights_H, gsl::span<T>& outputs, gsl::span<T>& final_hidden_state);",
        "gsl::span<T>& outputs, gsl::span<T>& final_hidden_state, gsl::span<T>& zrh);",
        *("ActivationFuncPtr update_gate_{};", "GruOutputGateFuncPtr output_gate_{};"),
        *("batched_bias_WRz_, batched_bias_WRr_;", "batched_bias_Wh_, batched_bias_Rh_;", "batched_bias_WRh_;"),
        *("gsl::span<T> linear_output_;", "gsl::span<T> outputZRH_;", "gsl::span<T> batched_hidden0_;"),
    ),
}
"""The function that `one_row_gru.h` takes the place of, the members that it reads, and what it calls."""
TILED: Final = {
    f"{CORE}/contrib_ops/cpu/nchwc_ops.h": ("OpKernel(info), conv_attrs_(info) {", "ConvAttributes conv_attrs_;"),
    f"{CORE}/contrib_ops/cpu/nchwc_ops.cc": (
        "MlasNchwcConv( X_shape.GetDims().data(), kernel_shape.data(), dilations.data(), pads.data(), strides.data(),",
        "&activation_, Sum == nullptr, context->GetOperatorThreadPool()",
    ),
}
"""The member that `winograd_filters.h` gives its own type, and the call that it comes between."""
SWISHED: Final = {
    f"{CORE}/core/providers/cpu/element_wise_ranged_transform.h": (
        "class ElementWiseKernel final : public OpKernel {",
        *("Status Compute(OpKernelContext* context) const override {", "F f_;"),
    ),
    f"{CORE}/core/providers/cpu/activation/activations.h": (
        "struct HardSigmoid : public ElementWiseRangedTransform<T> { ORT_GET_FLOAT_ATTR_AND_RETURN_2(alpha, beta);",
        "DEFINE_ELE_KERNEL(HardSigmoid);",
    ),
    f"{CORE}/core/providers/cpu/math/element_wise_ops.h": ("class Mul final : public OpKernel {",),
    f"{CORE}/core/providers/cpu/math/element_wise_ops.cc": (
        "Status Mul<T>::Compute(OpKernelContext* context) const {",
    ),
}
"""The two functions that `hard_swish.h` takes the place of."""
ROWS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "byte_softmax.h": {
        f"{CORE}/contrib_ops/cpu/quantization/qlinear_softmax.h": (
            *("class QLinearSoftmax final : public OpKernel {", "using EXP_OUT_DTYPE = float;"),
        ),
        f"{CORE}/contrib_ops/cpu/quantization/qlinear_softmax.cc": (
            *(": OpKernel(info) {", "uint8_t index = static_cast<uint8_t>(is_signed ? i - 128 : i);"),
            "shifted_lookuptable = lookup_table + 255 - xmax;",
            "QlinearSoftmaxCPU<T>(N, D, input.Data<T>(), output.MutableData<T>(), lookup_table.data(), Y_scale, Y_zp,",
        ),
    },
    "layer_norm_rows.h": {
        f"{CORE}/core/providers/cpu/nn/layer_norm_impl.cc": (
            "const int64_t broadcast_param, const float* scale_float_ptr, const float* bias_float_ptr, float epsilon,",
            "bool simplified, T* Y_data, U* mean_data, U* inv_std_dev_data, AllocatorPtr alloc) {",
            "LAYER_NORM_SCALE_BIAS_OFFSET(broadcast_param, task_idx, norm_size);",
            "ComputeJob(X_data, scale_data, bias_data, task_idx, params.norm_size, params.broadcast_param,",
            "epsilon, simplified, Y_data, mean_data, inv_std_dev_data, alloc);",
        ),
    },
    "skip_layer_norm_rows.h": {
        f"{CORE}/contrib_ops/cpu/skip_layer_norm.cc": (
            "ptrdiff_t task_idx, int hidden_size, int64_t skip_size, float epsilon, bool simplified, T* output_data,",
            "ComputeJob(input_data, skip_data, gamma_data, beta_data, bias_data, task_idx, hidden_size, skip_size,",
            "epsilon_, simplified, output_data, skip_input_bias_add_output_data);",
        ),
    },
}
"""For each header that computes rows of values, the function that it takes the place of, and what it reads of it."""
KEPT_BLOCKS: Final = "kept_blocks.cc"
ROOM_ARENA: Final = "room_arena.h"
ARENA: Final = {
    f"{CORE}/core/framework/bfc_arena.h": (
        "class BFCArena : public ", "void* Alloc(size_t size) override;", "void Free(void* p) override;",
        "void* Reserve(size_t size) override;",
    ),
    f"{CORE}/core/framework/allocator_utils.cc": ("std::make_unique<BFCArena>(std::move(device_allocator),",),
}  # fmt: skip
"""The class that `room_arena.h` derives its own from, and the one place where such an arena is made."""
LOADING: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "same_types.h": {
        f"{CORE}/core/framework/allocation_planner.cc": (
            "static size_t GetElementSize(const DataType& tensor_type) {",
            *("const auto& ptype1 = arg1.Type();", "const auto& ptype2 = arg2.Type();"),
            *("auto type1_size = GetElementSize(ptype1);", "auto type2_size = GetElementSize(ptype2);"),
        ),
    },
    "weights_hash.h": {
        f"{CORE}/core/framework/prepacked_weights.cc": (
            "MurmurHash3::x86_128(data, len, hash[0], &hash)",
            *("hash[0] & 0xfffffff8;", "returned_hash |= uint64_t(hash[1]) << 32;"),
        ),
    },
}
"""For each header that makes loading quicker, the function that it asks less often or takes, and what is read of it."""
MULTIPLIED: Final = {
    f"{CORE}/core/mlas/lib/qnbitgemm_kernel_neon.h": (
        "size_t SQ4BitGemmKernel_CompInt8( size_t BlkLen, const std::byte* QuantA, const std::byte* QuantBData,",
        "const float* QuantBScale, const std::byte* QuantBZeroPoint, float* C, size_t CountM, size_t CountN,",
        "size_t /*CountK*/, size_t BlockCountK, size_t ldc, const float* Bias );",
    ),
    f"{CORE}/core/mlas/lib/qnbitgemm.cpp": (
        "const auto RowsHandled = GetMlasPlatform().QNBitGemmDispatch->SQ4BitGemmKernel_CompInt8(",
        "RowsRemaining -= RowsHandled;",
    ),
    f"{CORE}/core/mlas/lib/sqnbitgemm_kernel_neon_int8.cpp": (
        "SQ4BitGemm_CompInt8_Compute1x1_BlkLen32(",
        "const int8x16_t av_hi0 = vld1q_s8(Q8BlkData(QuantABlk0) + 16);",
        "int8x16_t bv_hi0 = vreinterpretq_s8_u8(vshrq_n_u8(bv_packed0, 4));",
    ),
}
"""The kernel that `four_bits.h` takes the place of on ARM64, how it is called, and how numbers and weights lie."""
LAID_OUT: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    WINOGRAD: TILED,
    HARD_SWISH: SWISHED,
    FOUR_BITS: MULTIPLIED,
}
FEW_BITS: Final = "few_bits.h"
FEW_BITS_HEADER: Final = "qnbitgemm.h"  # of MLAS, with the table that it cuts
ERRORS: Final = "messages.cc"
TABLE: Final = "dead-kernel elimination"
MESSAGES: Final = "unread messages"
TYPES: Final = "type control by source"
HOT_OPERATORS: Final = "hot operators"

COSTS: Final = {
    TABLE: "MLAS's table of kernels is not found; every kernel of MLAS stays in the library",
    dead_kernels.BRANCH: "MLAS's choice of AVX2 is not found; "
    "kernels for lesser processors than the target's stay in the library",
    MESSAGES: "protobuf's readers and writers are not found; their code for ONNX's messages stays in the library",
    dead_kernels.AVX512_KERNELS: "MLAS's choice of AVX-512 is not found; "
    "where there is AVX-512, int8 and float32 GEMM are slower",
    REFUSE_SPARSE: "graph.cc reads a model's weights in another way; sparse tensors stay in the library",
    "byte_softmax.h": "QLinearSoftmax is of another form; it takes three times the instructions",
    "layer_norm_rows.h": "LayerNormalization is of another form; it takes several times the instructions",
    "skip_layer_norm_rows.h": "SkipLayerNormalization is of another form; it takes several times the instructions",
    DIRECT: "conv.cc calls MLAS in another way; convolutions of few positions are slower",
    DEPTHWISE: "conv.cc calls MLAS in another way; depthwise convolutions are slower",
    ONE_ROW: "MLAS calls its kernels in another way; products of one row take up to three times the instructions",
    ONE_ROW_LSTM: "LSTM's source is of another form; an LSTM over one sequence is slower",
    ONE_ROW_GRU: "GRU's source is of another form; a GRU over one sequence is slower",
    WINOGRAD: "a convolution in NCHWc layout is of another form; those of three or five places take twice the products",
    HARD_SWISH: "HardSigmoid or Mul is of another form; hard-swish takes two passes over memory",
    KEPT_BLOCKS: "the table of C functions is not found; an inference allocates its memory anew",
    ROOM_ARENA: "BFCArena is of another form; the memory of small tensors is divided and joined in every inference",
    "same_types.h": "the allocation planner compares tensors in another way; loading takes up to twice as long",
    "weights_hash.h": "packed weights are hashed in another way; loading takes up to a fifth longer",
    FOUR_BITS: "MLAS multiplies weights of 4 bits in another way; such products take up to twice the instructions",
    FEW_BITS: "MLAS's table for weights of few bits is not found; all of its functions stay in the library",
    ERRORS: "upstream's macros for errors are not found as they were; the library is an eighth larger",
    C_API: "the table of C functions is not found; all of them stay in the library",
    TYPES: "no kernel includes upstream's type control; a change of types compiles every kernel again",
    HOT_OPERATORS: "no kernel's registration is found; all kernels are compiled for speed, and the library is larger",
}
"""For each mechanism that can be left out, why it is, and what that costs."""
COLD: Final = "no such source; what took its place is compiled for size, and may be slower"


@dataclass(frozen=True, kw_only=True)
class Mechanisms:
    """What a source tree has for a job.

    `assignments` is the text of `avx512_assignments.h`, `api_table` that of `c_api_table.h`. `unused_functions` are the
    functions that `few_bits.h` leaves out. `left_out` names mechanisms of `COSTS` and members of `HOT_SOURCES`.
    """

    assignments: str = ""
    api_table: str = ""
    unused_functions: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """A line for each thing that is left out: what was not found, and what that costs."""
        cold = ", ".join(name for name in self.left_out if name not in COSTS)
        lines = tuple(f"{name}: left out, because {COSTS[name]}" for name in self.left_out if name in COSTS)
        return (*lines, f"{cold}: {COLD}") if cold else lines


def find_mechanisms(paths: JobPaths, job: BuildJob, texts: Mapping[str, str]) -> Mechanisms:
    """Look for what a job's mechanisms need in its tree, of which `texts` are MLAS's sources by their base names."""
    quicker, nchwc = avx512_assignments(texts, few_bits=parse_config(job.operator_config).multiplies_by_few_bits)
    if job.nchwc_block_size == 16 and not nchwc:
        what = "this version's MLAS has no kernels for NCHWc layout with block size 16 where they are looked for"
        hint = "remove layout = 'nchwc16' from the models, or build another version of ONNX Runtime"
        raise BuildError("nchwc-kernels-missing", what, where=f"ONNX Runtime {job.ort_version}", hint=hint)
    options = job.build_options
    with storage_errors(paths.sources):
        missing = (*_missing(paths, job, texts), *_missing_hot(paths, job))
        table = api_table(text_of(paths.sources / UPSTREAM), options.api, providers=bool(job.providers))
    slower = options.avx512_kernels and not quicker
    whole = options.api != "all" and not table
    anew = keeps_blocks(job) and not table
    unused = dead_kernels.unused_functions(texts.get(FEW_BITS_HEADER, ""), job.few_bits) if job.few_bits else ()
    apart = {dead_kernels.AVX512_KERNELS: slower, C_API: whole, KEPT_BLOCKS: anew, FEW_BITS: unused is None}
    left_out = (*missing, *(name for name, found in apart.items() if found))
    return Mechanisms(assignments=quicker + nchwc, api_table=table, unused_functions=unused or (), left_out=left_out)


def _missing(paths: JobPaths, job: BuildJob, texts: Mapping[str, str]) -> Iterator[str]:
    if job.build_options.dead_kernel_elimination:
        if not dead_kernels.table_entries(texts):
            yield TABLE
        elif job.cpu in dead_kernels.FLOORS and dead_kernels.BRANCH not in texts[dead_kernels.CONSTRUCTORS[0]]:
            yield dead_kernels.BRANCH
        if not {file.name for file in paths.sources.glob(PROTOBUF)}.issuperset(
            (*dead_kernels.READERS, dead_kernels.BASE)
        ):
            yield MESSAGES
    if dead_kernels.SPARSE in job.without_types and WEIGHTS not in text_of(
        paths.sources / (f"{CORE}/core/graph/graph.cc")
    ):
        yield REFUSE_SPARSE
    if not typed_units(paths):
        yield TYPES
    if keeps_blocks(job) and not _has_words(paths, ARENA):
        yield ROOM_ARENA
    if job.profile != "upstream":
        yield from (name for name, words in LOADING.items() if not _has_words(paths, words))
    if job.build_options.lean_errors and not _has_macros(paths.sources / COMMON):
        yield ERRORS


def _has_words(paths: JobPaths, wanted: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether each file has its words, however these are divided into lines, with a `SELECTOR` or without."""
    plain = ((" ".join(text_of(paths.sources / name).split()), words) for name, words in wanted.items())
    texts = ((text.replace(SELECTOR, ""), words) for text, words in plain)
    return all(each in text for text, words in texts for each in words)


def _has_macros(folder: Path) -> bool:
    """Whether upstream's headers define all that ours define anew, and no text is made by a function that ours lack."""
    texts = {name: text_of(folder / name) for name in MACROS}
    defined = all(f"#define {macro}" in texts[name] for name, macros in MACROS.items() for macro in macros)
    return defined and all(texts.values()) and MAKERS.issuperset(MADE.findall(texts["make_string.h"]))


def _missing_hot(paths: JobPaths, job: BuildJob) -> Iterator[str]:
    core = paths.sources / CORE
    kernels = (file for folder in KERNELS for file in (core / folder).rglob("*.cc"))
    if job.hot_operators and not any(dead_kernels.registering_words(text_of(file)) for file in kernels):
        yield HOT_OPERATORS
    direct = _has_words(paths, FILTERED) and bool(CONVOLVED.search(text_of(paths.sources / MLAS_HEADER)))
    if DEPTHWISE in laid_out_sources(job) and not direct:
        yield DEPTHWISE
    if job.build_options.hot != job.build_options.cold:
        yield from (name for name in HOT_SOURCES if not any(core.glob(f"{name}*")))
    if job.build_options.hot not in FOR_SPEED:
        return
    yield from (name for name, words in ROWS.items() if not _has_words(paths, words))
    if not direct:
        yield DIRECT
    product = _has_words(paths, PRODUCT)
    rows: dict[str, Mapping[str, tuple[str, ...]]] = {ONE_ROW: {}, ONE_ROW_LSTM: LSTM, ONE_ROW_GRU: GRU}
    yield from (name for name, words in rows.items() if not product or not _has_words(paths, words))
    laid_out = ((name, words) for name, words in LAID_OUT.items() if name in laid_out_sources(job))
    yield from (name for name, words in laid_out if not _has_words(paths, words))


def text_of(path: Path) -> str:
    """Return the text of a source, whatever its bytes are; empty when there is no such file."""
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def avx512_assignments(texts: Mapping[str, str], *, few_bits: bool = True) -> tuple[str, str]:
    """Return the C++ functions that fill MLAS's table, for `avx512_kernels.cc` and for `avx512_nchwc.cc`.

    Kernels for weights of `few_bits` are in large sources; their entry is filled only where they are asked for. Each
    text is empty unless all that it needs is found: every branch of the constructor once, an entry in each, and a
    definition of each kernel. A table for signed weights in the entry for unsigned ones flips their sign, which is
    right as long as its kernel does not saturate; upstream replaces the kernel and not the table where there is
    AVX-VNNI and AVX-512 without VNNI.
    """
    plain = " ".join(dead_kernels.IGNORED.sub(" ", texts.get(dead_kernels.CONSTRUCTORS[0], "")).split())
    branches = {name: _assigned(plain, words) for name, words in BRANCHES.items()}
    own = re.search(rf"{UNSIGNED} = (&\w*U8U8\w*);", plain)
    quicker = {name: _chosen(found, own[1] if own else "", few_bits=few_bits) for name, found in branches.items()}
    wide = tuple(each for each in branches[next(iter(BRANCHES))] if NCHWC.fullmatch(each[0]))
    elsewhere = (
        text for name, text in texts.items() if name not in (*dead_kernels.CONSTRUCTORS, dead_kernels.DECLARATIONS)
    )
    words = frozenset[str]().union(*map(dead_kernels.WORD.findall, elsewhere))
    return _functions(quicker, words), _functions({"UseAvx512Nchwc": wide}, words)


Assignments = tuple[tuple[str, str], ...]  # Entries, and what stands in them


def _assigned(constructor: str, words: str) -> Assignments:
    """Return what one branch of the constructor itself assigns; nothing unless there is one."""
    before, *after = constructor.split(f"if ({words}) {{")
    return (
        tuple(ASSIGNMENT.findall(dead_kernels.own_statements("{" + after[0])[0])) if before and len(after) == 1 else ()
    )


def _chosen(assigned: Assignments, own: str, *, few_bits: bool) -> Assignments:
    """Return the assignments of a branch that are quicker, so that unsigned weights meet no kernel that saturates."""
    named = (QUICKER, OF_FEW_BITS) if few_bits else (QUICKER,)
    chosen = tuple(each for each in assigned if any(entry.fullmatch(each[0]) for entry in named))
    kernel = dict(chosen).get("GemmU8S8Kernel", "")
    if EXACT in kernel or not kernel:
        return chosen
    kept = tuple(each for each in chosen if each[0] != UNSIGNED)
    return (*kept, (UNSIGNED, own)) if own else kept


def _functions(assigned: Mapping[str, Assignments], words: frozenset[str]) -> str:
    """Return functions of C++ that assign; empty when one has nothing to assign, or `words` have no such kernel."""
    kernels = {value.lstrip("&") for found in assigned.values() for _, value in found if not value.isdecimal()}
    if not all(assigned.values()) or any(not {each, EXTENSION.sub("", each)} & words for each in kernels):
        return ""
    return "".join(
        f"[[maybe_unused]] static void {name}(MLAS_PLATFORM& table) {{\n"
        + "".join(f"  table.{entry} = {value};\n" for entry, value in found)
        + "}\n"
        for name, found in assigned.items()
    )
