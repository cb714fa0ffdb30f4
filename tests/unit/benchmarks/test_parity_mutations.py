"""Damage to libraries and models: what each mutation changes, and that parity notices what matters."""

import random
from collections import Counter
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from parity.mutations import Mutation, code_mutations, model_mutations

from ortrim.verify.cases import save_array
from ortrim.verify.devices.device import SavedOutput
from ortrim.verify.measurements import Verdict
from ortrim.verify.parity import compare
from ortrim.verify.reference import CaseOutputs, SavedOutputs

DATA = Path(__file__).parents[1]
MODEL = Path(__file__).parents[3] / "benchmarks" / "kernels" / "quantized.onnx"
LIBRARY = DATA / "binaries" / "data" / "tiny.so"
CASES = 3
Weights = tuple[NDArray[np.float32], ...]


def test_a_mutation_changes_its_bytes_alone() -> None:
    """The file keeps its size, so that nothing in it moves."""
    mutation = Mutation(kind="k", place="p", edits=((1, b"xy"), (4, b"z")))
    assert mutation.applied(b"abcdef") == b"axydzf"


@pytest.fixture
def converted(tmp_path: Path) -> Path:
    """Return a quantized model in ORT format."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(tmp_path / "model.ort")
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(MODEL, options, providers=["CPUExecutionProvider"])
    return tmp_path / "model.ort"


def test_everything_in_a_model_is_damaged_in_turn(converted: Path) -> None:
    """Each mutation makes another file of the same size, of weights, channels or a zero point."""
    content = converted.read_bytes()
    mutations = list(model_mutations(converted))
    damaged = {mutation.applied(content) for mutation in mutations}
    assert content not in damaged
    assert {len(each) for each in damaged} == {len(content)}
    kinds = Counter(mutation.kind for mutation in mutations)
    assert (kinds["two channels swapped"], kinds["zero point by one"]) == (4, 2)
    assert kinds["weights by 0.1 % up"] == kinds["weights by 0.1 % up or down"] == 5


def test_single_bytes_of_executed_kernel_code_are_changed() -> None:
    """Each is of the function `kernel`, and the same ones are drawn again."""
    content, link_map, executed = LIBRARY.read_bytes(), LIBRARY.with_name("tiny.map"), range(0x1000, 0x2000)
    first, again = (
        list(code_mutations(LIBRARY, link_map, executed, 9, random.Random(0)))  # noqa: S311 - to be repeatable
        for _ in range(2)
    )
    assert first == again
    assert len(first) == 9
    for mutation in first:
        changed = [one != other for one, other in zip(content, mutation.applied(content), strict=True)]
        assert (sum(changed), mutation.place.split(",")[0]) == (1, "kernel")


def test_code_that_was_not_executed_stays_as_it_is() -> None:
    """A mutant of it would show nothing."""
    draw = random.Random(0)  # noqa: S311 - to be repeatable, not secret
    assert list(code_mutations(LIBRARY, LIBRARY.with_name("tiny.map"), (), 9, draw)) == []


def network(given: NDArray[np.float32], weights: Weights) -> NDArray[np.float32]:
    """Return the class probabilities of a small network."""
    hidden = np.tanh(given @ weights[0] + weights[1])
    scores = hidden @ weights[2] + weights[3]
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True), np.float32)


@pytest.fixture
def weights() -> Weights:
    """Return the weights of the network."""
    draw = np.random.default_rng(3)
    return tuple(draw.normal(0, 1, shape).astype(np.float32) for shape in ((16, 32), (32,), (32, 10), (10,)))


def outputs(folder: Path, weights: Weights, noise: float = 0.0) -> SavedOutputs:
    """Run the network on all cases, each element off by as much as `noise` of itself."""
    cases = []
    for number in range(CASES):
        draw = np.random.default_rng(number)
        values = network(draw.normal(0, 1, (4, 16)).astype(np.float32), weights)
        values = (values * (1 + noise * draw.choice([-1, 1], values.shape))).astype(np.float32)
        place = folder / f"case-{number}"
        place.mkdir(parents=True)
        file = save_array(place, "output_000", values).name
        output = SavedOutput(name="classes", element_type="float32", shape=values.shape, file=file)
        cases.append(CaseOutputs(name=place.name, outputs=(output,)))
    return SavedOutputs(folder=folder, cases=tuple(cases))


def fails(reference: SavedOutputs, ours: SavedOutputs) -> bool:
    """Whether any output is out of tolerance."""
    return any(each.verdict is Verdict.FAIL for each in compare("network", reference, ours, {}))


def test_a_thousandth_of_any_weights_is_noticed(tmp_path: Path, weights: Weights) -> None:
    """The differences that conditions make of a model are not."""
    reference, draw = outputs(tmp_path / "reference", weights), np.random.default_rng(0)
    assert not fails(reference, outputs(tmp_path / "noise", weights, noise=5e-5))
    for number, each in enumerate(weights):
        changed = (each * (1 + 1e-3 * draw.choice([-1, 1], each.shape))).astype(np.float32)
        damaged = (*weights[:number], changed, *weights[number + 1 :])
        assert fails(reference, outputs(tmp_path / str(number), damaged))


def test_swapped_channels_are_noticed(tmp_path: Path, weights: Weights) -> None:
    """Two neurons of the first layer change places, their outgoing weights do not."""
    swapped = weights[0][:, [1, 0, *range(2, 32)]]
    reference = outputs(tmp_path / "reference", weights)
    assert fails(reference, outputs(tmp_path / "swapped", (swapped, *weights[1:])))
