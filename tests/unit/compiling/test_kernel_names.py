import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.compiling.translation_units import DOMAINS, demangled_kernel_key, kernel_key
from unit_samples import kernel

REAL = [
    ("INS_41kCpuExecutionProvider_Or_kOnnxDomain_ver7EEE", "ai.onnx:Or"),
    ("INS_47kCpuExecutionProvider_Asinh_kOnnxDomain_ver9_21EEE", "ai.onnx:Asinh"),
    ("INS_60kCpuExecutionProvider_ReduceProd_kOnnxDomain_ver1_10_int64_tEEE", "ai.onnx:ReduceProd"),
    ("INS0_49kCpuExecutionProvider_QGemm_kMSDomain_ver1_int8_tEEE", "com.microsoft:QGemm"),
    (
        "INS0_72kCpuExecutionProvider_GatherBlockQuantized_kMSDomain_ver1_Int4x2_int32_tEEE",
        "com.microsoft:GatherBlockQuantized",
    ),
    ("INS0_60kCpuExecutionProvider_ReorderInput_kMSNchwcDomain_ver1_floatEEE", "com.microsoft.nchwc:ReorderInput"),
    ("INS0_66kCpuExecutionProvider_LayerNormalization_kOnnxDomain_ver1_16_floatEEE", "ai.onnx:LayerNormalization"),
]
TAIL = "NS_16KernelCreateInfoEv"


@pytest.mark.parametrize(("symbol", "key"), REAL)
def test_real_kernels_are_read(symbol: str, key: str) -> None:
    """Symbols as zig's compiler made them of ONNX Runtime 1.21.0 give the operator as a configuration names it."""
    for start in ("_ZN11onnxruntime", "_ZN11onnxruntime7contrib", "__ZN11onnxruntime"):
        assert kernel_key(f"{start}21BuildKernelCreateInfo{symbol}{TAIL}") == key


@given(
    operator=st.from_regex(r"[A-Z][A-Za-z0-9]{0,8}(_[A-Za-z0-9]{1,6}){0,2}", fullmatch=True),
    constant=st.sampled_from(sorted(DOMAINS)),
    version=st.sampled_from(["1", "7_12", "13_float", "1_8_int64_t", "1_Int4x2_int32_t"]),
    namespace=st.sampled_from(["NS_", "NS0_", "N12_GLOBAL__N_1", "NS_7xnnpack", "N3foo3bar", "NSt3foo", "NS1_3fooS_"]),
)
def test_every_operator_in_every_domain_is_read(operator: str, constant: str, version: str, namespace: str) -> None:
    """Names with and without underscores come through, wherever the class is."""
    symbol = kernel(f"kCpuExecutionProvider_{operator}_{constant}_ver{version}", namespace)
    assert kernel_key(symbol) == f"{DOMAINS[constant]}:{operator}"


@pytest.mark.parametrize(
    "symbol",
    [
        "",
        "OrtGetApiBase",
        "_ZN11onnxruntime21BuildKernelCreateInfoIvEENS_16KernelCreateInfoEv",
        "_ZN11onnxruntime21BuildKernelCreateInfoI",
        "_ZN11onnxruntime21BuildKernelCreateInfoINS_9999kCpuExecutionProvider_Or_kOnnxDomain_ver7EEE",
        "_ZN11onnxruntime21BuildKernelCreateInfoINS_40kCpuExecutionProvider_Or_kOnnxDomain_ver7EEE",
        kernel("kCpuExecutionProvider_Add_kSomeNewDomain_ver1"),
        kernel("kCpuExecutionProvider_Add_kOnnxDomain"),
        kernel("kCpuExecutionProvider_kOnnxDomain_ver1"),
        kernel("MyOwnKernel"),
    ],
)
def test_other_symbols_are_no_kernels(symbol: str) -> None:
    """What is not named as upstream names kernels is left to be an ordinary symbol."""
    assert kernel_key(symbol) is None


@given(st.text(alphabet="NSIE_0123456789kverOnxDomaiP", max_size=60))
def test_any_rest_of_a_name_is_taken(rest: str) -> None:
    """Whatever follows, the answer is a key or None, soon."""
    key = kernel_key("_ZN11onnxruntime21BuildKernelCreateInfoI" + rest)
    assert key is None or key.split(":")[0] in DOMAINS.values()


@pytest.mark.parametrize(
    ("name", "key"),
    [
        (
            "foo::Info foo::BuildKernelCreateInfo<foo::kCpuExecutionProvider_Relu_kOnnxDomain_ver14_float>()",
            "ai.onnx:Relu",
        ),
        ("BuildKernelCreateInfo<a::b::kCpuExecutionProvider_FusedConv_kMSDomain_ver1>()", "com.microsoft:FusedConv"),
        ("onnxruntime::KernelCreateInfo onnxruntime::BuildKernelCreateInfo<void>()", None),
        ("onnxruntime::kCpuExecutionProvider_Relu_kOnnxDomain_ver14_float", None),
        ("", None),
    ],
)
def test_a_demangled_name_says_the_same(name: str, key: str | None) -> None:
    """Link maps have demangled names."""
    assert demangled_kernel_key(name) == key
