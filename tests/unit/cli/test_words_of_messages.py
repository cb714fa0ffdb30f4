"""Messages name the program that was called, and options where the user has no buildspec."""

from pathlib import Path

import pytest

from onnx_samples import relu, write
from ortrim.cli import boundary as boundary_module
from ortrim.cli.boundary import as_data, boundary, reworded
from ortrim.errors import Diagnostic, DiagnosticGroup, ModelError
from ortrim.models.refusals import BELOW_8_BITS
from ortrim.parity.inputs import RECORDED
from program_runs import Ended, Run


@pytest.mark.parametrize("name", ["ortrim", "invoke"])
def test_hints_name_the_program_that_was_called(ortrim: Run, name: str) -> None:
    """In diagnostics, as JSON, and in the help of options."""
    runs: dict[str, Ended] = {
        "api src": ortrim("api", name=name),
        "lint MODEL.onnx": ortrim("lint", name=name),
        "bundle` wrote": ortrim("--help", "build", name=name),
        "runs shows": ortrim("--help", "attach", name=name),
    }
    for words, ended in runs.items():
        assert f"{name} {words}" in " ".join((ended.out + ended.err).split()), words
    (error,) = ortrim("api", "--json", name=name).document()["errors"]
    assert error["hint"] == f"name a folder: {name} api src"


def test_notes_name_it_too(ortrim: Run) -> None:
    """What a task says at its end."""
    write(Path("m.onnx"), relu())
    for name in ("ortrim", "invoke"):
        ended = ortrim("init", "m.onnx", "--output", name, name=name)
        assert f"edit it, then run: {name} build {name}/m.toml" in ended.out


def as_options(error: Diagnostic, *, in_options: bool = True) -> str:
    """Return a diagnostic's hint as a task about models shows it."""
    with boundary(in_options=in_options):
        return str(as_data(error)[-1]["hint"])


def test_a_version_is_an_option_beside_models() -> None:
    """Also in the middle of a sentence; with a buildspec it is its key."""
    error = ModelError("weights-below-8-bits", "no", hint=BELOW_8_BITS)
    assert "set onnxruntime.version to 1.27" in as_options(error, in_options=False)
    assert as_options(ModelError("a", "b", hint=RECORDED)) == "; or give recorded inputs by --data"
    assert as_options(error).startswith("quantize the weights to 8 bits (step quantize), or set --ort-version to 1.27")


@pytest.mark.parametrize("hint", ["set level = 'basic' or 'disable'", "cut it (step quantize)", "inputs = { x = 1 }"])
def test_what_a_buildspec_alone_has_comes_with_the_way_to_one(hint: str) -> None:
    """Once, however often it is asked for; not where there is a buildspec."""
    error = DiagnosticGroup((ModelError("a", "b"), ModelError("a", "b", hint=hint)))
    assert as_options(error, in_options=False) == hint
    assert as_options(error) == as_options(error) == f"{hint}; invoke init MODEL writes a buildspec, to edit, for that"
    assert as_options(ModelError("a", "b", hint="export it with locale = 'C'")) == "export it with locale = 'C'"


def test_nothing_stays_when_a_task_ends() -> None:
    """Neither the program nor the options."""
    with boundary(in_options=True):
        assert reworded("onnxruntime.version") == "--ort-version"
    assert reworded("onnxruntime.version: invoke build") == "onnxruntime.version: invoke build"
    assert boundary_module.PROGRAM.get() == "invoke"
