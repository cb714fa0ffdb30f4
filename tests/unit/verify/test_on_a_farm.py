"""Verification on a farm, where all runs are one job."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from device_samples import HEAD, REPORT
from harness_farm import URL, FakeFarm, carry_out
from ortrim.devices.farms.farm import FarmDevice
from ortrim.devices.harness import HarnessContent
from ortrim.devices.kinds import DeviceName
from ortrim.errors import VerifyError
from ortrim.models.models import PreparedModel
from ortrim.parity.inputs import save_array
from ortrim.parity.measurements import Verdict
from ortrim.verify.measure import Baseline
from ortrim.verify.target import Task, verify_on, verify_target
from refusing import refused
from sample_tasks import IDENTITY, REFERENCE, SAVED, sample_task

MakeModel = Callable[..., PreparedModel]
PIXEL = DeviceName(kind="firebase", detail="Pixel8-34")
OUTPUT = f'[{{"name":"{SAVED.name}","element_type":"float32","shape":[2],"file":"{SAVED.file}"}}]'
SAVING = f"""{HEAD}
[ "$outputs" ] && mkdir -p "$outputs/only" && cp "${{case#only=}}/answer.npy" "$outputs/only/output_000.npy"
[ "$outputs" ] && echo '[{{"ph":"X","name":"n","ts":1,"dur":1,"pid":1,"tid":1}}]' >"$outputs/trace.json"
grep -q refuses "$library" && kill -ILL $$
cat >"$json" <<END
{REPORT.replace('"outputs":[]', f'"outputs":{OUTPUT}')}
END
"""


@pytest.fixture(name="task")
def fixture_task(make_model: MakeModel, tmp_path: Path) -> Task:
    """Return a task whose files are there, and whose runner is a script that saves what lies beside the input."""
    task = sample_task(make_model(), tmp_path, baseline=Baseline(library=tmp_path / "full.so", name="the full one"))
    for name in ("ours.so", "full.so", "tiny.ort", "tiny.onnx"):
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "runner").write_text(SAVING)
    case = replace(task.subjects[0].cases[0], folder=tmp_path / "case")
    case.folder.mkdir()
    save_array(case.folder, "answer", REFERENCE)
    return replace(task, subjects=(replace(task.subjects[0], cases=(case,)),))


def on_a_farm(tmp_path: Path, work: Any = carry_out, log: Path | None = None) -> FarmDevice:
    """Open a phone of a farm, which keeps a log of it or none."""
    farm = FakeFarm(work)
    farm.log = log
    return FarmDevice(farm=farm, device="Pixel8-34", make_apks=farm.make_apks, folder=tmp_path / "farm")


def test_a_good_library_passes_on_a_farm(task: Task, tmp_path: Path) -> None:
    """Everything is told beforehand, nothing more than is asked for, and parity is that of the files that came back."""
    told: list[tuple[int, int, str]] = []
    device = on_a_farm(tmp_path)
    report = verify_on(device, replace(task, trace=True), lambda *words: told.append(words))
    assert (report.verdict, report.device) == (Verdict.PASS, "firebase:Pixel8-34")
    assert [output.verdict for output in report.parity] == [Verdict.PASS]
    assert [run.library for run in report.runs] == ["ours", "baseline"]
    assert report.traces == ("outputs/firebase_Pixel8-34/tiny/trace.json",)
    assert report.host is not None
    assert (report.host.model, report.host.time_meaningful) == ("Google Pixel 8", True)
    assert told[-1][0] == told[-1][1]


def test_the_report_says_where_the_farm_shows_the_run(task: Task, tmp_path: Path) -> None:
    """The farm's log of it lies beside the report."""
    log = tmp_path / "farms" / "log.txt"
    (report,) = verify_target(IDENTITY, task, [PIXEL], lambda _: on_a_farm(tmp_path, log=log)).devices
    assert (report.provider_url, report.log, report.exit_code) == (URL, "farms/log.txt", 0)


def test_a_run_that_failed_is_found_at_the_farm_too(task: Task, tmp_path: Path) -> None:
    """Of a library that the device refuses; this farm keeps no log."""
    (tmp_path / "ours.so").write_text("it refuses")
    (failed,) = verify_target(IDENTITY, task, [PIXEL], lambda _: on_a_farm(tmp_path)).devices
    assert [failure.code for failure in failed.failed_models] == ["illegal-instruction"]
    assert (failed.provider_url, failed.log, failed.exit_code, failed.signal) == (URL, None, None, "SIGILL")


def test_wrong_outputs_fail(task: Task, tmp_path: Path) -> None:
    """As on any device."""
    save_array(task.subjects[0].cases[0].folder, "answer", REFERENCE + 1)
    assert verify_on(on_a_farm(tmp_path), task).verdict is Verdict.FAIL


def test_a_baseline_that_does_not_run_there(task: Task, tmp_path: Path) -> None:
    """Its rounds have run in vain; ours is measured all the same."""
    (tmp_path / "full.so").write_text("it refuses")
    report = verify_on(on_a_farm(tmp_path), task)
    assert report.verdict is Verdict.PASS
    assert [run.library for run in report.runs] == ["ours"]
    assert "it does not run on firebase:Pixel8-34" in report.baseline


def test_without_a_baseline(task: Task, tmp_path: Path) -> None:
    """Ours alone."""
    report = verify_on(on_a_farm(tmp_path), replace(task, baseline=Baseline(library=None, name="none")))
    assert [run.library for run in report.runs] == ["ours"]


def test_results_that_are_cut_short_are_no_verdict(task: Task, tmp_path: Path) -> None:
    """A diagnostic, and not a report on half the rounds."""

    def work(content: HarnessContent, folder: Path) -> None:
        carry_out(content, folder)
        path = folder / "results.json"
        path.write_text(path.read_text()[:-100])

    assert refused(VerifyError, verify_on, on_a_farm(tmp_path, work), task).code == "farm-results-unreadable"
