"""Builds beside the one that was accepted."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ortrim.errors import ExitCode, StorageError, UsageError
from ortrim.pipeline import history as acceptance
from ortrim.report import history
from ortrim.report.history import NAME, Allowed, Record, append, entry_of
from refusing import refused
from sample_builds import sample_entry
from sample_reports import recorded_report

LOCAL = history.MeasuredOn(
    device="host", machine="Linux, x86_64, Xeon, 2 cores", memory_meaningful=1, time_meaningful=1
)
EMULATOR = history.MeasuredOn(device="qemu-user", machine="Linux, aarch64", memory_meaningful=0, time_meaningful=0)
MODEL = history.BuiltModel(name="silero", original_sha256="a" * 64, sha256="b" * 64)
BEFORE = sample_entry(machines=(LOCAL, EMULATOR), models=(MODEL,))


def held(
    after: history.BuildEntry, allowed: history.Allowed | None = None, before: history.BuildEntry = BEFORE
) -> history.Check:
    return history.check(
        after, history.AcceptedBuild(entry=before, accepted_at="", note=""), allowed or history.Allowed()
    )


def grown(measure: str, factor: float) -> history.BuildEntry:
    """Return the accepted build with one measure of all models and devices larger."""
    measures = (
        replace(each, value=each.value * factor) if each.measure == measure else each for each in BEFORE.measures
    )
    return replace(BEFORE, measures=tuple(measures))


def test_the_same_figures_are_no_regression() -> None:
    assert held(BEFORE).regressions == ()
    assert held(replace(grown("p50", 0.1), file_bytes=1)).regressions == ()


@pytest.mark.parametrize(
    ("after", "measures"),
    [
        (replace(BEFORE, file_bytes=int(BEFORE.file_bytes * 1.011)), ["library"]),
        (replace(BEFORE, file_bytes=int(BEFORE.file_bytes * 1.009)), []),
        (replace(BEFORE, package_bytes=2 * BEFORE.package_bytes), ["package"]),
        (grown("peak memory", 1.06), ["peak memory"]),
        (grown("peak memory", 1.04), []),
        (grown("p50", 1.11), ["p50", "p50"]),
        (grown("load", 1.11), ["load"]),
        (grown("p50", 1.09), []),
    ],
)
def test_what_grows_by_more_than_is_allowed_is_one(after: history.BuildEntry, measures: list[str]) -> None:
    """One percent of size, five of memory, ten of latency; each case of a model counts."""
    assert [line.measure for line in held(after).regressions] == measures


def test_instructions_are_compared_on_every_machine() -> None:
    """One percent more is too many, wherever they were counted; a build without them fails nothing."""
    counted = history.Measure(
        device="qemu-user", model="silero", case="c", measure="instructions", unit="instructions", value=1000.0
    )
    before = replace(BEFORE, measures=(counted,))
    other = replace(LOCAL, machine="Linux, x86_64, EPYC, 64 cores")
    after = [
        replace(before, measures=(replace(counted, value=value),), machines=(other, EMULATOR))
        for value in (1010.0, 1011.0)
    ]
    assert [len(held(each, before=before).regressions) for each in after] == [0, 1]
    assert held(after[1], history.Allowed(instructions=0.02), before).regressions == ()
    assert held(BEFORE, before=before).regressions == ()


def test_what_is_allowed_can_be_said() -> None:
    after = replace(BEFORE, file_bytes=BEFORE.file_bytes + 1)
    assert len(held(after, history.Allowed(size=0.0)).regressions) == 1
    assert held(grown("p50", 1.9), history.Allowed(latency=1.0)).regressions == ()


def test_time_is_compared_on_the_same_machine_alone() -> None:
    """Memory is compared on another one, too; an emulator's figures on none."""
    other = replace(LOCAL, machine="Linux, x86_64, EPYC, 64 cores")
    found = held(replace(grown("p50", 5.0), machines=(other, EMULATOR)))
    assert found.regressions == ()
    reasons = {(line.device, line.measure): line.reason for line in found.lines if line.outcome == "not compared"}
    assert reasons == {
        ("host", "load"): "measured on another machine",
        ("host", "p50"): "measured on another machine",
        ("qemu-user", "p50"): "time is not representative on this device",
    }
    hungry = replace(grown("peak memory", 2.0), machines=(other, EMULATOR))
    assert [line.measure for line in held(hungry).regressions] == ["peak memory"]


def test_what_was_not_measured_is_said_and_fails_nothing() -> None:
    away = held(replace(BEFORE, measures=()))
    assert away.regressions == ()
    assert {line.reason for line in away.lines if line.device} == {"not measured in this build"}
    old = held(grown("p50", 9.0), before=replace(BEFORE, machines=()))
    assert {line.reason for line in old.lines if line.device} == {"the machine is not known"}


def test_nothing_grew_from_nothing() -> None:
    """A figure of zero has no growth in percent; more than nothing is more than allowed."""
    (line, *_) = held(replace(BEFORE, file_bytes=5), before=replace(BEFORE, file_bytes=0)).lines
    assert (line.growth, line.outcome) == (None, "regressed")


def test_what_else_changed_is_noted() -> None:
    after = replace(
        BEFORE,
        profile="smallest",
        ort_version="1.22.0",
        training_run="run-8",
        models=(replace(MODEL, original_sha256="c" * 64), replace(MODEL, name="wake")),
    )
    notes = " | ".join(held(after).notes)
    for text in ("profile was balanced", "was 1.21.0", "silero is another file", "wake is new", "is run-8"):
        assert text in notes
    assert "no longer there" in " ".join(held(BEFORE, before=after).notes)


def test_an_entry_knows_models_and_machines() -> None:
    """From a report: the digests, and all of a machine that makes it fast or slow."""
    entry = history.entry_of(recorded_report(), "2026-11-21T12:00:00+00:00", "run-7")
    (device,) = recorded_report().devices
    assert entry.training_run == "run-7"
    assert [machine.device for machine in entry.machines] == [device.device]
    assert device.host is not None
    assert device.host.cpu in entry.machines[0].machine


@pytest.fixture
def output(tmp_path: Path) -> Path:
    append(tmp_path / "artifacts" / NAME, Record(build=sample_entry()))
    return tmp_path / "artifacts"


def test_a_regression_ends_with_its_own_code_and_the_numbers(output: Path) -> None:
    acceptance.accept_builds(output, None, None, "")
    append(output / NAME, Record(build=sample_entry(file_bytes=2_000_000)))
    failure = acceptance.regression_of(acceptance.check_builds(output, "silero-vad", None, Allowed()))
    assert failure is not None
    assert (failure.exit_code, failure.code) == (ExitCode.REGRESSION, "regression")
    assert "library: 2.00 MB (+17.4 %), was 1.70 MB; 1 % more is allowed" in failure.why
    assert acceptance.regression_of(acceptance.check_builds(output, None, None, Allowed(size=0.2))) is None


def test_without_an_accepted_build_nothing_fails(output: Path) -> None:
    found = acceptance.check_builds(output, None, None, Allowed())
    assert found.checks == ()
    assert [entry.target for entry in found.unaccepted] == ["linux-x64"]
    assert acceptance.regression_of(found) is None


@pytest.mark.parametrize("spec", ["unheard-of", None])
def test_no_build_is_an_error(output: Path, spec: str | None) -> None:
    for attempt in (
        lambda: acceptance.accept_builds(output, spec, "ios-arm64", ""),
        lambda: acceptance.check_builds(output, spec, "ios-arm64", Allowed()),
    ):
        error = refused(UsageError, attempt)
        assert error.code == "no-such-build"
        assert "silero-vad linux-x64" in error.hint


def test_what_is_accepted_can_go_into_a_repository(output: Path, tmp_path: Path) -> None:
    """A machine without a past reads it from there; where bytes are is not in it."""
    accepted = acceptance.accept_builds(output, None, None, "release 1")
    file = tmp_path / "kept" / "accepted.json"
    acceptance.write_accepted(output, accepted, file)
    (one,) = acceptance.read_accepted(file)
    assert (one.note, one.entry.file_bytes, one.entry.components) == ("release 1", 1_702_856, ())
    fresh = tmp_path / "fresh"
    append(fresh / NAME, Record(build=sample_entry(file_bytes=1_750_000)))
    (found,) = acceptance.check_builds(fresh, None, None, Allowed(), file).checks
    assert [line.measure for line in found.regressions] == ["library"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"\xff\xfe",
        b'{"schema": "ortrim-accepted/9", "builds": []}',
        b'{"builds": [{"entry": 1}]}',
        b"[" * 5000,
    ],
)
def test_a_damaged_file_is_a_diagnostic(output: Path, tmp_path: Path, content: bytes) -> None:
    """Truncated, of a later version, of another form, or nested beyond all measure."""
    file = tmp_path / "accepted.json"
    file.write_bytes(content)
    assert (
        refused(StorageError, acceptance.check_builds, output, None, None, Allowed(), file).code == "accepted-damaged"
    )
    assert file.read_bytes() == content


def test_a_missing_file_is_a_diagnostic(output: Path, tmp_path: Path) -> None:
    error = refused(StorageError, acceptance.check_builds, output, None, None, Allowed(), tmp_path / "accepted.json")
    assert error.code == "accepted-missing"


def test_an_empty_file_of_builds_accepts_nothing(output: Path, tmp_path: Path) -> None:
    file = tmp_path / "accepted.json"
    file.write_text(json.dumps({"schema": "ortrim-accepted/1", "builds": []}))
    assert len(acceptance.check_builds(output, None, None, Allowed(), file).unaccepted) == 1


def test_a_workflow_compares_with_the_file_beside_the_buildspec(tmp_path: Path) -> None:
    """Sizes and memory, and no times: no two of its machines are the same. Without the file nothing is compared."""
    report = recorded_report()
    spec = tmp_path / "demo.toml"
    assert acceptance.check_reports(spec, (report,)).checks == ()
    output = tmp_path / "artifacts"
    append(output / NAME, Record(build=entry_of(report, "2026-11-21T12:00:00+00:00")))
    acceptance.write_accepted(output, acceptance.accept_builds(output, None, None, ""), tmp_path / "demo.accepted.json")
    assert acceptance.regression_of(acceptance.check_reports(spec, (report,))) is None
    (device,) = report.devices
    slow = tuple(replace(run, load_ms=replace(run.load_ms, p50=99 * run.load_ms.p50)) for run in device.runs)
    worse = replace(report, package_bytes=2 * report.package_bytes, devices=(replace(device, runs=slow),))
    (found,) = acceptance.check_reports(spec, (worse,)).checks
    assert [line.measure for line in found.regressions] == ["package"]
