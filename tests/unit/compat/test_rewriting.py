"""The same model in another opset or IR version."""

from pathlib import Path

import onnx
import pytest
from onnx import helper

from onnx_samples import model_of, relu, weighted, write
from ortrim.analysis.compat import at_opset, since_versions


def opset_of(path: Path) -> int:
    return int(next(entry.version for entry in onnx.load(path).opset_import if not entry.domain))


@pytest.mark.parametrize("opset", [15, 18])
def test_a_model_is_written_in_another_opset(tmp_path: Path, opset: int) -> None:
    path = write(tmp_path / "m.onnx", relu())
    before = path.read_bytes()
    assert at_opset(path, opset, tmp_path / "new.onnx")
    assert opset_of(tmp_path / "new.onnx") == opset
    assert path.read_bytes() == before


def test_what_onnx_cannot_convert_is_no_error(tmp_path: Path) -> None:
    model = model_of([helper.make_node("Gelu", ["x"], ["y"], domain="com.microsoft")], opsets=[("", 17)])
    assert not at_opset(write(tmp_path / "m.onnx", model), 13, tmp_path / "new.onnx")
    assert not (tmp_path / "new.onnx").exists()


def test_weights_in_other_files_come_along(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(16))
    path = write(tmp_path / "m.onnx", weighted("w.bin"))
    (tmp_path / "else where").mkdir()
    assert at_opset(path, 14, tmp_path / "else where" / "new.onnx")
    assert len(onnx.load(tmp_path / "else where" / "new.onnx").graph.initializer[0].raw_data) == 16


@pytest.mark.parametrize("location", ["absent.bin", "../outside.bin"])
def test_weights_that_cannot_be_read_are_no_error(tmp_path: Path, location: str) -> None:
    (tmp_path / "outside.bin").write_bytes(bytes(16))
    (tmp_path / "in").mkdir()
    path = write(tmp_path / "in" / "m.onnx", weighted(location))
    assert not at_opset(path, 14, tmp_path / "new.onnx")
    assert not (tmp_path / "new.onnx").exists()


def test_operators_have_the_version_that_an_opset_gives_them() -> None:
    assert since_versions(["Relu", "Abs"], 17) == {"Relu": 14, "Abs": 13}
    assert since_versions(["Relu", "Gelu"], 17) is None
    assert since_versions([], 17) == {}
