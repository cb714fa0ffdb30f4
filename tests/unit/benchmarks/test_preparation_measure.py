"""Measuring what steps bring: rounds, what was measured before, failures and interruptions."""

from collections.abc import Callable
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from footprint import rounds as turns
from footprint.record import read_or_begin
from preparation import measure as module
from preparation.measure import SPECS, Wanted, measure
from preparation.record import PreparationRecord

from footprint_samples import MACHINE, TimedDevice
from ortrim.base.console import Console
from ortrim.errors import DiagnosticGroup, ExitCode, StorageError, UsageError, VerifyError
from ortrim.platforms import target_problems
from ortrim.spec.load import load_spec
from preparation_samples import BOTH, LIBRARIES, TIMES, both_contest, change


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> TimedDevice:
    """Return the machine on which everything is measured, at rest, with nothing to build."""
    machine = TimedDevice(TIMES)
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(turns, "Host", lambda: machine)
    monkeypatch.setattr(turns, "wait_for_rest", lambda *_: 0.25)
    monkeypatch.setattr(module, "Host", lambda: machine)
    monkeypatch.setattr(module, "this_machine", lambda: MACHINE)
    monkeypatch.setattr(module, "built_pair", lambda spec, *_: pair(spec.stem))
    monkeypatch.setattr(module, "proved", proved)
    return machine


def pair(name: str, **digests: str) -> Any:
    """Return what a spec with one model is built to."""
    contests = (both_contest(name, **digests),)
    return SimpleNamespace(name=name, contests=lambda: contests, prepared=SimpleNamespace(kinds=lambda: ()))


def proved(_pair: Any, contests: Any, _device: Any) -> Any:
    """Return what is known of a pair."""
    return LIBRARIES, tuple(change(spec=each.spec, key=each.key) for each in contests)


Ran = Callable[..., PreparationRecord]


@pytest.fixture
def ran(tmp_path: Path) -> Ran:
    """Return a function that measures into a folder."""

    def run(*specs: str, rounds: int = 2) -> PreparationRecord:
        text = StringIO()
        console = Console(stdout=text, stderr=text, environment={}, width=200)
        names = tuple(map(Path, specs or ("demo.toml",)))
        return measure(Wanted(specs=names, rounds=rounds, output=tmp_path / "out"), console)

    return run


def test_every_default_spec_is_there_and_all_its_models_have_steps() -> None:
    """Eight buildspecs, eleven models."""
    specs = [load_spec(spec, target_problems).spec for spec in SPECS]
    assert len(specs) == 8
    assert [bool(model.steps) for spec in specs for model in spec.models] == [True] * 11


def test_what_is_measured_is_written_with_its_table(tmp_path: Path, machine: TimedDevice, ran: Ran) -> None:
    """Each round begins with the other library."""
    found = ran()
    assert machine.ran == [*BOTH, *reversed(BOTH)]
    assert read_or_begin(tmp_path / "out" / "preparation.json", PreparationRecord(machine=MACHINE)) == found
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"preparation.json", "preparation.md"}
    assert "| demo: net | " in (tmp_path / "out" / "preparation.md").read_text()


def test_a_second_call_goes_on(machine: TimedDevice, ran: Ran) -> None:
    """More rounds are added to those that are there."""
    ran(rounds=2)
    assert len(ran(rounds=2).rounds) == 2
    assert len(ran(rounds=3).rounds) == 3
    assert len(machine.ran) == 3 * len(BOTH)


def test_another_library_of_either_is_measured_anew(
    machine: TimedDevice, ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the one that it is compared with."""
    ran(rounds=1)
    monkeypatch.setattr(module, "built_pair", lambda *_: pair("demo", prepared="other"))
    found = ran(rounds=1)
    assert len(machine.ran) == 2 * len(BOTH)
    assert [each.key for each in found.changes] == [both_contest(prepared="other").key]


def test_an_interruption_leaves_the_rounds_that_are_over(tmp_path: Path, machine: TimedDevice, ran: Ran) -> None:
    """The table is of what there is, and the next call goes on."""
    machine.ends = {len(BOTH) + 1: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        ran(rounds=3)
    record = read_or_begin(tmp_path / "out" / "preparation.json", PreparationRecord(machine=MACHINE))
    assert [each.number for each in record.rounds] == [1]
    assert (tmp_path / "out" / "preparation.md").read_text().endswith(" | 1 |\n")
    assert [each.number for each in ran(rounds=3).rounds] == [1, 2, 3]


def test_an_interruption_before_anything_is_known_leaves_nothing(
    tmp_path: Path, machine: TimedDevice, ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even a folder."""

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "built_pair", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ran()
    assert not (tmp_path / "out").exists()


def test_a_failing_spec_does_not_keep_the_others_back(machine: TimedDevice, ran: Ran) -> None:
    """It is raised in the end."""
    machine.ends = {0: VerifyError("runner-crashed", "oh", where="first")}
    with pytest.raises(DiagnosticGroup) as caught:
        ran("first.toml", "second.toml")
    assert (caught.value.code, caught.value.exit_code) == ("runner-crashed", ExitCode.VERIFY)
    found = ran("second.toml")
    assert {each.spec for each in found.rounds} == {"second"}
    assert [each.spec for each in found.changes] == ["first", "second"]
    assert len(machine.ran) == 2 * len(BOTH)


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_built(
    tmp_path: Path, machine: TimedDevice, ran: Ran
) -> None:
    """A file is in its place."""
    (tmp_path / "out").write_text("mine")
    with pytest.raises(StorageError) as caught:
        ran()
    assert (caught.value.code, machine.ran) == ("path-in-the-way", [])
    assert (tmp_path / "out").read_text() == "mine"


def test_two_measurements_at_once_are_refused(
    tmp_path: Path, machine: TimedDevice, ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would measure each other."""

    def again(spec: Path, *_: Any) -> Any:
        with pytest.raises(UsageError) as caught:
            ran("other.toml")
        assert caught.value.code == "already-measuring"
        return pair(spec.stem)

    monkeypatch.setattr(module, "built_pair", again)
    assert {each.spec for each in ran().rounds} == {"demo"}
