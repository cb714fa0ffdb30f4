"""Models compared with runtimes, with the versions of kernels as the full runtime tells them."""

from dataclasses import replace

import pytest
from hypothesis import given

from judged_models import model, models, runtime, use
from ortrim.analysis.compat import in_doubt, judge
from ortrim.analysis.compat_runtime import ANY_LATER
from ortrim.models.operators import ModelUses, OperatorId

CONFIG = """\
ai.onnx;13;Concat{"inputs": {"0": ["float"]}},Gather{"inputs": {"0": ["float"], "1": ["int64_t"]}},If
ai.onnx;14;Relu{"inputs": {"0": ["float"]}},Reshape
"""


def test_a_model_of_what_is_there_fits() -> None:
    """Nothing is missing, and every operator is listed with the types that it works on."""
    judged = judge(runtime(CONFIG), model(use("Relu", 14), use("Reshape", 14, "float", "int64_t")), {})
    assert judged.fits
    assert [(each.operator.name, each.types) for each in judged.operators] == [
        ("Relu", ("float",)),
        ("Reshape", ("float", "int64_t")),
    ]


def test_a_missing_operator_is_named_with_a_node() -> None:
    judged = judge(runtime(CONFIG), model(use("Softplus", 1), use("FusedConv", 1, domain="com.microsoft")), {})
    first, second = judged.missing
    assert (first.missing, first.detail, first.node) == ("operator", "the operator", "a Softplus")
    assert second.detail == "the operator, as all of com.microsoft"
    assert not judged.fits


def test_a_missing_type_is_named_with_what_is_there() -> None:
    (found,) = judge(runtime(CONFIG), model(use("Relu", 14, "double"), use("Relu", 14)), {}).missing
    assert (found.missing, found.detail) == ("type", "type double for input 0, there: float")


def test_two_uses_of_an_operator_are_both_looked_at() -> None:
    judged = judge(runtime(CONFIG), model(use("Relu", 14), use("Relu", 14, "double")), {})
    assert [each.missing for each in judged.operators] == ["type"]


@pytest.mark.parametrize(
    ("opset", "kernels", "fits"),
    [
        (13, ((13, 13), (14, ANY_LATER)), False),
        (16, ((14, ANY_LATER),), False),
        (16, ((14, 18),), True),
        (12, ((14, 18),), False),
        (13, ((13, 15),), True),
        (14, (), True),
    ],
)
def test_kernels_serve_a_range_of_opsets(opset: int, kernels: tuple[tuple[int, int], ...], fits: bool) -> None:  # noqa: FBT001
    wanted, installed = model(use("Relu", opset)), runtime(CONFIG)
    judged = judge(installed, wanted, {("ai.onnx", "Relu"): kernels})
    assert judged.fits is fits
    if not fits:
        assert (judged.missing[0].missing, judged.missing[0].detail) == ("opset", f"opset {opset}, there for 14")


def test_only_other_opsets_are_in_doubt() -> None:
    wanted = model(use("Relu", 13), use("Reshape", 14), use("Softplus", 1))
    assert in_doubt(runtime(CONFIG), wanted) == (OperatorId(domain="ai.onnx", opset=13, name="Relu"),)


def test_a_configuration_with_an_imported_opset_has_the_kernel_before_it() -> None:
    installed = runtime("ai.onnx;17;Relu\n")
    assert judge(installed, model(use("Relu", 14)), {("ai.onnx", "Relu"): ((14, ANY_LATER),)}).fits


def test_everything_is_there_when_all_operators_are() -> None:
    installed = runtime("!no_ops_specified_means_all_ops_are_required\n")
    assert judge(installed, model(use("Relu", 13, "double"), use("Foo", 9, domain="com.microsoft")), {}).fits


def test_an_extended_build_has_the_operators_of_layouts() -> None:
    wanted = model(use("Transpose", 13, "bool"), use("Identity", 16))
    assert not judge(runtime(CONFIG, extended=False), wanted, {}).fits
    assert judge(runtime(CONFIG, extended=True), wanted, {}).fits


@pytest.mark.parametrize(
    ("version", "renewed"),
    [("1.22.0", ()), ("1.23.2", (23,)), ("1.24.4", (23, 24, 25)), ("1.30.0", (23, 24, 25)), ("9.9.9", ())],
)
def test_an_extended_build_has_them_in_the_opsets_of_its_version(version: str, renewed: tuple[int, ...]) -> None:
    """New forms of operators came with the opsets that a version takes; of an unknown one they are not supposed."""
    installed = replace(runtime(CONFIG, extended=True), ort_version=version)
    wanted = [OperatorId(domain="ai.onnx", opset=opset, name="Transpose") for opset in range(22, 26)]
    assert tuple(each.opset for each in wanted if installed.has(each, {})) == renewed
    assert installed.opsets_of(OperatorId(domain="ai.onnx", opset=23, name="Gather")) == (1, 11, 13)


def test_saved_optimizations_count_where_they_may_be_applied() -> None:
    """A plain minimal build leaves them alone; of a build of unknown kind the worst is assumed."""
    made = OperatorId(domain="com.microsoft", opset=1, name="QLinearAdd")
    wanted = replace(model(use("Relu", 14)), saved=(made,))
    assert judge(runtime(CONFIG, extended=False), wanted, {}).fits
    for extended in (True, None):
        judged = judge(runtime(CONFIG, extended=extended), wanted, {})
        assert [each.operator for each in judged.missing] == [made]


@pytest.mark.parametrize("version", ["4", "7", "", "6 "])
def test_another_version_of_the_format_is_an_obstacle(version: str) -> None:
    judged = judge(runtime(CONFIG), replace(model(use("Relu", 14)), format_version=version), {})
    assert not judged.fits
    assert "the runtime reads 5 and 6" in judged.obstacles[0]


def test_types_that_are_compiled_out_are_an_obstacle() -> None:
    """Small floats and sparse weights where they are left out; elsewhere they are none."""
    wanted = replace(model(use("Reshape", 14)), element_types=("Float8E5M2", "MLFloat16", "float"), sparse=True)
    assert judge(runtime(CONFIG, extended=False), wanted, {}).fits
    judged = judge(runtime(CONFIG, extended=False, without=("float16", "float8", "sparsetensor")), wanted, {})
    kinds = ("values of Float8E5M2", "values of MLFloat16", "sparse weights")
    assert [line.split(",")[0] for line in judged.obstacles] == [f"it has {kind}" for kind in kinds]
    assert judged.unknowns == ()


def test_a_value_that_no_operator_reads_has_a_type_too() -> None:
    """An output that is a weight: a library without exceptions and 8-bit floats would end the process at it."""
    wanted = replace(model(use("Relu", 14)), element_types=("Float8E4M3FN", "float"))
    judged = judge(runtime(CONFIG, extended=False, without=("float8",)), wanted, {})
    assert not judged.fits
    assert all(each.missing is None for each in judged.operators)


def test_a_configuration_does_not_say_what_is_compiled_out() -> None:
    """So that a model with such values may fit or not; one without them leaves no question."""
    wanted = model(use("Relu", 14))
    judged = judge(runtime(CONFIG), replace(wanted, element_types=("Float8E5M2",), sparse=True), {})
    assert judged.fits
    assert "without 8-bit floats and sparse tensors" in judged.unknowns[0]
    assert judge(runtime(CONFIG), wanted, {}).unknowns == ()


def test_what_globally_allowed_types_leave_open_is_said() -> None:
    """Of operators whose kernels may or may not be registered by type."""
    installed = runtime("!globally_allowed_types;float\nai.onnx;13;Relu,Tile,Shape\n")
    judged = judge(installed, model(use("Relu", 13), use("Tile", 13, "double", "int64_t")), {})
    assert judged.fits
    assert judged.unknowns == ("whether the runtime's globally allowed types leave out kernels of Tile",)


def test_types_of_saved_optimizations_are_not_known() -> None:
    """The file does not say them, so that a limit on such an operator leaves a question."""
    made = OperatorId(domain="com.microsoft", opset=1, name="QLinearAdd")
    wanted = replace(model(use("Relu", 14)), saved=(made,))
    limited = runtime(CONFIG + 'com.microsoft;1;QLinearAdd{"inputs": {"0": ["uint8_t"]}}\n')
    assert judge(limited, wanted, {}).unknowns == ("the types of what saved optimizations make: QLinearAdd",)
    assert judge(runtime(CONFIG + "com.microsoft;1;QLinearAdd\n"), wanted, {}).unknowns == ()


def test_a_layout_of_one_processor_leaves_a_question() -> None:
    installed = runtime(CONFIG + "com.microsoft.nchwc;1;Conv\n")
    judged = judge(installed, model(use("Conv", 1, domain="com.microsoft.nchwc")), {})
    assert judged.fits
    assert "baked into the model" in judged.unknowns[0]


def test_a_layout_of_another_width_leaves_a_question() -> None:
    """A package tells how wide its library's blocks are; a model's own width stands nowhere."""
    installed = replace(runtime(CONFIG + "com.microsoft.nchwc;1;Conv\n"), channel_block=16)
    judged = judge(installed, model(use("Conv", 1, domain="com.microsoft.nchwc")), {})
    assert "in blocks of 16, as the runtime takes them" in judged.unknowns[0]
    assert judge(installed, model(use("Conv", 1, domain="com.microsoft.nchwc")), {}, converted=True).unknowns == ()


@given(models)
def test_no_model_fits_a_runtime_of_nothing(wanted: ModelUses) -> None:
    judged = judge(runtime(""), wanted, {})
    assert judged.fits is (not wanted.uses)
    assert len(judged.operators) == len({use.operator for use in wanted.uses})
