"""A farm whose device is this machine: what our app does there, in Python, for tests that need no Java."""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from ortrim.base.command import run
from ortrim.devices.farms.farm import FarmJob, FarmRun, Tell
from ortrim.devices.harness import HarnessContent
from ortrim.errors import Diagnostic, ToolError

URL: Final = "https://farm.invalid/run/1"
DEVICE: Final = "Google Pixel 8 14"
PHONE: Final = {
    "system": "Linux",
    "release": "5.10.43",
    "machine": "aarch64",
    "page": "16384",
    "cpu": "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd05\n",
    "memory": "MemTotal:  7800000 kB\n",
    "present": "0-7\n",
    "properties": "[ro.product.manufacturer]: [Google]\n[ro.product.model]: [Pixel 8]\n[ro.build.version.sdk]: [34]\n"
    "[ro.build.version.release]: [14]\n[ro.hardware]: [shiba]\n[ro.product.cpu.abilist]: [arm64-v8a]\n",
    "thermal": "Thermal Status: 0",
    "battery": "  present: true\n  temperature: 250",
}
Work = Callable[[HarnessContent, Path], object]
"""What the device does: carries out what the app carries, and leaves results in a folder that is there."""


class FakeFarm:
    """A farm without an account; `log` is what it keeps of every run."""

    name = "firebase"

    def __init__(self, work: Work) -> None:
        self.work = work
        self.log: Path | None = None
        self.jobs: list[FarmJob] = []
        self.contents: list[HarnessContent] = []

    def make_apks(self, content: HarnessContent) -> tuple[Path, Path]:
        self.contents.append(content)
        return Path("app.apk"), Path("test.apk")

    def run(self, job: FarmJob, tell: Tell) -> FarmRun:
        tell("running")
        self.jobs.append(job)
        job.destination.mkdir()
        try:
            self.work(self.contents[-1], job.destination)
        except Diagnostic:
            job.destination.rmdir()
            raise
        return FarmRun(device=DEVICE, folder=job.destination, log=self.log, url=URL)


def carry_out(content: HarnessContent, folder: Path, facts: Mapping[str, str] = PHONE) -> dict[str, Any]:
    """Run the requests as our app does, leave the results in `folder`, and return what is in their file."""
    place = folder.parent / f"{folder.name}-device"
    shutil.rmtree(place, ignore_errors=True)
    document = json.loads(content.requests)
    native = _laid_out(place / "native", {name: path.name for name, path in content.libraries.items()}, content)
    for each in document["contents"]:
        _copy(content.assets[each["asset"]], place / "files" / each["path"])
    runs = []
    for number, each in enumerate(document["runs"]):
        (place / "run" / "outputs").mkdir(parents=True)
        named = {"/@native": native, "/@files": place / "files", "/@run": place / "run"}
        runs.append(_ended([_resolved(word, named) for word in each["words"]], each["seconds"]))
        (place / "run").rename(_made(folder / "runs") / f"{number:03}")
    return write_results(folder, content, runs=runs, facts=dict(facts), facts_after=dict(facts))


def write_results(folder: Path, content: HarnessContent, **changes: Any) -> dict[str, Any]:
    digest = hashlib.sha256(content.requests.encode()).hexdigest()
    results = {
        "schema": "ortrim-results/1",
        "requests_sha256": digest,
        "problem": "",
        "complete": True,
        "runs": [],
        "facts": PHONE,
        "facts_after": PHONE,
        **changes,
    }
    (folder / "results.json").write_text(json.dumps(results))
    return results


def _laid_out(folder: Path, names: Mapping[str, str], content: HarnessContent) -> Path:
    for name in names:
        _copy(content.libraries[name], folder / name)
        (folder / name).chmod(0o755)
    return folder


def _copy(source: Path, destination: Path) -> None:
    _made(destination.parent)
    shutil.copyfile(source, destination)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _resolved(word: str, named: Mapping[str, Path]) -> str:
    for name, path in named.items():
        word = word.replace(name, str(path))
    return word


def _ended(words: list[str], seconds: float) -> dict[str, Any]:
    how, code, stdout, stderr = "exit", -1, "", ""
    try:
        done = run(words, timeout_seconds=seconds)
    except ToolError as error:
        how, stderr = ("timeout", "") if error.code == "tool-timeout" else ("not-started", error.why)
    else:
        code = 128 - done.returncode if done.returncode < 0 else done.returncode
        stdout, stderr = done.stdout, done.stderr
    return {"how": how, "code": code, "stdout": stdout, "stderr": stderr, "seconds": seconds, "thermal": 0}
