"""The benchmark of session settings: who runs when, and what the table says."""

from pathlib import Path

from session_settings.measure import in_turn
from session_settings.record import Sample, rows_of, table
from session_settings.subject import CHOICES

from ortrim.verify.devices.device import CaseRun, MemoryUse, RunnerOutput, RunRequest
from ortrim.verify.verification import DeviceRuns


class Recorder:
    """A machine that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def run(self, request: RunRequest) -> RunnerOutput:
        """Answer."""
        self.asked.append(request.model.name)
        return sample(1, 1, 1).output


def request(name: str) -> RunRequest:
    """Return a run of a model."""
    return RunRequest(runner=Path("r"), library=Path("l"), model=Path(name), cases=())


def sample(load: float, each_run: float, cpu_seconds: float) -> Sample:
    """Return what a process took that ran one case three times."""
    times = (each_run, each_run, each_run)
    run = CaseRun(
        name="only", first_run_ms=9, outputs=(), runs=3, input_ms=(0, 0, 0), inference_ms=times, output_ms=(0, 0, 0)
    )
    memory = MemoryUse(
        opened_rss_bytes=1, loaded_rss_bytes=2, peak_rss_bytes=3, inference_peak_rss_bytes=3, peak_source="VmHWM"
    )
    output = RunnerOutput(
        schema="ortrim-runner/1", status="ok", runtime_version="1.21.0", open_ms=1, load_ms=load, cases=(run,),
        memory=memory,
    )  # fmt: skip
    return Sample(output=output, cpu_seconds=cpu_seconds)


def test_each_round_begins_with_the_next() -> None:
    """So that no setting always comes when the machine is at rest."""
    recorder = Recorder()
    samples = in_turn(recorder.run, {name: request(name) for name in "abc"}, 4, DeviceRuns(12, lambda *_: None))
    assert "".join(recorder.asked) == "abcbcacababc"
    assert {name: len(each) for name, each in samples.items()} == {"a": 4, "b": 4, "c": 4}
    assert all(sample.cpu_seconds >= 0 for each in samples.values() for sample in each)


def test_ratios_are_to_the_wheels_of_the_same_round() -> None:
    """The median of the ratios, not the ratio of the medians: a slow round is slow for both."""
    ours = [sample(load, each_run=1, cpu_seconds=0.5) for load in (1, 20, 3)]
    wheel = [sample(load, each_run=2, cpu_seconds=1) for load in (2, 40, 30)]
    rows = rows_of("m", {"wheel": wheel, "default": ours}, "wheel")
    assert [(row.case, row.setting) for row in rows] == [("only", "wheel"), ("only", "default")]
    assert [rows[1].ratio(measure) for measure in ("load_ms", "p50_ms", "cpu_ms")] == [0.5, 0.5, 0.5]
    assert rows[0].ratio("load_ms") == 1
    assert "| m, only | default | 3 (0.50) |" in table(rows)


def test_every_setting_is_changed_alone() -> None:
    """But spinning, which takes threads that could spin."""
    changed = {name: {key: value for key, value in vars(spec).items() if value is not None}
               for name, spec in CHOICES.items()}  # fmt: skip
    assert {name: len(keys) for name, keys in changed.items() if len(keys) != 1} == {
        "default": 0,
        "threads = 2, spinning": 2,
    }
    assert set().union(*changed.values()) == {"load", "in_place", "prepacking", "arena", "memory_pattern", "threads",
                                              "spinning", "inter_op_threads"}  # fmt: skip
