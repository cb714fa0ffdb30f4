"""Steps of a model's preparation in a buildspec: read, and refused in exact words."""

from collections.abc import Callable
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]  # has no types of its own
import pytest

from ortrim.buildspec.buildspec import LoadedSpec
from ortrim.buildspec.schema import buildspec_schema, known_keys
from ortrim.buildspec.step_specs import Batch, Opset, Strip

MODEL = '[[models]]\nname = "m"\npath = "m.onnx"\n'
STEP = f"{MODEL}[[models.steps]]\n"


def test_steps_are_read_in_order(load: Callable[[str], LoadedSpec]) -> None:
    text = (
        f'{STEP}use = "opset"\nversion = 17\noptional = true\n[[models.steps]]\nuse = "batch"\nsize = "N"\n'
        '[[models.steps]]\nuse = "strip"\n'
    )
    opset, batch, strip = load(text).models[0].steps
    assert isinstance(opset, Opset)
    assert (opset.version, opset.optional) == (17, True)
    assert isinstance(batch, Batch)
    assert batch.size == "N"
    assert isinstance(strip, Strip)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ('use = "opse"', "'models[0].steps[0].use' must be 'simplify', "),
        ('use = "opse"', "hint: did you mean 'opset'?"),
        ("", "'models[0].steps[0].use' is missing"),
        ("use = 3", "'models[0].steps[0].use' must be 'simplify', "),
        ('use = "opset"', "'models[0].steps[0].version' is missing"),
        ('use = "opset"\nversion = 6', "'models[0].steps[0].version' must be at least 7, not 6"),
        ('use = "opset"\nversion = 17\nverson = 1', "hint: did you mean 'version'?"),
        ('use = "strip"\nsize = 1', "'models[0].steps[0].size' is not a known key"),
        ('use = "batch"\nsize = 0', "'models[0].steps[0].size' must be at least 1, not 0"),
        ('use = "fix-dimensions"\nsizes = {}', "'models[0].steps[0].sizes' is empty"),
        ('use = "extract"\ninputs = []\noutputs = ["y"]', "'models[0].steps[0].inputs' is empty"),
        ('use = "outputs"\nadd = [""]', "'models[0].steps[0].add[0]' is empty"),
        ('use = "strip"\ntolerances = { float3 = {} }', "hint: did you mean 'float32'?"),
        ('use = "strip"\ntolerances = { float32 = { absolut = 1 } }', "hint: did you mean 'absolute'?"),
        ('use = "rename"', "'models[0].steps[0]' has nothing to do"),
        ('use = "outputs"', "'models[0].steps[0]' has nothing to do"),
        (
            'use = "strip"\nmetadata = false\ndocumentation = false\nproducer = false',
            "'models[0].steps[0]' has nothing to do",
        ),
        ('use = "strip"\nmetadata = false\nkeep = ["a"]', "'models[0].steps[0].keep' has no meaning with"),
        ('use = "outputs"\nadd = ["a"]\ndrop = ["a"]', "'models[0].steps[0].drop' has 'a' twice"),
        ('use = "extract"\ninputs = ["a", "a"]\noutputs = ["y"]', "'models[0].steps[0].inputs' has 'a' twice"),
        ('use = "merge"\npath = "n.onnx"\nconnect = { y = "x" }', "'models[0].steps[0].path' names 'n.onnx', which"),
        (
            'use = "merge"\npath = "m.onnx"\nconnect = { y = "x", z = "x" }',
            "'models[0].steps[0].connect' has 'x' twice",
        ),
        ('use = "quantize"\nmode = "static"\ndata = ["n.npz"]', "'models[0].steps[0].data' names 'n.npz', which"),
        ('use = "quantize"\ndata = ["inputs.npz"]', "'models[0].steps[0].data' has a meaning only with mode"),
    ],
)
def test_a_wrong_step_is_refused(refused: Callable[[str], str], keys: str, words: str) -> None:
    assert words in refused(f"{STEP}{keys}\n")


def test_steps_have_to_be_tables(refused: Callable[[str], str]) -> None:
    assert "'models[0].steps[0]' must be a table, not a string" in refused(f'{MODEL}steps = ["strip"]\n')


def test_known_keys_are_those_of_the_kind() -> None:
    assert known_keys(("models", 0, "steps", 1, "opset"))[-2:] == ("use", "version")
    assert "absolute" in known_keys(("models", 0, "steps", 1, "tolerances", "float32"))


def test_the_schema_tells_the_kinds_apart(folder: Path) -> None:
    """An editor refuses a key of another step."""
    validator = jsonschema.Draft202012Validator(buildspec_schema())
    model = {"name": "m", "path": str(folder / "m.onnx")}
    assert validator.is_valid({"models": [{**model, "steps": [{"use": "opset", "version": 17}]}]})
    assert not validator.is_valid({"models": [{**model, "steps": [{"use": "strip", "version": 17}]}]})
    assert not validator.is_valid({"models": [{**model, "steps": [{"version": 17}]}]})
