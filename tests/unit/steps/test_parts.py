"""Extract, outputs and merge: parts of models."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from onnx_samples import model_of, value, weighted, write
from ortrim.buildspec.step_specs import Extract, Merge, Outputs
from ortrim.errors import ModelError
from ortrim.steps.inputs_outputs import change_outputs, extract, merge
from ortrim.steps.step import Workplace
from stepped_models import SHAPE, feeds_for, layered, outputs_of, same_outputs, with_branch

MERGE = Merge(use="merge", path=Path("other.onnx"), connect={"y": "x"}, prefix="after_")


def test_a_part_gives_what_its_values_are_in_the_whole(place: Workplace) -> None:
    """Its inputs are taken from the whole model, and its outputs are compared with it."""
    done = extract(layered(), Extract(use="extract", inputs=("m",), outputs=("r",)), place)
    assert [node.name for node in done.model.graph.node] == ["second", "third"]
    assert [tensor.name for tensor in done.model.graph.initializer] == ["b"]
    assert done.observed is not None
    assert done.feeding is not None
    whole = outputs_of(done.observed, feeds_for(layered()))
    feeds = done.feeding.forward({**feeds_for(layered()), **whole})
    assert set(feeds) == {"m"}
    assert np.array_equal(outputs_of(done.model, feeds)["r"], whole["r"])


def test_the_whole_can_be_extracted(place: Workplace) -> None:
    """Between its own inputs and outputs the model gives the same."""
    done = extract(layered(), Extract(use="extract", inputs=("x",), outputs=("y",)), place)
    assert same_outputs(layered(), done.model, feeds_for(layered()))
    assert len(done.model.graph.node) == 4


@pytest.mark.parametrize("names", [("nothing",), ("then",)])
def test_values_that_are_not_there_are_refused(names: tuple[str, ...], place: Workplace) -> None:
    """Those of inner graphs cannot be taken either."""
    with pytest.raises(ModelError, match=f"the model has no value '{names[0]}'"):
        extract(with_branch(), Extract(use="extract", inputs=("x",), outputs=names), place)
    with pytest.raises(ModelError, match=f"the model has no value '{names[0]}'"):
        change_outputs(with_branch(), Outputs(use="outputs", add=names), place)


def test_outputs_are_added_and_dropped(place: Workplace) -> None:
    done = change_outputs(layered(), Outputs(use="outputs", add=("a",), drop=("y",)), place)
    assert [each.name for each in done.model.graph.output] == ["a"]
    assert [tensor.name for tensor in done.model.graph.initializer] == ["w", "b"]
    assert done.notes == ("removed 2 nodes that only dropped outputs needed",)
    assert done.observed is not None
    whole = outputs_of(done.observed, feeds_for(layered()))
    assert np.array_equal(outputs_of(done.model, feeds_for(layered()))["a"], whole["a"])


def test_outputs_that_are_there_change_nothing(place: Workplace) -> None:
    """Adding an output that the model has leaves it alone."""
    done = change_outputs(layered(), Outputs(use="outputs", add=("y",)), place)
    assert (done.model, done.observed) == (layered(), None)


def test_a_model_needs_an_output(place: Workplace) -> None:
    """The last one cannot be dropped, nor one that is none."""
    with pytest.raises(ModelError, match="no output is left"):
        change_outputs(layered(), Outputs(use="outputs", drop=("y",)), place)
    with pytest.raises(ModelError, match="no output 'r'"):
        change_outputs(layered(), Outputs(use="outputs", drop=("r",)), place)


def test_another_model_is_appended(place: Workplace, tmp_path: Path) -> None:
    """What one gives the other takes; its names get the prefix, and its file stays as it is."""
    other = model_of([helper.make_node("Neg", ["x"], ["y"])], [value("x", shape=SHAPE)], [value("y", shape=SHAPE)])
    content = write(tmp_path / "other.onnx", other).read_bytes()
    done = merge(layered(), MERGE, place)
    expected = -outputs_of(layered(), feeds_for(layered()))["y"]
    assert np.array_equal(outputs_of(done.model, feeds_for(layered()))["after_y"], expected)
    assert done.appended is not None
    assert done.appended.model == other
    assert done.appended.connect == {"x": "y"}
    assert (tmp_path / "other.onnx").read_bytes() == content


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (replace(MERGE, path=Path("absent.onnx")), "cannot be read as an ONNX model"),
        (replace(MERGE, path=Path("broken.onnx")), "cannot be read as an ONNX model"),
        (replace(MERGE, connect={"y": "q"}), "nothing feeds the input 'x'"),
        (replace(MERGE, prefix=""), "cannot be appended"),
        (replace(MERGE, connect={"q": "x"}), "cannot be appended"),
    ],
)
def test_a_model_that_does_not_fit_is_refused(options: Merge, words: str, place: Workplace, tmp_path: Path) -> None:
    """A file that is none, an input that nothing feeds, and names that both have; both models stay as they are."""
    given, content = layered(), write(tmp_path / "other.onnx", deepcopy(layered())).read_bytes()
    (tmp_path / "broken.onnx").write_bytes(b"\x0a\xff")
    with pytest.raises(ModelError, match=words) as caught:
        merge(given, options, place)
    assert caught.value.code == "step-failed"
    assert given == layered()
    assert (tmp_path / "other.onnx").read_bytes() == content


@pytest.mark.parametrize("location", ["w.bin", "data/w.bin"])
def test_the_other_model_cannot_take_files_of_this_machine(location: str, place: Workplace, tmp_path: Path) -> None:
    """Neither through a link of its own nor through a linked folder."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "w.bin").write_bytes(bytes(16))
    base = tmp_path / "base"
    base.mkdir()
    (base / "w.bin").symlink_to(tmp_path / "secret" / "w.bin")
    (base / "data").symlink_to(tmp_path / "secret")
    write(base / "other.onnx", weighted(location))
    with pytest.raises(ModelError, match="cannot be read as an ONNX model"):
        merge(layered(), MERGE, replace(place, base=base))
