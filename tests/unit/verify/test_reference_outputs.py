import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from ortrim.errors import Diagnostic, ExitCode, StorageError, VerifyError
from ortrim.models.full_runtime import FullRuntime
from ortrim.models.models import PreparedModel
from ortrim.parity.inputs import Case
from ortrim.parity.reference import SCRIPT, reference_outputs
from program_files import write_program
from refusing import refused

MakeModel = Callable[..., PreparedModel]
INDEX = json.dumps(
    {
        "status": "ok",
        "runtime_version": "1.21.0",
        "cases": [
            {"name": "a", "outputs": [{"name": "y", "element_type": "int64", "shape": [], "file": "output_000.npy"}]}
        ],
        "entered": [],
    }
)
CASES = (Case(name="a", folder=Path("/cases/a"), digest="d"),)


def runtime(tmp_path: Path, script: str, version: str = "1.21.0") -> FullRuntime:
    """Return a full runtime whose Python is a shell script that also counts its calls."""
    program = write_program(tmp_path / "python", f'echo "$@" >> {tmp_path}/calls\n{script}')
    return FullRuntime(
        version=version,
        words=(str(program),),
        environment={"PATH": "/bin:/usr/bin"},
        packages=tmp_path,
        library=tmp_path,
    )


def test_outputs_are_made_once(make_model: MakeModel, tmp_path: Path) -> None:
    full = runtime(tmp_path, f"echo '{INDEX}'")
    first, second = (reference_outputs(make_model(), CASES, full, tmp_path / "reference") for _ in range(2))
    assert first == second
    assert (first.cases[0].name, first.cases[0].outputs[0].element_type) == ("a", "int64")
    assert len((tmp_path / "calls").read_text().splitlines()) == 1
    other = reference_outputs(
        make_model(), CASES, runtime(tmp_path, f"echo '{INDEX}'", "1.22.0"), tmp_path / "reference"
    )
    assert other.folder != first.folder


def test_the_script_gets_the_original_model_and_each_case(make_model: MakeModel, tmp_path: Path) -> None:
    reference_outputs(make_model(), CASES, runtime(tmp_path, f"echo '{INDEX}'"), tmp_path / "reference")
    words = (tmp_path / "calls").read_text().split()
    assert words[0] == str(SCRIPT)
    assert words[words.index("--model") + 1] == str(tmp_path / "tiny.onnx")
    assert words[-3:] == ["--case", "a", "/cases/a"]


@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        (
            """echo '{"status": "error", "message": "InvalidArgument: x"}'; exit 1""",
            "does-not-load",
            "InvalidArgument: x",
        ),
        ("kill -SEGV $$", "crashes-runtime", "crashed (SIGSEGV)"),
        ("echo Traceback >&2; exit 1", "reference-failed", "Traceback"),
        ("echo '[]'; exit 1", "reference-failed", "ended with exit code 1"),
    ],
)
def test_failures_say_why_and_leave_nothing(
    make_model: MakeModel, tmp_path: Path, script: str, code: str, words: str
) -> None:
    """A model that the full runtime refuses, and a full runtime that dies, are diagnostics; nothing is cached."""
    error = refused(
        Diagnostic, reference_outputs, make_model(), CASES, runtime(tmp_path, script), tmp_path / "reference"
    )
    expected = ExitCode.VERIFY if code == "reference-failed" else ExitCode.MODEL
    assert (error.code, error.exit_code) == (code, expected)
    assert words in f"{error.what} {error.why}"
    assert not list((tmp_path / "reference").glob("tiny-*"))


@pytest.mark.parametrize("words", ["std::bad_alloc", "Unable to allocate 1.00 GiB for an array"])
def test_a_machine_that_is_too_small_is_not_the_models_fault(make_model: MakeModel, tmp_path: Path, words: str) -> None:
    """As under `ulimit -v`: nothing is to be reported to ONNX Runtime, and no case is wrong."""
    script = f"""echo '{{"status": "error", "message": "{words}", "case": null}}'; exit 1"""
    error = refused(
        VerifyError, reference_outputs, make_model(), CASES, runtime(tmp_path, script), tmp_path / "reference"
    )
    assert error.code == "out-of-memory"
    assert "memory" in error.hint


def test_the_case_that_fails_is_named(make_model: MakeModel, tmp_path: Path) -> None:
    """A refusal while a case runs names it and says what to change in the buildspec."""
    document = {"status": "error", "message": "idx=9 must be within the inclusive range [-5,4]", "case": "long"}
    full = runtime(tmp_path, f"echo '{json.dumps(document)}'; exit 1")
    error = refused(
        VerifyError, reference_outputs, make_model(("ids", "int64", ("n",))), CASES, full, tmp_path / "reference"
    )
    assert error.where == "model 'tiny', case 'long'"
    assert "inputs = { ids = { high = 4 } }" in error.hint


def test_a_full_disk_is_not_the_models_fault(
    make_model: MakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outputs may be larger than the disk, or the temporary folder small; that is no refusal of the model."""
    full = runtime(tmp_path, "echo 'OSError: [Errno 28] No space left on device' >&2; exit 1")
    error = refused(StorageError, reference_outputs, make_model(), CASES, full, tmp_path / "reference")
    assert (error.code, error.where) == ("disk-full", str(tmp_path / "reference"))
    sizes = {tmp_path / "temporary": 4096}
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(total=10**9, free=sizes.get(path, 10**8)))
    error = refused(StorageError, reference_outputs, make_model(), CASES, full, tmp_path / "reference")
    assert error.where == str(tmp_path / "temporary")
    assert "TMPDIR" in error.hint


@pytest.mark.parametrize("script", ["echo hello", "true", """echo '{"status": "ok"}'"""])
def test_a_script_that_says_nothing_useful(make_model: MakeModel, tmp_path: Path, script: str) -> None:
    """A good exit code without the description of the outputs is refused, and not kept for the next run."""
    error = refused(
        VerifyError, reference_outputs, make_model(), CASES, runtime(tmp_path, script), tmp_path / "reference"
    )
    assert error.code == "reference-failed"
    assert not list((tmp_path / "reference").glob("tiny-*"))


def test_a_missing_python(make_model: MakeModel, tmp_path: Path) -> None:
    full = runtime(tmp_path, "")
    Path(full.words[0]).unlink()
    error = refused(VerifyError, reference_outputs, make_model(), CASES, full, tmp_path / "reference")
    assert error.code == "reference-failed"
