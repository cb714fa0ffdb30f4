"""`profile` from what was asked for to the traces that it leaves."""

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from bench_samples import HOST, runner_output
from ortrim.base.console import Console
from ortrim.bench import profile as profile_module
from ortrim.bench import run as bench_module
from ortrim.bench.profile import microseconds_text, profile_tables, profiles_of
from ortrim.errors import Diagnostic, UsageError, VerifyError
from ortrim.parity.runner import TRACE, RunnerOutput, RunRequest
from ortrim.verify.operator_times import NodeTime, OperatorProfile, operators_of
from pipeline_stages import Stages
from refusing import refused

TWO_CASES: Final = '[[models.cases]]\nname = "one"\n[[models.cases]]\nname = "two"\nseed = 1\n'
PLACE: Final = {"pid": 7, "tid": 7, "ph": "X"}
EVENTS: Final = [
    {**PLACE, "cat": "Node", "ts": 5, "dur": 3, "name": "relu_kernel_time", "args": {"op_name": "Relu"}},
    {**PLACE, "cat": "Session", "ts": 4, "dur": 9, "name": "model_run", "args": {}},
]


class Machine:
    """Leaves a trace where it was asked for one."""

    def __init__(self) -> None:
        self.asked: list[RunRequest] = []
        self.trace = json.dumps(EVENTS)
        self.ending: BaseException | None = None

    def __call__(self, _cores: tuple[int, ...]) -> "Machine":
        """Stand in for the class of the machine on which ortrim runs."""
        return self

    def facts(self) -> Any:
        return HOST

    def run(self, request: RunRequest) -> RunnerOutput:
        self.asked.append(request)
        if self.ending:
            raise self.ending
        assert request.outputs is not None
        (request.outputs / TRACE).write_text(self.trace)
        return runner_output(request)


@pytest.fixture(name="machine")
def fixture_machine(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> Machine:
    (stages.folder / "full.so").write_bytes(b"the whole runtime")
    made = Machine()
    monkeypatch.setattr(profile_module, "Host", made)
    executor = SimpleNamespace(run_runner=lambda _: Path("runner"))
    monkeypatch.setattr(bench_module, "executor_for", lambda *_: executor)
    return made


def test_each_case_has_a_profile_and_a_trace(stages: Stages, machine: Machine) -> None:
    """By the official wheel, with the settings of the buildspec; the trace is of one inference."""
    found = profiles_of(stages.request(TWO_CASES), "", (), 5, stages.console)
    assert [(each.profile.model, each.profile.case) for each in found] == [("tiny", "one"), ("tiny", "two")]
    assert found[0].profile.measured_with == "onnxruntime 1.21.0 (official wheel)"
    assert found[0].profile.operators[0].operator == "Relu"
    assert found[0].trace == stages.folder / "artifacts" / "profile" / "tiny-one.trace.json"
    document = json.loads(found[0].trace.read_text())
    assert document["traceEvents"][0]["args"] == {"name": "tiny one"}
    (first, _) = machine.asked
    assert (first.repetition.runs, first.trace, first.model.suffix) == (5, True, ".onnx")


def test_one_case_may_be_chosen(stages: Stages, machine: Machine) -> None:
    request = stages.request(TWO_CASES)
    (found,) = profiles_of(request, "", ("two",), 5, stages.console)
    assert found.profile.case == "two"
    machine.asked.clear()
    error = refused(UsageError, profiles_of, request, "", ("three",), 5, stages.console)
    assert (error.code, error.hint) == ("no-such-case", "there are: one, two")
    assert machine.asked == []


@pytest.mark.parametrize("ending", [VerifyError("runner-crashed", "it crashed"), KeyboardInterrupt()])
def test_a_run_that_fails_leaves_nothing(stages: Stages, machine: Machine, ending: BaseException) -> None:
    machine.ending = ending
    with pytest.raises(type(ending)):
        profiles_of(stages.request(), "", (), 5, stages.console)
    assert not (stages.folder / "artifacts" / "profile").exists()


@pytest.mark.parametrize(
    ("trace", "reference"), [("[", "trace-unreadable"), (json.dumps(EVENTS[1:]), "trace-without-operators")]
)
def test_a_trace_of_no_use_is_a_diagnostic(stages: Stages, machine: Machine, trace: str, reference: str) -> None:
    machine.trace = trace
    assert refused(Diagnostic, profiles_of, stages.request(), "", (), 5, stages.console).code == reference
    assert not (stages.folder / "artifacts" / "profile").exists()


def profile() -> OperatorProfile:
    nodes = (
        NodeTime(name="conv_1", operator="Conv", calls=1.0, microseconds=2400.0, share=0.6),
        NodeTime(name="x\x1b[2J" + "y" * 100, operator="Conv", calls=3.0, microseconds=1500.0, share=0.375),
        NodeTime(name="relu", operator="Relu", calls=2.5, microseconds=100.0, share=0.025),
    )
    return OperatorProfile(
        model="net", case="one", measured_with="a wheel", inferences=21, run_microseconds=5000.0,
        operators=operators_of(nodes), nodes=nodes,
    )  # fmt: skip


def shown(top: int | None) -> str:
    stdout = io.StringIO()
    Console(stdout=stdout, width=80, environment={}).render(profile_tables(profile(), top))
    return stdout.getvalue()


def test_operators_and_nodes_with_time_share_and_calls() -> None:
    """In 80 columns, whatever the names are."""
    text = shown(None)
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    assert "a wheel; median of 21 inferences: 4.00 ms in nodes of 5.00 ms for an inference" in text.replace("\n", " ")
    words = [[word for word in line.split() if not set(word) & set("━╸")] for line in text.splitlines()]
    assert ["Conv", "3.90", "ms", "97.5", "%", "4", "2"] in words
    assert ["relu", "100", "µs", "2.5", "%", "2.5", "Relu"] in words


def test_what_is_left_out_is_summed_up() -> None:
    text = shown(1)
    assert "1 other operator" in text
    assert "2 other nodes" in text


def test_microseconds_as_text() -> None:
    assert [microseconds_text(value) for value in (0.5, 12.5, 999.0, 1000.0)] == [
        "0.500 µs",
        "12.5 µs",
        "999 µs",
        "1.00 ms",
    ]
