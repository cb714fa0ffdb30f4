"""The benchmark of verdicts: what it makes worse, which verdicts it finds in recorded rounds, and its table."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from budget_verdicts import slowed
from budget_verdicts.measure import trial
from budget_verdicts.record import Judged, Trial, table, true_ratios
from budget_verdicts.slowed import WORSE, slowed_library

from ortrim.base.command import Completed
from ortrim.verify import measurements
from ortrim.verify.cases import Case
from ortrim.verify.devices.device import CaseRun, MemoryUse, RunnerOutput, RunRequest
from ortrim.verify.judge import LOAD, P50, PEAK
from ortrim.verify.measure import Measurement
from ortrim.verify.measurements import Verdict

UNIT_MS = 3e-5


class Machine:
    """A machine on which a library takes as much more as was compiled into it, and one process more than another."""

    name = "fake"
    memory_meaningful = True
    time_meaningful = True

    def __init__(self, compiled: dict[str, dict[str, float]]) -> None:
        self.compiled = compiled
        self._random = np.random.default_rng(1)

    def facts(self) -> measurements.HostFacts:
        """Describe no machine."""
        raise NotImplementedError

    def close(self) -> None:
        """Leave nothing."""

    def run(self, request: RunRequest) -> RunnerOutput:
        """Answer."""
        more = self.compiled.get(request.library.name, {})
        noise = float(np.exp(self._random.normal(0, 0.01)))
        cases = tuple(_case(case.name, noise * (0.1 + UNIT_MS * more.get("WORK", 0))) for case in request.cases)
        peak = round(noise * (10_000_000 + more.get("MEMORY", 0)))
        memory = MemoryUse(
            opened_rss_bytes=1,
            loaded_rss_bytes=2,
            peak_rss_bytes=peak,
            inference_peak_rss_bytes=None,
            peak_source="VmHWM",
        )
        return RunnerOutput(
            schema="ortrim-runner/1",
            status="ok",
            runtime_version="1.21.0",
            open_ms=1,
            load_ms=noise * (8 + UNIT_MS * more.get("LOAD_WORK", 0)),
            cases=cases,
            memory=memory,
        )


def _case(name: str, ms: float) -> CaseRun:
    return CaseRun(name=name, first_run_ms=1, outputs=(), runs=1, input_ms=(0.0,), inference_ms=(ms,), output_ms=(0.0,))


@pytest.fixture(name="plan")
def fixture_plan(tmp_path: Path) -> Measurement:
    """Return the measurement of a library beside its copy, with an input of 576 numbers."""
    np.save(tmp_path / "input_000.npy", np.zeros((1, 576), np.float32))
    return Measurement(
        model="m",
        runner=Path("runner"),
        library=tmp_path / "same.so",
        ort_model=Path("m.ort"),
        baseline_library=tmp_path / "copy.so",
        onnx_model=Path("m.ort"),
        cases=(Case(name="one", folder=tmp_path, digest="d"),),
    )


def test_the_slowed_library_takes_five_percent_more(
    plan: Measurement, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each: the amounts are found by running libraries with other amounts."""
    compiled: dict[str, dict[str, float]] = {}

    def compile_it(words: tuple[str, ...]) -> Completed:
        defined = dict(word[2:].split("=", 1) for word in words if word.startswith("-D"))
        size, units = defined["WORK"].strip("{}").split(",")
        assert size == "576"
        amounts = {"WORK": float(units), **{name: float(defined[name]) for name in ("LOAD_WORK", "MEMORY")}}
        compiled[Path(words[-2]).name] = amounts
        return Completed(argv=(), returncode=0, stdout="", stderr="")

    monkeypatch.setattr(slowed, "run", compile_it)
    monkeypatch.setattr(slowed, "packages_folder", lambda *_: tmp_path)
    machine = Machine(compiled)
    library = slowed_library(machine, plan, tmp_path, tmp_path)
    amounts = compiled[library.name]
    more = {
        "WORK": 1 + UNIT_MS * amounts["WORK"] / 0.1,
        "LOAD_WORK": 1 + UNIT_MS * amounts["LOAD_WORK"] / 8,
        "MEMORY": 1 + amounts["MEMORY"] / 10_000_000,
    }
    assert more == pytest.approx(dict.fromkeys(more, WORSE), abs=0.005)


@pytest.mark.parametrize(("kind", "worse", "found"), [("same", 0.0, Verdict.PASS), ("slowed", 1.0, Verdict.FAIL)])
def test_a_trial_is_a_verification(plan: Measurement, kind: str, worse: float, found: Verdict) -> None:
    """The same library passes with 3 % more as its budget; what is far worse fails each."""
    amounts = {"WORK": worse / UNIT_MS, "LOAD_WORK": 9 * worse / UNIT_MS, "MEMORY": 9_000_000 * worse}
    machine = Machine({"same.so": amounts})
    done = trial(machine, plan, "same" if kind == "same" else "slowed")
    verdicts = {each.measure: each.verdict for each in done.judged if each.budget == 1.03}
    assert verdicts == dict.fromkeys((P50, PEAK, LOAD), found)
    assert {name: len(ratios) for name, ratios in done.ratios.items()}.keys() == {PEAK, LOAD, "one"}
    assert all(each.rounds == 9 for each in done.judged if each.budget == 1.03)


def test_the_table_counts_verdicts() -> None:
    """One line for each library, measure and budget."""
    judged = Judged(measure=LOAD, budget=1.03, verdict=Verdict.FAIL, rounds=36)
    first = Trial(
        kind="slowed", cases=8, load_average=2.0, seconds=9.0, judged=(judged,), ratios={LOAD: (1.04, 1.05, 1.06)}
    )
    second = replace(first, load_average=4.0, judged=(replace(judged, verdict=Verdict.INCONCLUSIVE, rounds=144),))
    line = table([first, second, second]).splitlines()[-1]
    assert line == "| 5 % worse | 8 | load | 1.03 | 0 | 2 | 1 | 144 | 2.0-4.0 |"
    assert true_ratios([first, second]) == {("slowed", LOAD): (1.05, 6)}
