"""What is in a model or a configuration."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from onnx_samples import branching, model_of, weighted, write
from ortrim.analysis.inspect import inspect_config, inspect_onnx, inspect_ort
from ortrim.errors import ExitCode, ModelError, OperatorsError
from ortrim.models.operators import OperatorId
from refusing import refused

RECORDED = Path(__file__).parents[1] / "models" / "data" / "branching_first.ort"


def operator(name: str, opset: int, domain: str = "ai.onnx") -> OperatorId:
    return OperatorId(domain=domain, opset=opset, name=name)


def test_an_onnx_model_shows_its_operators(tmp_path: Path) -> None:
    seen = inspect_onnx(write(tmp_path / "m.onnx", branching()))
    names = ("Abs", "Exp", "Floor", "If", "Neg", "Relu", "Sqrt", "Tanh")
    assert seen["operators"] == tuple((operator(name, 17), 1) for name in names)
    assert [(tensor.name, tensor.element_type) for tensor in seen["facts"].inputs] == [("x", "float32"), ("c", "bool")]


def test_an_onnx_model_shows_the_files_it_needs(tmp_path: Path) -> None:
    assert inspect_onnx(write(tmp_path / "m.onnx", weighted("w.bin")))["external_files"] == ("w.bin",)


def test_an_onnx_model_of_any_opset_can_be_looked_at(tmp_path: Path) -> None:
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], opsets=[("", 99)])
    assert inspect_onnx(write(tmp_path / "m.onnx", model))["facts"].opsets == (("ai.onnx", 99),)


def test_a_model_in_ort_format_shows_its_version_and_operators() -> None:
    seen = inspect_ort(RECORDED)
    assert (seen["format_version"], seen["ir_version"]) == ("6", 8)
    assert ("ai.onnx", 17) in seen["opsets"]
    assert (seen["inputs"], seen["outputs"]) == (("x", "c"), ("y",))
    since_13 = ("Abs", "Exp", "Floor", "Neg", "Sqrt", "Tanh")
    since = [*((name, 13) for name in since_13), ("Relu", 14), ("If", 16)]
    assert seen["operators"] == tuple((operator(name, opset), 1) for name, opset in since)
    assert not seen["runtime_optimizations"]


@pytest.mark.parametrize("content", [b"", b"ORTM", b"<html>", b"\0" * 64, RECORDED.read_bytes()[:100]])
def test_what_is_not_ort_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m.ort"
    path.write_bytes(content)
    error = refused(ModelError, inspect_ort, path)
    assert error.code == "not-ort"
    assert error.exit_code == ExitCode.MODEL


@given(st.integers(0, RECORDED.stat().st_size - 1), st.binary(min_size=1, max_size=8))
def test_damaged_models_end_in_a_diagnostic(
    tmp_path_factory: pytest.TempPathFactory, position: int, junk: bytes
) -> None:
    data = RECORDED.read_bytes()
    path = tmp_path_factory.getbasetemp() / "damaged.ort"
    path.write_bytes(data[:position] + junk + data[position + len(junk) :])
    try:
        inspect_ort(path)
    except ModelError as error:
        assert error.code == "not-ort"  # noqa: PT017 - both outcomes are right


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    for inspect in (inspect_onnx, inspect_ort):
        assert refused(ModelError, inspect, tmp_path / "absent").code == "model-missing"


def test_a_configuration_shows_its_operators(tmp_path: Path) -> None:
    path = tmp_path / "my.config"
    path.write_text('ai.onnx;11;Add{"inputs": {"0": ["float"]}},Relu\n')
    seen = inspect_config(path)
    assert len(seen["required"].operators) == 2
    assert seen["restricted_count"] == 1


@pytest.mark.parametrize("content", [b"\xff\xfe\0", None])
def test_an_unreadable_configuration_is_refused(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "my.config"
    if content is not None:
        path.write_bytes(content)
    assert refused(OperatorsError, inspect_config, path).code == "config-unreadable"
