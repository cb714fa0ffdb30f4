"""The real runner and a library that behaves as its "model" says, compiled for a target, and requests to run them."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import onnxruntime

from ortrim.base.command import run
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.buildspec.targets import TARGETS
from ortrim.devices.device import ProgramDevice
from ortrim.devices.kinds import read_name
from ortrim.parity.inputs import Case, save_array
from ortrim.parity.runner import Repetition, RunRequest
from ortrim.pins.runtime import runtime_pins
from ortrim.pins.shipped import tool_requirements
from ortrim.planning.devices import open_device
from ortrim.platforms import platform_of
from ortrim.sources.sources import fetch_sources

SOURCES: Final = Path(__file__).parents[1] / "integration" / "data" / "machines"
HEADERS: Final = Path("onnxruntime/include/onnxruntime/core/session")
TRIPLES: Final = {
    "linux-x64": "x86_64-linux-gnu.2.28",
    "linux-arm64": "aarch64-linux-gnu.2.28",
    "linux-arm64-musl": "aarch64-linux-musl",
    "linux-armhf": "arm-linux-gnueabihf.2.28",
    "linux-riscv64": "riscv64-linux-gnu.2.36",
    "macos-arm64": "aarch64-macos.13.3",
    "macos-x86_64": "x86_64-macos.13.3",
}
COMPANION: Final = "beside/libc++_shared.so"
VALUES: Final = np.array([1, -2, 3.5, 0], np.float32)
ONCE: Final = Repetition(runs=3, warmup=1, timeout_seconds=60)

Programs = Callable[[str], Path]
"""Compiles for a target, once each, and returns the folder with `runner` and `libfake.so`."""


def programs_below(folder: Path) -> Programs:
    return cache(lambda target: _compiled(target, folder / target))


def _compiled(target: str, folder: Path) -> Path:
    (folder / COMPANION).parent.mkdir(parents=True)
    zig = packages_folder("tools", tool_requirements()) / "ziglang" / "zig"
    headers = fetch_sources(runtime_pins(onnxruntime.__version__), "auto").folder / HEADERS
    common = (str(zig), "cc", "-target", TRIPLES[target], "-std=c11", "-O1", "-s", f"-I{headers}")
    # Where musl is linked dynamically, zig has to be told so.
    dynamic = ("-dynamic",) if target.endswith("musl") else ("-ldl", "-lpthread")
    runner = (*common, *sorted(shipped_folder("runner").glob("*.c")), "-o", folder / "runner", *dynamic)
    shared = (*common, "-shared", "-fPIC")
    library = (*shared, SOURCES / "fake_runtime.c", "-o", folder / "libfake.so")
    beside = folder / COMPANION
    companion = (*shared, f"-Wl,-soname,{beside.name}", SOURCES / "beside.c", "-o", beside)
    needy = (*shared, SOURCES / "fake_runtime.c", SOURCES / "needs_beside.c", beside, "-o", folder / "libneedy.so")
    for command in (runner, library, companion, needy):
        ended = run(command)
        assert ended.returncode == 0, ended.stderr
    return folder


def fake_request(folder: Path, programs: Path, behaviour: str, *, seconds: float = 60.0) -> RunRequest:
    for name in ("case", "outputs"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    save_array(folder / "case", "input_000", VALUES)
    (folder / "model.ort").write_text(behaviour)
    return RunRequest(
        runner=programs / "runner",
        library=programs / "libfake.so",
        model=folder / "model.ort",
        cases=(Case(name="only", folder=folder / "case", digest="d"),),
        outputs=folder / "outputs",
        repetition=replace(ONCE, timeout_seconds=seconds),
    )


def device_called(name: str, target: str = "linux-arm64") -> ProgramDevice:
    headers = fetch_sources(runtime_pins(onnxruntime.__version__), "auto").folder / HEADERS
    named = read_name(platform_of(TARGETS[target]), TARGETS[target], name)
    device = open_device(TARGETS[target], named, headers=headers)
    assert isinstance(device, ProgramDevice)
    return device
