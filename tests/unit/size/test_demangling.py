from pathlib import Path
from typing import Any

import pytest

from ortrim.compiling.size import accounting
from ortrim.compiling.size.accounting import demangled
from ortrim.errors import ToolError


def test_names_of_cxx_are_demangled_and_others_left() -> None:
    """Only names that the compiler mangled are in the answer; one that is cut short is as it was."""
    names = ["_ZN11onnxruntime4reluEPKfi", "main", "_Zbroken", "_ZN3foo\n3barEv"]
    assert demangled(names) == {
        "_ZN11onnxruntime4reluEPKfi": "onnxruntime::relu(float const*, int)",
        "_Zbroken": "_Zbroken",
    }
    assert demangled([]) == {}


def test_a_long_name_is_left_as_it_is() -> None:
    """A name longer than any compiler writes is not given to the demangler."""
    name = "_Z" + "1a" * 10_001
    assert demangled([name]) == {name: name[:20_000]}


def test_a_demangler_that_does_not_answer_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timeout, a crash or a wrong number of lines leave the names as they are."""

    def times_out(*_: Any, **__: Any) -> None:
        raise ToolError("tool-timeout", "did not end")

    monkeypatch.setattr(accounting, "run", times_out)
    assert demangled(["_Z1fv"]) == {}


def test_a_crash_of_the_demangler_is_not_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "demangle.py"
    script.write_text("import os\nprint('f()', flush=True)\nos.abort()\n")
    monkeypatch.setattr(accounting, "SCRIPT", script)
    assert demangled(["_Z1fv"]) == {}
    script.write_text("print('one')\nprint('two')\n")
    assert demangled(["_Z1fv"]) == {}
