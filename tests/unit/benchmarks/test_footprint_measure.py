"""Measuring: rounds, what was measured before, failures and interruptions."""

from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from footprint import measure as module
from footprint import rounds as turns
from footprint.contenders import Contest
from footprint.measure import SPECS, Wanted, measure
from footprint.record import ModelKind, Record, read_record
from footprint.rounds import measure_round

from footprint_samples import MACHINE, NAMES, TimedDevice, contest, library
from ortrim.base.console import Console
from ortrim.errors import DiagnosticGroup, ExitCode, UsageError, VerifyError


def test_a_round_has_every_contender_once_in_its_order() -> None:
    """Each is told of before it runs; the first run is not among those that are summed up."""
    machine, told = TimedDevice(), list[str]()
    measured = measure_round(machine, contest(), 2, 0.25, lambda each: told.append(each.name))  # type: ignore[arg-type]
    assert machine.ran == told == [*NAMES[1:], NAMES[0]]
    assert (measured.number, measured.key, measured.busy_processors) == (2, contest().key, 0.25)
    ours = measured.of("balanced")
    assert ours is not None
    assert (ours.load_ms, ours.peak_rss_bytes, ours.cases[0].p50_ms, ours.cases[0].runs) == (7.0, 3, 4.5, 3)
    assert ours.cases[0].first_run_ms == 13.5


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> TimedDevice:
    """Return the machine on which everything is measured, at rest, with nothing to build."""
    machine = TimedDevice()
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "Host", lambda: machine)
    monkeypatch.setattr(turns, "Host", lambda: machine)
    monkeypatch.setattr(module, "this_machine", lambda: MACHINE)
    monkeypatch.setattr(turns, "wait_for_rest", lambda *_: 0.25)
    monkeypatch.setattr(module, "libraries_of", lambda *_: (library("balanced", 9),))
    monkeypatch.setattr(module, "built_subject", lambda spec, *_: subject(spec.stem, contest()))
    return machine


def subject(name: str, *contests: Contest) -> Any:
    """Return what a spec is built to."""
    own = tuple(replace(each, spec=name) for each in contests)
    kinds = (ModelKind(spec=name, model="net", convolutions=True, layout=False),)
    return SimpleNamespace(name=name, contests=lambda: own, kinds=lambda: kinds)


Ran = Callable[..., Record]


@pytest.fixture
def ran(tmp_path: Path) -> Ran:
    """Return a function that measures into a folder; what it printed is in `printed`."""

    def run(*specs: str, rounds: int = 2, profiles: str = "") -> Record:
        text = StringIO()
        console = Console(stdout=text, stderr=text, environment={}, width=200)
        names = tuple(map(Path, specs or ("demo.toml",)))
        wanted = Wanted(specs=names, rounds=rounds, profiles=profiles, output=tmp_path / "out")
        return measure(wanted, console)

    return run


def test_the_default_specs_are_there() -> None:
    """Five models of five kinds."""
    assert len(SPECS) == 5
    assert all(spec.is_file() for spec in SPECS)


def test_what_is_measured_is_written_with_its_report_and_pictures(
    tmp_path: Path, machine: TimedDevice, ran: Ran
) -> None:
    """Each round begins with another contender."""
    found = ran()
    assert machine.ran == [*NAMES, *NAMES[1:], NAMES[0]]
    assert read_record(tmp_path / "out" / "footprint.json", MACHINE) == found
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"footprint.json", "footprint.md", "footprint-latency.svg", "footprint-memory.svg"}


def test_rounds_that_were_measured_are_left_out(machine: TimedDevice, ran: Ran) -> None:
    """More rounds are added to those that are there."""
    ran(rounds=2)
    assert len(ran(rounds=2).rounds) == 2
    assert len(ran(rounds=3).rounds) == 3
    assert len(machine.ran) == 3 * len(NAMES)


def test_another_library_is_measured_anew(machine: TimedDevice, ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    """With everything that it is compared with."""
    ran(rounds=1)
    monkeypatch.setattr(module, "built_subject", lambda *_: subject("demo", contest(balanced="other")))
    assert len(ran(rounds=1).rounds) == 2
    assert len(machine.ran) == 2 * len(NAMES)


def test_an_interruption_loses_no_more_than_the_round_under_way(tmp_path: Path, machine: TimedDevice, ran: Ran) -> None:
    """The report is of what there is, and the next call goes on."""
    machine.ends = {len(NAMES) + 2: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        ran(rounds=3)
    assert [each.number for each in read_record(tmp_path / "out" / "footprint.json", MACHINE).rounds] == [1]
    assert "demo: net (1 rounds)" in (tmp_path / "out" / "footprint.md").read_text()
    assert [each.number for each in ran(rounds=3).rounds] == [1, 2, 3]


def test_an_interruption_before_the_first_round_leaves_no_report(
    tmp_path: Path, machine: TimedDevice, ran: Ran
) -> None:
    """There is nothing to report."""
    machine.ends = {0: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        ran()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["footprint.json"]


def test_a_failing_spec_does_not_keep_the_others_from_being_measured(machine: TimedDevice, ran: Ran) -> None:
    """It is raised in the end."""
    machine.ends = {0: VerifyError("runner-crashed", "oh", where="first")}
    with pytest.raises(DiagnosticGroup) as caught:
        ran("first.toml", "second.toml")
    assert (caught.value.code, caught.value.exit_code) == ("runner-crashed", ExitCode.VERIFY)
    assert {each.spec for each in ran("second.toml").rounds} == {"second"}
    assert len(machine.ran) == 2 * len(NAMES)


def test_a_wrong_profile_is_refused_before_anything_is_made(tmp_path: Path, machine: TimedDevice, ran: Ran) -> None:
    """Not after the builds."""
    with pytest.raises(UsageError):
        ran(profiles="tiny")
    assert machine.ran == []
    assert not (tmp_path / "out").exists()
