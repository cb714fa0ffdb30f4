"""The engines by name."""

import pytest

from ortrim.bench.engine_processes import SCRIPT
from ortrim.bench.engines import ENGINES, ONNXRUNTIME, USUAL, engines_named
from ortrim.errors import UsageError
from refusing import refused


def test_the_full_runtime_comes_first() -> None:
    assert [engine.name for engine in engines_named(("mnn", "tract", "mnn"))] == [ONNXRUNTIME, "mnn", "tract"]


def test_the_usual_ones_are_compared_unasked() -> None:
    assert tuple(engine.name for engine in engines_named(())) == USUAL
    assert "litert" not in USUAL
    assert ENGINES["litert"].converter


@pytest.mark.parametrize(
    ("name", "hint"), [("opnvino", "did you mean 'openvino'?"), ("", "choose from"), ("x" * 999, "choose")]
)
def test_an_unknown_engine_is_refused(name: str, hint: str) -> None:
    error = refused(UsageError, engines_named, (name,))
    assert error.code == "bad-option"
    assert hint in error.hint


def test_every_engine_has_its_script() -> None:
    scripts = {path.stem.removeprefix("engine_") for path in SCRIPT.parent.glob("engine_*.py")}
    assert scripts == set(ENGINES)
