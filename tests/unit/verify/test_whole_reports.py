"""Whole reports of one verification on each kind of device, byte by byte, and what an app is asked to run for it.

Three models on each: one that is right, one that ours does not run, and one whose outputs are drawn. What is real is
all between the device's own transport and the report; the runner is a script.
"""

import difflib
import io
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from device_samples import HEAD, REPORT, LocalTransport
from fake_xcrun import FakeXcrun
from harness_farm import PHONE, FakeFarm, carry_out
from ortrim.base.console import Console
from ortrim.base.json import to_json
from ortrim.buildspec.buildspec import Budgets
from ortrim.devices.device import Device
from ortrim.devices.devicectl import open_phone
from ortrim.devices.farms.farm import FarmDevice
from ortrim.devices.harness import HarnessContent, PhoneApp
from ortrim.devices.host import Host
from ortrim.devices.kinds import DeviceName
from ortrim.devices.remote import CooledDevice, RemoteMachine
from ortrim.models.models import PreparedModel
from ortrim.parity.inputs import save_array
from ortrim.parity.measurements import HostFacts
from ortrim.report.html import markdown_report
from ortrim.report.terminal import terminal_report
from ortrim.verify.measure import Baseline
from ortrim.verify.reports import VerifyReport
from ortrim.verify.target import ModelUnderTest, Task, verify_target
from program_files import write_program
from sample_reports import MACHINE as EMULATED
from sample_reports import PHONE as PIXEL
from sample_tasks import IDENTITY, REFERENCE, SAVED, sample_task

GOLDEN = Path(__file__).parent / "data" / "reports"
LISTING = Path(__file__).parents[1] / "devices" / "data" / "devicectl" / "list.json"
REGENERATE = "ORTRIM_WRITE_REPORTS"
"""Set this in the environment of pytest to write the golden reports anew, then read what git says has changed."""
OUTPUT = f'[{{"name":"{SAVED.name}","element_type":"float32","shape":[2],"file":"{SAVED.file}"}}]'
OURS = REPORT.replace('"outputs":[]', f'"outputs":{OUTPUT}')
THEIRS = OURS.replace("[1.5]", "[3.5]").replace('"load_ms":2', '"load_ms":5').replace('rss_bytes":3', 'rss_bytes":8')
TRACE = '[{"ph":"X","name":"n","ts":1,"dur":1,"pid":1,"tid":1}]'
SCRIPT = f"""{HEAD}
grep -q crashing "$model" && grep -q ours "$library" && kill -ILL $$
grep -q refused "$model" && grep -q full "$library" && exit 4
answer=answer; grep -q drawing "$model" && answer=drawn
[ "$outputs" ] && mkdir -p "$outputs/only" && cp "${{case#only=}}/$answer.npy" "$outputs/only/output_000.npy"
[ "$outputs" ] && echo '{TRACE}' >"$outputs/trace.json"
report='{OURS}'; grep -q full "$library" && report='{THEIRS}'
if [ "$json" ]; then echo "$report" >"$json"; else echo "$report"; fi
"""
BUDGETS = Budgets(p50_ratio=0.6, peak_rss_bytes=2, load_ms=3, deadline_ms=2, library_bytes=9, instructions=1)


class HostAsItWas(Host):
    """This machine under the description of another."""

    def facts(self) -> HostFacts:
        return replace(EMULATED, kind="physical", model="", time_meaningful=True)


def on_host(_folder: Path, _asked: list[str]) -> Device:
    return HostAsItWas()


def on_adb(folder: Path, _asked: list[str]) -> Device:
    machine = RemoteMachine(
        name="adb:R58M12ABCDE", transport=LocalTransport(), base=str(folder / "base"), describe=lambda: PIXEL
    )
    return CooledDevice(machine)


def on_emulator(folder: Path, _asked: list[str]) -> Device:
    machine = RemoteMachine(
        name="adb:emulator-5554", transport=LocalTransport(), base=str(folder / "base"), describe=lambda: EMULATED,
        time_meaningful=False,
    )  # fmt: skip
    return CooledDevice(machine)


def on_farm(folder: Path, asked: list[str]) -> Device:
    farm = FakeFarm(lambda content, place: carry_out(content, place, PHONE))
    farm.log = folder / "device.log"

    def make(content: HarnessContent) -> Any:
        asked.append(content.requests)
        return farm.make_apks(content)

    return FarmDevice(farm=farm, device="Pixel8-34", make_apks=make, folder=folder / "farm")


def on_phone(folder: Path, asked: list[str]) -> Device:
    """Open an iPhone on a cable, whose app leaves for each run what that is to leave."""
    left = folder / "left"
    run = r"""n=$(printf '%s' "$*" | sed 's/.*"ORTRIM_RUN": "\([0-9]*\)".*/\1/')"""
    copy = f"while [ $# -gt 0 ]; do [ $1 = --destination ] && to=$2; shift; done; cp -R '{left}/now' \"$to/ortrim-1\""
    launch = f"{run}; rm -rf '{left}/now'; cp -R '{left}'/$n '{left}/now'; cat '{left}'/$n/said; echo"
    answers = {
        '*"list devices"*': f"cp '{LISTING}' \"$document\"",
        '*"process launch"*': launch,
        '*"copy from"*': copy,
        "*": ":",
    }

    def make(content: HarnessContent) -> PhoneApp:
        asked.append(content.requests)
        carried = {each["path"]: content.assets[each["asset"]] for each in json.loads(content.requests)["contents"]}
        for number, each in enumerate(json.loads(content.requests)["runs"]):
            _leave(left / str(number), each["words"], carried)
        return PhoneApp(path=Path("/x/Harness.app"), identifier="ortrim.harness.TEAM")

    return open_phone("", make, xcrun=FakeXcrun(folder / "mac", answers).xcrun)


def _leave(folder: Path, words: list[str], carried: dict[str, Path]) -> None:
    folder.mkdir(parents=True)
    of = dict(zip(words[1::2], words[2::2], strict=False))
    model = carried[of["--model"].removeprefix("/@files/")].read_text()
    (folder / "said").write_text("App terminated due to signal 4." if "crashing" in model else "")
    (folder / "stderr.txt").write_text("")
    if "crashing" in model:
        return
    end = {"schema": "ortrim-end/1", "code": 0, "problem": "", "seconds": 1.5, "thermal": 0, "cores": 6}
    (folder / "end.json").write_text(json.dumps({**end, "memory_bytes": 5_900_000_000, "page_bytes": 16384}))
    (folder / "report.json").write_text(OURS)
    if "--outputs" in of:
        save_array(_made(folder / "outputs" / "only"), "output_000", _drawn("drawing" in model))
        (folder / "outputs" / "trace.json").write_text(TRACE)


def _drawn(drawn: bool) -> np.ndarray[Any, Any]:  # noqa: FBT001
    return REFERENCE + 7 if drawn else REFERENCE


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


@pytest.fixture(name="task")
def fixture_task(make_model: Callable[..., PreparedModel], tmp_path: Path) -> Task:
    """Return a task whose files are there: of a right model, one that crashes ours, and one that draws."""
    task = sample_task(make_model(), tmp_path, budgets=BUDGETS, trace=True)
    (tmp_path / "device.log").write_text("a farm's log")
    for name in ("ours.so", "full.so"):
        (tmp_path / name).write_text(name)
    write_program(tmp_path / "runner", SCRIPT)
    case = replace(task.subjects[0].cases[0], folder=_made(tmp_path / "case"))
    save_array(case.folder, "answer", REFERENCE)
    save_array(case.folder, "drawn", REFERENCE + 7)
    right = replace(task.subjects[0], cases=(case,))
    drawing = _named(right, tmp_path, "drawing")
    output = replace(SAVED, draws="RandomNormalLike 'n'")
    reference = replace(right.reference, cases=(replace(right.reference.cases[0], outputs=(output,)),))
    drawing = replace(
        drawing, reference=reference, same_graph=reference, draws_given=_named(right, tmp_path, "drawing", "given")
    )
    subjects = (_named(right, tmp_path, "tiny"), _named(right, tmp_path, "crashing"), drawing)
    return replace(
        task, subjects=subjects, baseline=Baseline(library=tmp_path / "full.so", name="onnxruntime 1.21.0 (official)")
    )


def _named(subject: ModelUnderTest, folder: Path, name: str, content: str = "") -> ModelUnderTest:
    """Return a subject by a name of its own, whose files hold that name, or other words."""
    place = _made(folder / "models" / (content or name))
    for file in ("model.onnx", "model.ort"):
        (place / file).write_text(f"{content or name} as {file}")
    prepared = replace(subject.prepared, name=name, path=place / "model.onnx")
    return replace(subject, prepared=prepared, converted=replace(subject.converted, path=place / "model.ort"))


def texts(report: VerifyReport, asked: list[str], folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each form of a report by the ending of its file's name, without what is another one each time."""
    devices = (replace(each, run_id="(a UUID)", started="(now)", duration_s=1.0) for each in report.devices)
    fixed = replace(report, devices=tuple(devices))
    stream = io.StringIO()
    Console(stdout=stream, stderr=io.StringIO(), environment={}, width=120).render(terminal_report(fixed))
    shown = {"txt": stream.getvalue(), "md": markdown_report(fixed), "json": to_json(fixed)}
    runs = [_short(run["words"]) for each in asked for run in json.loads(each)["runs"]]
    for ending, text in {**shown, **({"runs": "\n".join(runs) + "\n"} if runs else {})}.items():
        yield ending, text.replace(str(folder), "(folder)")


def _short(words: list[str]) -> str:
    """Return a run's library, model and repetition, and whether it saves and profiles."""
    of = dict(zip(words[1::2], words[2::2], strict=True))
    shown = (Path(of["--library"]).name[:16], Path(of["--model"]).parent.name[:6], of["--runs"], of["--warmup"])
    return " ".join((*shown, *(option for option in ("--outputs", "--trace") if option in of)))


NONE = Baseline(library=None, name="none: no official package for Apple's phones is pinned")
KINDS: dict[str, tuple[Callable[[Path, list[str]], Device], DeviceName, dict[str, Any]]] = {
    "host": (on_host, DeviceName(kind="host"), {}),
    "adb": (on_adb, DeviceName(kind="adb", detail="R58M12ABCDE"), {}),
    "emulator": (on_emulator, DeviceName(kind="adb", detail="emulator-5554"), {}),
    "farm": (on_farm, DeviceName(kind="firebase", detail="Pixel8-34"), {}),
    "phone": (on_phone, DeviceName(kind="devicectl"), {"baseline": NONE}),
}


@pytest.mark.parametrize("kind", [*KINDS, "host-refused", "farm-refused"])
def test_the_report_is_the_golden_one(task: Task, tmp_path: Path, kind: str) -> None:
    """With a baseline that runs everything, and with one that refuses the right model."""
    opener, name, changes = KINDS[kind.removesuffix("-refused")]
    if kind not in KINDS:
        for file in ("model.onnx", "model.ort"):
            (tmp_path / "models" / "tiny" / file).write_text(f"refused as {file}")
    asked: list[str] = []
    report = verify_target(IDENTITY, replace(task, **changes), [name], lambda _: opener(tmp_path, asked))
    for ending, text in texts(report, asked, tmp_path):
        golden = GOLDEN / f"{kind}.{ending}"
        if os.environ.get(REGENERATE):
            golden.parent.mkdir(exist_ok=True, parents=True)
            golden.write_text(text)
        expected = golden.read_text() if golden.exists() else ""
        lines = difflib.unified_diff(expected.splitlines(), text.splitlines(), "golden", "now", lineterm="", n=1)
        assert text == expected, "\n".join([*lines, f"if this is meant: {REGENERATE}=1 pytest {Path(__file__).name}"])
