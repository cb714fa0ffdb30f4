import tomllib

import pytest

from ortrim.models.models import ModelFacts, TensorInfo
from ortrim.parity.inputs import advice, crash_advice, toml_key

GATHER = "running Gather node. indices element out of data bounds, idx=9 must be within the inclusive range [-5,4]"
SHAPE = "running Conv node. Name:'' Status Message: Invalid input shape: {1,1}"
IDS = TensorInfo(name="input.ids", element_type="int64", shape=("batch", "seq"))


def facts(*inputs: TensorInfo) -> ModelFacts:
    return ModelFacts(sha256="a" * 64, size_bytes=1, ir_version=8, opsets=(), inputs=inputs, outputs=(), node_count=1)


def suggested(hint: str, key: str) -> dict[str, object]:
    line = next(part for part in hint.replace("; ", ": ").split(": ") if part.startswith(f"{key} = "))
    found: dict[str, object] = tomllib.loads(line)[key]
    return found


def test_indices_that_are_too_large() -> None:
    """The hint is TOML that can be pasted: `high` for each integer input, taken from the words when they tell it."""
    real = TensorInfo(name="x", element_type="float32", shape=(1,))
    assert suggested(advice(facts(real, IDS), GATHER), "inputs") == {"input.ids": {"high": 4}}
    assert "high = " in advice(facts(IDS), "GatherElements op: Out of range value in index tensor")


def test_divisions_by_zero() -> None:
    """A crash of integer arithmetic comes from zeros among the inputs."""
    assert suggested(crash_advice(facts(IDS), "crashed (SIGFPE)"), "inputs") == {"input.ids": {"low": 1}}


def test_dimensions_that_are_too_small() -> None:
    """Named dimensions are suggested by name, others as the shape of their input."""
    assert suggested(advice(facts(IDS), SHAPE), "dimensions") == {"batch": 160, "seq": 160}
    image = TensorInfo(name="x", element_type="float32", shape=(1, 3, None, None))
    assert suggested(advice(facts(image), SHAPE), "inputs") == {"x": {"shape": [1, 3, 160, 160]}}


def test_without_anything_to_change_there_are_recordings() -> None:
    """A model of fixed shapes is helped by recorded inputs alone."""
    assert "'data'" in advice(facts(TensorInfo(name="x", element_type="float32", shape=(2,))), SHAPE)


@pytest.mark.parametrize(
    "name", ["plain-key_1", "input:0", 'quo"te', "Zürich", "two words", "", "tab\t", "back\\slash"]
)
def test_any_name_becomes_a_key(name: str) -> None:
    """Whatever a model calls its inputs, TOML reads it back."""
    assert tomllib.loads(f"{toml_key(name)} = 1") == {name: 1}
