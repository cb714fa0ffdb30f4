"""Objects of a small made-up library, kernels as upstream mangles them, and a Hypothesis strategy for such objects."""

import pytest
from hypothesis import strategies as st

from ortrim.compiling.translation_units import ObjectSymbols, UnitIndex, Variant, make_index
from ortrim.pins.shipped import user_pins_folder

VARIANT = Variant(ort_version="1.21.0", target="linux-x64", toolchain="zig", exceptions=False)
INTERFACE = "${build}/MinSizeRel/generated_source.c"
SESSION = "${sources}/onnxruntime/onnxruntime/core/session/inference_session.cc"
PROVIDER = "${sources}/onnxruntime/onnxruntime/core/providers/cpu/cpu_execution_provider.cc"
ADD = "${sources}/onnxruntime/onnxruntime/core/providers/cpu/math/element_wise_ops.cc"
GEMM = "${sources}/onnxruntime/onnxruntime/core/providers/cpu/math/gemm.cc"
SGEMM = "${sources}/onnxruntime/onnxruntime/core/mlas/lib/sgemm.cpp"
UNUSED = "${sources}/re2/re2/re2.cc"


def without_shipped_indices(patch: pytest.MonkeyPatch) -> None:
    """Let no index of units travel with ortrim; one in the user's pins folder is read as ever."""

    def own_text(name: str) -> str | None:
        own = user_pins_folder() / name
        return own.read_text(encoding="utf-8", errors="replace") if own.is_file() else None

    def own_names(folder: str) -> tuple[str, ...]:
        return tuple(sorted(f"{folder}/{file.name}" for file in (user_pins_folder() / folder).glob("*")))

    patch.setattr("ortrim.compiling.translation_units.pin_text", own_text)
    patch.setattr("ortrim.compiling.translation_units.pin_names", own_names)


def kernel(name: str, namespace: str = "NS_") -> str:
    """Return the mangled registration of a kernel's class, in a namespace as mangled inside the argument."""
    return f"_ZN11onnxruntime21BuildKernelCreateInfoI{namespace}{len(name)}{name}EEENS_16KernelCreateInfoEv"


ADD_FLOAT = kernel("kCpuExecutionProvider_Add_kOnnxDomain_ver14_float")
ADD_OLD = kernel("kCpuExecutionProvider_Add_kOnnxDomain_ver7_12_double")
GEMM_FLOAT = kernel("kCpuExecutionProvider_Gemm_kOnnxDomain_ver13_float")
GEMM_MINE = kernel("kCpuExecutionProvider_FusedGemm_kMSDomain_ver1_float")


def symbols(unit: str, defined: tuple[str, ...] = (), undefined: tuple[str, ...] = ()) -> ObjectSymbols:
    return ObjectSymbols(unit=unit, defined=frozenset(defined), undefined=frozenset(undefined))


OBJECTS = (
    symbols(INTERFACE, undefined=("OrtGetApiBase",)),
    symbols(SESSION, ("OrtGetApiBase", "_ZTV3Log", "session_only"), ("make_provider", "malloc")),
    symbols(PROVIDER, ("make_provider",), (ADD_FLOAT, ADD_OLD, GEMM_FLOAT, "_ZTV3Log")),
    symbols(ADD, (ADD_FLOAT, ADD_OLD, "broadcast"), ("_ZTV3Log",)),
    symbols(GEMM, (GEMM_FLOAT, GEMM_MINE), ("sgemm", "broadcast")),
    symbols(SGEMM, ("sgemm",), ("_Znwm",)),
    symbols(UNUSED, ("re2",), ("_ZTV3Log",)),
)


def sample_index() -> UnitIndex:
    return make_index(VARIANT, OBJECTS, [INTERFACE])


NAMES = tuple(f"symbol_{letter}" for letter in "abcdefgh")
KERNELS = tuple(
    kernel(f"kCpuExecutionProvider_{name}_{domain}_ver{opset}_float")
    for name in ("Add", "Cast", "OneHot")
    for domain in ("kOnnxDomain", "kMSDomain")
    for opset in (1, 13)
)
UNITS = (INTERFACE, *(f"${{sources}}/onnxruntime/{letter}.cc" for letter in "abcdefg"))
some_symbols = st.frozensets(st.sampled_from(NAMES + KERNELS), max_size=6)
object_lists = st.lists(
    st.builds(ObjectSymbols, unit=st.sampled_from(UNITS), defined=some_symbols, undefined=some_symbols), max_size=12
).map(lambda objects: [*objects, symbols(INTERFACE, undefined=NAMES[:2])])
indices = object_lists.map(lambda objects: make_index(VARIANT, objects, [INTERFACE]))
