"""Running scripts inside the full runtime's Python."""

import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from ortrim.errors import ModelError, StorageError
from ortrim.models import full_runtime
from ortrim.models.full_runtime import FullRuntime, run_script
from refusing import refused

RUNTIME = FullRuntime(
    version="1.0.99", words=(sys.executable,), environment=dict(os.environ), packages=Path(), library=Path()
)
ANSWER = "import json, pathlib, sys\nrequest = pathlib.Path(sys.argv[1])\n"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(full_runtime, "SCRIPTS", tmp_path)
    return tmp_path / "script.py"


def test_the_answer_comes_back(script: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Whatever the script prints stays off our output, and nothing is left in the folder."""
    working = tmp_path / "working"
    working.mkdir()
    script.write_text(ANSWER + "print('noise')\nrequest.with_name('answer.json').write_bytes(request.read_bytes())\n")
    assert run_script(RUNTIME, "script.py", {"a": 1}, folder=working, where="m") == {"a": 1}
    assert capfd.readouterr() == ("", "")
    assert list(working.iterdir()) == []


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "crashed (SIGSEGV)"),
        ("import os; os.abort()", "crashed (SIGABRT)"),
        ("raise SystemExit(3)", "ended with exit code 3"),
        ("pass", "ended with exit code 0"),
        (ANSWER + "request.with_name('answer.json').write_text('{')", "ended with exit code 0"),
        (ANSWER + "request.with_name('answer.json').write_text('[]')", "gave no answer"),
    ],
)
def test_a_script_without_an_answer_is_a_crashed_converter(code: str, words: str, script: Path, tmp_path: Path) -> None:
    script.write_text(f"import sys; print('last words', file=sys.stderr)\n{code}\n")
    error = refused(ModelError, run_script, RUNTIME, "script.py", {}, folder=tmp_path, where="m")
    assert error.code == "crashes-runtime"
    assert words in error.what
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


def test_the_last_words_are_shown(script: Path, tmp_path: Path) -> None:
    """What the converter printed before it fell is the why."""
    script.write_text("import sys; sys.exit('out of memory')\n")
    assert refused(ModelError, run_script, RUNTIME, "script.py", {}, folder=tmp_path, where="m").why == "out of memory"


def test_our_scripts_hide_no_package(script: Path, tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit(9)\n")
    script.write_text(ANSWER + "request.with_name('answer.json').write_text(json.dumps({'b': 2}))\n")
    assert run_script(RUNTIME, "script.py", {}, folder=tmp_path, where="m") == {"b": 2}


@pytest.mark.parametrize(
    ("code", "left"),
    [
        ("raise SystemExit('OSError: [Errno 28] No space left on device')", 10**9),
        ("raise SystemExit(1)", 0),
        (ANSWER + 'request.with_name(\'answer.json\').write_text(\'{"failure": "a", "words": "b"}\')', 0),
    ],
    ids=["said", "unsaid", "answered"],
)
def test_a_full_disk_is_not_the_converters_fault(
    code: str, left: int, script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ONNX Runtime says only that it failed to save a file; nobody is to report that to it."""
    usage = SimpleNamespace(total=10**10, free=left)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    script.write_text(code)
    error = refused(StorageError, run_script, RUNTIME, "script.py", {}, folder=tmp_path, where="m")
    assert (error.code, error.where) == ("disk-full", str(tmp_path))
