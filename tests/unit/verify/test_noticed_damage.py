"""Damage to a model of which parity has to say that it matters."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ortrim.parity.compare import compare
from ortrim.parity.inputs import save_array
from ortrim.parity.measurements import Verdict
from ortrim.parity.reference import CaseOutputs, SavedOutputs
from ortrim.parity.runner import SavedOutput

CASES = 3
Weights = tuple[NDArray[np.float32], ...]


def network(given: NDArray[np.float32], weights: Weights) -> NDArray[np.float32]:
    hidden = np.tanh(given @ weights[0] + weights[1])
    scores = hidden @ weights[2] + weights[3]
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True), np.float32)


@pytest.fixture
def weights() -> Weights:
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
