import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from ortrim.base.command import Completed
from ortrim.errors import ExitCode, VerifyError
from ortrim.models.refusals import LOCALE_HINT
from ortrim.parity import runner
from ortrim.parity.inputs import Case

REQUEST = runner.RunRequest(
    runner=Path("/runner"),
    library=Path("/lib/ours.so"),
    model=Path("/m.ort"),
    cases=(Case(name="a", folder=Path("/cases/a"), digest="d"),),
)
# Recorded from the runner with the official wheel's library and silero_vad.
REPORT: dict[str, Any] = json.loads(
    '{"schema":"ortrim-runner/1","status":"ok","runtime_version":"1.21.0","open_ms":14.529311,"load_ms":15.164204,'
    '"cases":[{"name":"a","first_run_ms":0.449968,"outputs":[{"name":"output","element_type":"float32","shape":[1,1],'
    '"file":"output_000.npy"},{"name":"stateN","element_type":"float32","shape":[2,1,128],"file":"output_001.npy"}],'
    '"runs":2,"input_ms":[0.000420,0.000381],"inference_ms":[0.084916,0.085707],"output_ms":[0.000651,0.000611]}],'
    '"memory":{"opened_rss_bytes":15478784,"loaded_rss_bytes":29315072,"peak_rss_bytes":30318592,'
    '"inference_peak_rss_bytes":29700096,"peak_source":"VmHWM"}}'
)


def completed(returncode: int = 0, stdout: str = "", stderr: str = "") -> Completed:
    return Completed(argv=("/runner",), returncode=returncode, stdout=stdout, stderr=stderr)


def refused(done: Completed) -> VerifyError:
    with pytest.raises(VerifyError) as caught:
        runner.read_output(done, REQUEST)
    assert caught.value.exit_code == ExitCode.VERIFY
    assert caught.value.where == "ours.so with m.ort"
    return caught.value


def test_a_model_is_named_as_people_call_it() -> None:
    """In the cache all converted models have one file name."""
    request = dataclasses.replace(REQUEST, model=Path("/cache/model.ort"), name="kws")
    assert runner.place_of(request) == "ours.so with kws"
    assert runner.never_ended(request).where == runner.out_of_memory(request, "").where == "ours.so with kws"
    with pytest.raises(runner.RunnerEnded) as caught:
        runner.read_output(completed(4, json.dumps({"message": "no kernel"})), request)
    assert (caught.value.code, caught.value.where) == ("model-refused", "ours.so with kws")


def test_a_machine_without_proc_tells_less() -> None:
    """What the runner cannot know of its memory is null, and not nothing."""
    memory = REPORT["memory"] | {"opened_rss_bytes": None, "loaded_rss_bytes": None, "inference_peak_rss_bytes": None}
    output = runner.read_output(completed(stdout=json.dumps(REPORT | {"memory": memory})), REQUEST)
    assert (output.memory.opened_rss_bytes, output.memory.loaded_rss_bytes) == (None, None)


@pytest.mark.parametrize("code", runner.FAILURES)
def test_each_exit_code_has_its_reference(code: int) -> None:
    error = refused(completed(code, json.dumps({"status": "error", "message": "in its words"}), "noise"))
    assert (error.code, error.why) == (runner.FAILURES[code][0], "in its words")


@pytest.mark.parametrize("stdout", ["", "not json", "[]", "null", '{"message": ', "[" * 100_000])
def test_failures_without_words_show_what_was_printed(stdout: str) -> None:
    """When there is no report of the failure, the last lines of the error output stand in for it."""
    assert refused(completed(4, stdout, "first\nlast\n")).why == "first\nlast"


@pytest.mark.parametrize(
    ("number", "name", "hint"),
    [
        (6, "SIGABRT", "exceptions = true"),
        (9, "SIGKILL", "memory"),
        (7, "SIGBUS", "aligned"),
        (11, "SIGSEGV", ""),
        (60, "signal 60", ""),
    ],
)
def test_crashes_name_the_signal(number: int, name: str, hint: str) -> None:
    """A crash says how and, by the runner's last line, where."""
    error = refused(completed(-number, "", "runner: load /m.ort\n"))
    assert error.code == "runner-crashed"
    assert name in error.what
    assert hint in error.hint
    assert error.why == "runner: load /m.ort"


def test_words_of_the_library_need_no_other_build_to_be_read() -> None:
    """They stand above the hint."""
    error = refused(completed(-6, "", "runner: load /m.ort\nlibc++abi: terminating due to an uncaught exception\n"))
    assert (error.code, error.hint) == ("runner-crashed", "")


@pytest.mark.parametrize(
    "done",
    [
        completed(
            -6, "", "runner: load /m.ort\nlibc++abi: collate_byname<char>::collate_byname failed to construct for x"
        ),
        completed(4, '{"message": "Failed to construct locale with name:x"}'),
    ],
)
def test_a_cause_is_that_of_the_full_runtime(done: Completed) -> None:
    """Code, hint and exit code; how the runner ended is kept."""
    with pytest.raises(runner.RunnerEnded) as caught:
        runner.read_output(done, REQUEST)
    assert (caught.value.code, caught.value.exit_code) == ("locale-missing", ExitCode.MODEL)
    assert caught.value.returncode == done.returncode
    assert caught.value.hint == LOCALE_HINT


def test_an_illegal_instruction_is_a_verdict_of_its_own() -> None:
    """A processor that lacks an instruction is told apart from all other crashes, with what to do about it."""
    error = refused(completed(-4, "", "runner: open /l.so\n"))
    assert (error.code, error.why) == ("illegal-instruction", "runner: open /l.so")
    assert "processor" in error.what
    assert "older" in error.hint


@pytest.mark.parametrize(
    ("printed", "reference"),
    [('{"message":"out of memory"}', "out-of-memory"), ('{"message":"other"}', "runner-failed"), ("", "runner-failed")],
)
def test_the_runners_word_for_too_little_memory(printed: str, reference: str) -> None:
    """Its exit code alone could be another program's."""
    assert refused(completed(1, printed)).code == reference


@pytest.mark.parametrize(
    ("code", "printed", "told"),
    [
        (-6, "", "runner: load /m.ort\nbad_alloc was thrown in -fno-exceptions mode\n"),
        (-6, "", "runner: first run a\nstd::bad_alloc()\n"),
        (6, '{"message":"running Expand node. Status Message: std::bad_alloc"}', ""),
        (6, '{"message":"bfc_arena.cc:376 Failed to allocate memory for requested buffer of size 102400000"}', ""),
        (4, '{"message":"std::bad_alloc"}', ""),
        (3, '{"message":"libonnxruntime.so: failed to map segment: Cannot allocate memory"}', ""),
    ],
)
def test_the_librarys_words_for_too_little_memory(code: int, printed: str, told: str) -> None:
    """Recorded under `ulimit -v`: neither the model's fault nor a reason to build with exceptions."""
    error = refused(completed(code, printed, told))
    assert error.code == "out-of-memory"
    assert "memory" in error.what
    assert "memory" in error.hint
    assert isinstance(error, runner.RunnerEnded)
    assert error.returncode == code


def _without(key: str) -> str:
    return json.dumps({name: value for name, value in REPORT.items() if name != key})


def _memory_without(key: str) -> dict[str, Any]:
    return {name: value for name, value in REPORT["memory"].items() if name != key}


def _with_case(**changes: Any) -> str:
    return json.dumps(REPORT | {"cases": [REPORT["cases"][0] | changes]})


GARBAGE = {
    "nothing": "",
    "text": "hello",
    "half": json.dumps(REPORT)[:200],
    "two documents": json.dumps(REPORT) * 2,
    "another schema": json.dumps(REPORT | {"schema": "ortrim-runner/2"}),
    "an error": json.dumps(REPORT | {"status": "error"}),
    "no memory": _without("memory"),
    "no cases": _without("cases"),
    "another case": _with_case(name="b"),
    "a case too few": json.dumps(REPORT | {"cases": []}),
    "no samples": _with_case(runs=0, input_ms=[], inference_ms=[], output_ms=[]),
    "a sample too few": _with_case(inference_ms=[1.0]),
    "instructions of another run": _with_case(instructions=[7, 7, 7]),
    "wrong type": _with_case(first_run_ms="fast"),
    "an older runner's": json.dumps(REPORT | {"memory": _memory_without("inference_peak_rss_bytes")}),
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_what_is_no_report_is_garbage(kind: str) -> None:
    assert refused(completed(stdout=GARBAGE[kind])).code == "runner-garbage"


@pytest.mark.parametrize(("trace", "reference"), [(None, "trace-missing"), ("[{", "trace-unreadable")])
def test_a_trace_that_was_asked_for_is_looked_at(tmp_path: Path, trace: str | None, reference: str) -> None:
    """A good report without the trace, or with one that nothing opens, is not the end of a good run."""
    if trace is not None:
        (tmp_path / "trace.json").write_text(trace)
    done, request = completed(stdout=json.dumps(REPORT)), dataclasses.replace(REQUEST, outputs=tmp_path)
    assert runner.read_output(done, request).status == "ok"
    with pytest.raises(VerifyError) as caught:
        runner.read_output(done, dataclasses.replace(request, trace=True))
    assert caught.value.code == reference
