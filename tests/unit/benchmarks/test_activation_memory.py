"""The benchmark of activations' memory: its subjects, and what its table says."""

import io
from pathlib import Path

import onnx
import pytest
from activation_memory.measure import Wanted, measure
from activation_memory.record import Row, table
from activation_memory.subjects import SUBJECTS, Subject, model_of

from ortrim.base.console import Console
from ortrim.errors import UsageError

LIGHT = tuple(subject for subject in SUBJECTS if not subject.wheel)


def test_models_of_wheels_are_pinned() -> None:
    """By version and digest, each with a name of its own."""
    assert len({subject.name for subject in SUBJECTS}) == len(SUBJECTS)
    assert all("==" in each.wheel and len(each.sha256) == 64 for each in SUBJECTS if each.wheel)


@pytest.mark.parametrize("subject", LIGHT, ids=lambda subject: subject.name)
def test_networks_of_onnx_have_the_inputs_named(subject: Subject, tmp_path: Path) -> None:
    """And no others: weights that are inputs could not be folded."""
    model = onnx.load(model_of(subject, "1.21.0", tmp_path))
    found = {each.name: tuple(size.dim_value for size in each.type.tensor_type.shape.dim) for each in model.graph.input}
    assert found == dict(subject.shapes)


def test_the_table_says_how_far_off_a_prediction_is() -> None:
    """In per cent of what was measured, with its sign."""
    sizes = {"file_bytes": 54_000_000, "lifetime_bytes": 40_000_000, "predicted_bytes": 51_000_000}
    row = Row(name="net", form="as it is", **sizes, measured_bytes=50_000_000)
    assert row.off == pytest.approx(0.02)
    assert table((row,)).splitlines()[-1] == "| net | 54.0 | as it is | 40.0 | 51.0 | 50.0 | +2.0% |"


def test_models_that_are_no_subjects_are_refused(tmp_path: Path) -> None:
    """Before anything is fetched or written."""
    console = Console(stdout=io.StringIO(), stderr=io.StringIO(), environment={})
    with pytest.raises(UsageError) as refused:
        measure(Wanted(models=("vgg19", "vgg20"), output=tmp_path / "out"), console)
    assert (refused.value.code, refused.value.where) == ("bad-option", "--models")
    assert not (tmp_path / "out").exists()
