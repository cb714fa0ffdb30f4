"""A session: what is measured, what is left out, and what becomes of failures."""

from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from build_time.cases import CASES, Case
from build_time.record import Measurement, Record, read_record
from build_time.session import Manner, Session

from ortrim.base.console import Console
from ortrim.errors import BuildError, DiagnosticGroup, ExitCode

Measure = Callable[..., Measurement]
ONE, TWO = CASES[0], CASES[1]


class Bench:
    """A bench that measures at once, or fails."""

    def __init__(self, measured: Measure) -> None:
        self.pair = SimpleNamespace(own=SimpleNamespace(name="demo", sources=Path("none")), key=self.key)
        self.commit = "a"
        self.failing: set[str] = set()
        self.asked: list[tuple[str, int, float]] = []
        self._measured = measured

    def key(self, case: Case) -> str:
        """Name what is measured."""
        return f"{case.name}-{self.commit}"

    def prepare(self, case: Case, _: object) -> Path:
        """Return a cache."""
        return Path(case.name)

    def measure(self, case: Case, cache: Path, number: int, load: float, _: object) -> Measurement:
        """Measure without any work."""
        assert cache == Path(case.name)
        self.asked.append((case.name, number, load))
        if case.name in self.failing:
            raise BuildError("case-failed", "oh", where=case.name)
        return self._measured(case=case.name, round=number, key=self.key(case), busy_processors=load)


@pytest.fixture
def bench(measured: Measure, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Return a bench on a machine at rest with nothing to read."""
    monkeypatch.setattr("build_time.session.packages_folder", lambda *_: Path("none"))
    monkeypatch.setattr("build_time.session.wait_for_rest", lambda *_: 0.25)
    return Bench(measured)


class Printed:
    """A session with what it printed."""

    def __init__(self, output: Path, **manner: Any) -> None:
        self.text = StringIO()
        console = Console(stdout=self.text, stderr=self.text, environment={}, width=200)
        self.session = Session(Manner(output=output, **manner), console)

    def run(self, bench: Bench, *planned: tuple[int, Case]) -> Record:
        """Measure and return the record."""
        self.session.run(bench, planned)  # type: ignore[arg-type]
        return self.session.record


def test_each_measurement_is_in_the_file_at_once(tmp_path: Path, bench: Bench) -> None:
    """A kill loses no more than the case under way."""
    printed = Printed(tmp_path)
    bench.failing = {TWO.name}
    printed.run(bench, (1, ONE), (1, TWO))
    written = read_record(tmp_path / "build-time.json", printed.session.record.machine)
    assert [each.case for each in written.measurements] == [ONE.name]
    assert bench.asked[0] == (ONE.name, 1, 0.25)


def test_what_was_measured_is_left_out(tmp_path: Path, bench: Bench) -> None:
    """The same case in another round is not."""
    Printed(tmp_path).run(bench, (1, ONE), (1, TWO))
    printed = Printed(tmp_path)
    printed.run(bench, (1, ONE), (1, TWO), (2, ONE))
    assert [asked[:2] for asked in bench.asked] == [(ONE.name, 1), (TWO.name, 1), (ONE.name, 2)]
    assert "measured before" in printed.text.getvalue()


def test_another_commit_is_measured_anew(tmp_path: Path, bench: Bench) -> None:
    """Both stay in the record."""
    Printed(tmp_path).run(bench, (1, ONE))
    bench.commit = "b"
    assert len(Printed(tmp_path).run(bench, (1, ONE)).measurements) == 2


def test_again_measures_anew_and_replaces(tmp_path: Path, bench: Bench) -> None:
    """The old value is not mixed into a median."""
    Printed(tmp_path).run(bench, (1, ONE))
    assert len(Printed(tmp_path, again=True).run(bench, (1, ONE)).measurements) == 1
    assert len(bench.asked) == 2


def test_a_plan_measures_nothing_and_leaves_nothing(tmp_path: Path, bench: Bench) -> None:
    """But says what would be measured."""
    printed = Printed(tmp_path / "output", plan_only=True)
    printed.run(bench, (1, ONE))
    printed.session.conclude(("demo",))
    assert bench.asked == []
    assert f"demo: {ONE.name}, round 1: to be measured ({ONE.text})" in printed.text.getvalue()
    assert not (tmp_path / "output").exists()


def test_a_failure_does_not_stop_the_others_and_is_raised_in_the_end(tmp_path: Path, bench: Bench) -> None:
    """After the tables, with the exit code of its class."""
    printed = Printed(tmp_path)
    bench.failing = {ONE.name}
    record = printed.run(bench, (1, ONE), (1, TWO))
    assert [each.case for each in record.measurements] == [TWO.name]
    with pytest.raises(DiagnosticGroup) as caught:
        printed.session.conclude(("demo",))
    assert (caught.value.code, caught.value.exit_code) == ("case-failed", ExitCode.BUILD)
    assert TWO.name in printed.text.getvalue()


def test_a_measurement_beside_other_work_is_marked(
    tmp_path: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the table, with an explanation below."""
    monkeypatch.setattr("build_time.session.wait_for_rest", lambda *_: 3.0)
    printed = Printed(tmp_path)
    printed.run(bench, (1, ONE))
    printed.session.conclude(("demo",))
    assert "1*" in printed.text.getvalue()
    assert "something else was running" in printed.text.getvalue()


def test_a_session_without_measurements_shows_no_table(tmp_path: Path) -> None:
    """Only where the record would be."""
    printed = Printed(tmp_path)
    printed.session.conclude(("demo",))
    assert printed.text.getvalue() == f"record: {tmp_path / 'build-time.json'}\n"


def test_the_manner_is_kept(tmp_path: Path) -> None:
    """Whoever draws a graph has to know whether to write it."""
    assert replace(Printed(tmp_path, plan_only=True).session.manner, plan_only=False) == Manner(output=tmp_path)
