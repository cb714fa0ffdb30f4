"""The C API of a library: which of its functions are kept, and the table of them that applications are handed. Pure.

`OrtGetApiBase` leads to one table of all functions, `OrtApi`, which keeps alive whatever any of them reaches. Ours, in
`data/cmake/c_api.cc`, has the same entries: a function that is not kept returns `ORT_NOT_IMPLEMENTED` with its name, or
nothing where it has no status to return. Upstream: core/session/onnxruntime_c_api.{h,cc}.
"""

import re
from collections.abc import Collection
from difflib import get_close_matches
from typing import Final

from ortrim.buildspec.build_options import Api
from ortrim.errors import BuildError

C_API: Final = "c_api.cc"
TABLE: Final = "c_api_table.h"
"""What `c_api.cc` includes: a line for each entry."""
UPSTREAM: Final = "onnxruntime/onnxruntime/core/session/onnxruntime_c_api.cc"
ENTRIES: Final = re.compile(r"static constexpr OrtApi ort_api_\w+ = \{(.*?)^\};", re.DOTALL | re.MULTILINE)
ENTRY: Final = re.compile(r"&OrtApis::(\w+)\s*,|^(\s*#.*)$|(\bnullptr)\s*,", re.MULTILINE)
COMMENTS: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
FOR_PROVIDERS: Final = frozenset({"SessionOptionsAppendExecutionProvider"})
"""What an application names an execution provider with; kept where a library has one beside the CPU's."""
INFERENCE: Final = frozenset(
    """
    CreateStatus GetErrorCode GetErrorMessage ReleaseStatus

    CreateEnv CreateEnvWithOptions CreateEnvWithCustomLogger ReleaseEnv UpdateEnvWithCustomLogLevel
    EnableTelemetryEvents DisableTelemetryEvents SetLanguageProjection GetAvailableProviders
    ReleaseAvailableProviders GetBuildInfoString

    CreateEnvWithGlobalThreadPools DisablePerSessionThreads CreateThreadingOptions ReleaseThreadingOptions
    SetGlobalIntraOpNumThreads SetGlobalInterOpNumThreads SetGlobalSpinControl SetGlobalDenormalAsZero

    CreateSessionOptions CloneSessionOptions ReleaseSessionOptions SetSessionExecutionMode EnableMemPattern
    DisableMemPattern EnableCpuMemArena DisableCpuMemArena SetSessionLogId SetSessionLogVerbosityLevel
    SetSessionLogSeverityLevel SetSessionGraphOptimizationLevel SetIntraOpNumThreads SetInterOpNumThreads
    AddSessionConfigEntry HasSessionConfigEntry GetSessionConfigEntry AddFreeDimensionOverride
    AddFreeDimensionOverrideByName SetDeterministicCompute GetSessionExecutionMode GetMemPatternEnabled
    SessionOptionsSetLoadCancellationFlag

    CreateSession CreateSessionFromArray ReleaseSession Run RunAsync SessionGetInputCount SessionGetInputName
    SessionGetInputTypeInfo SessionGetOutputCount SessionGetOutputName SessionGetOutputTypeInfo
    SessionGetOverridableInitializerCount SessionGetOverridableInitializerName
    SessionGetOverridableInitializerTypeInfo

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
classes for them, the Java and the Objective-C API. Not: custom operators, IO binding, sparse tensors, arenas and
allocators of one's own, prepacked weights, adapters, training, profiling, providers that are not in the library."""
ALWAYS: Final = frozenset({"CreateStatus", "GetErrorCode", "GetErrorMessage", "ReleaseStatus"})
"""What says why a function refuses."""


def api_table(source: str, api: Api, *, providers: bool) -> str:
    """Return the text of `c_api_table.h` for what is kept of `onnxruntime_c_api.cc`; empty without a table."""
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
    """Return those of the `known` functions that are kept."""
    if api == "all":
        return frozenset(known)
    named = frozenset() if isinstance(api, str) else frozenset(api) - {"inference"}
    unknown = sorted(named.difference(known))
    if unknown:
        close = get_close_matches(unknown[0], known, n=1)
        hint = f"did you mean {close[0]}?" if close else "names are those of the struct OrtApi in onnxruntime_c_api.h"
        what = f"this version of ONNX Runtime has no C function {unknown[0]}"
        raise BuildError("unknown-c-function", what, where="build_options.api", hint=hint)
    inference = INFERENCE.intersection(known) if api == "inference" or "inference" in api else frozenset[str]()
    return ALWAYS.intersection(known) | inference | named
