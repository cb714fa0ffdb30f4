import pytest

from ortrim.compiling.translation_units import Unit, UnitIndex, Variant
from ortrim.size.accounting import Leaf, registered_operators, with_operators

INDEX = UnitIndex(
    variant=Variant(ort_version="1.21.0", target="linux-x64", toolchain="zig", exceptions=False),
    roots=(4,),
    units=tuple(
        Unit(path=f"${{sources}}/{name}", provides=(), needs=needs)
        for name, needs in (
            ("helper.cc", ()),
            ("matrix.cpp", ()),
            ("max.cc", (0, 1)),
            ("min.cc", (5,)),
            ("root.cc", ()),
            ("third.cc", ()),
        )
    ),
    kernels=(("ai.onnx:Max", (2,)), ("ai.onnx:Min", (3,))),
)
MAX = "BuildKernelCreateInfo<onnxruntime::kCpuExecutionProvider_Max_kOnnxDomain_ver1>()"
MIN = "BuildKernelCreateInfo<onnxruntime::kCpuExecutionProvider_Min_kOnnxDomain_ver1>()"


def leaf(file: str, symbol: str, component: str = "providers", folded: tuple[str, ...] = ()) -> Leaf:
    name = file and f"libonnxruntime_{component}.a({file})"
    return Leaf(component=component, section=".text", file=name, symbol=symbol, folded=folded, size_bytes=10)


@pytest.mark.parametrize(
    ("given", "operator"),
    [
        (leaf("max.cc.o", "anything"), "Max"),
        (leaf("helper.cc.o", "anything"), "Max"),
        (leaf("matrix.cpp.o", "anything", "mlas"), "Max"),
        (leaf("third.cc.o", "anything"), "Min"),
        (leaf("unknown.cc.o", "anything"), "common in unknown.cc.o"),
        (leaf("unknown.cc.o", "anything", "mlas"), ""),
        (leaf("helper.cc.o", "anything", "session"), ""),
        (leaf("", "anything", "padding"), ""),
    ],
)
def test_helpers_belong_to_the_one_operator_that_needs_them(given: Leaf, operator: str) -> None:
    """Of the kernels' and the matrix library alone; what the index does not know is common."""
    leaves = (leaf("max.cc.o", MAX), leaf("min.cc.o", MIN), given)
    assert with_operators(leaves, registered_operators(leaves), INDEX)[-1].operator == operator


def test_without_an_index_helpers_are_common() -> None:
    leaves = (leaf("max.cc.o", MAX), leaf("helper.cc.o", "anything"))
    found = with_operators(leaves, registered_operators(leaves), None)
    assert [each.operator for each in found] == ["Max", "common in helper.cc.o"]


def test_a_folded_registration_counts() -> None:
    """When the registrations of two operators are one function, the file still has both."""
    leaves = (leaf("both.cc.o", MAX, folded=(MIN,)), leaf("both.cc.o", "onnxruntime::Min<float>::Compute()"))
    found = with_operators(leaves, registered_operators(leaves), None)
    assert [each.operator for each in found] == ["Max", "Min"]
