import json
from pathlib import Path
from typing import Any

import pytest

from ortrim.errors import ExitCode, StorageError, VerifyError
from ortrim.parity.runner import check_trace

# Recorded from the demo's trimmed library, built without exceptions.
RECORDED = """[
{"cat" : "Session","pid" :16648,"tid" :16648,"dur" :8747,"ts" :17404,"ph" : "X","name" :"session_initialization",\
"args" : {}},
{"cat" : "Node","pid" :16648,"tid" :16648,"dur" :5,"ts" :27670,"ph" : "X","name" :"node_Gather_3_kernel_time",\
"args" : {"input_type_shape" : [{"int64":[1]},{"int64":[]}],"output_type_shape" : [{"int64":[]}],\
"parameter_size" : "8","thread_scheduling_stats" : "","output_size" : "8","activation_size" : "8","node_index" : "1",\
"provider" : "CPUExecutionProvider","op_name" : "Gather"}}
]
"""


def refused(path: Path) -> VerifyError:
    with pytest.raises(VerifyError) as caught:
        check_trace(path, "ours.so with m.ort")
    assert (caught.value.exit_code, caught.value.where) == (ExitCode.VERIFY, "ours.so with m.ort")
    return caught.value


def test_a_trace_that_is_not_there(tmp_path: Path) -> None:
    assert refused(tmp_path / "trace.json").code == "trace-missing"


def test_names_that_are_not_escaped(tmp_path: Path) -> None:
    """A node's name with a quote makes a trace that nothing opens, and the hint says what to do about it."""
    (tmp_path / "trace.json").write_text(RECORDED.replace("node_Gather_3", 'the "best" node'))
    error = refused(tmp_path / "trace.json")
    assert (error.code, "rename" in error.hint, "line 3" in error.why) == ("trace-unreadable", True, True)


def _changed(**changes: Any) -> str:
    first, second = json.loads(RECORDED)
    return json.dumps([first, {key: value for key, value in (second | changes).items() if value is not ...}])


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", "null", "1", "[1]", "[[]]", "[" * 100_000, RECORDED[:-3], RECORDED[: len(RECORDED) // 2],
        _changed(ph="B"), _changed(name=7), _changed(ts=...), _changed(dur="5"), _changed(ts=1.5), _changed(tid=None),
    ],
)  # fmt: skip
def test_what_is_no_trace_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "trace.json").write_text(text)
    assert refused(tmp_path / "trace.json").code == "trace-unreadable"


def test_a_trace_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def broken(_: Path) -> bytes:
        raise OSError(5, "Input/output error")

    (tmp_path / "trace.json").write_text(RECORDED)
    monkeypatch.setattr(Path, "read_bytes", broken)
    with pytest.raises(StorageError) as caught:
        check_trace(tmp_path / "trace.json", "here")
    assert caught.value.code == "storage-failed"
