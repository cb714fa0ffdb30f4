"""The demo for Apple's systems, built on Linux through the command line, and run as far as that goes here."""

import json
import os
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from ortrim.base.cache import cache_folder
from ortrim.base.command import run
from ortrim.base.console import Console
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.binaries.apple import slice_of
from ortrim.binaries.macho import MachSignature, read_macho
from ortrim.binaries.macho_exports import signed_anew
from ortrim.binaries.xcframework import used_categories
from ortrim.buildspec.targets import TARGETS, Architecture, Target
from ortrim.compiling.toolchains import MACHINE
from ortrim.parity.reference import reference_outputs
from ortrim.pins.runtime import runtime_pins
from ortrim.pins.shipped import tool_requirements
from ortrim.planning.planned import Planned, planned_for
from ortrim.planning.request import Request

pytestmark = [
    pytest.mark.build,
    pytest.mark.network,
    pytest.mark.needs("apt-get", "qemu-aarch64-static"),
]

ROOT: Final = Path(__file__).parents[2]
SUPPORT: Final = ROOT / "tests" / "support" / "macho"
SPEC: Final = ROOT / "buildspecs" / "silero-vad.toml"
BUILD_SECONDS: Final = 5400.0
LARGEST: Final = {
    "macos-arm64": 1_300_000, "macos-x86_64": 1_450_000, "ios-arm64": 1_300_000, "ios-simulator-arm64": 1_300_000,
    "ios-simulator-x86_64": 1_450_000, "maccatalyst-arm64": 1_300_000,
}  # fmt: skip
"""Target -> the most bytes that a library may have."""
QUICK: Final = "ios-simulator-x86_64"
"""The one that CI builds: it runs without an emulator, and differs most from a Mac's."""
LARGEST_DIFFERENCE: Final = 1e-5


@dataclass(frozen=True, kw_only=True)
class Built:
    """What the build left: its report, the library, and the headers that came with it."""

    target: Target
    report: dict[str, Any]
    library: Path
    headers: Path


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=() if name == QUICK else pytest.mark.slow) for name in LARGEST]
)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    output = tmp_path_factory.mktemp("output")
    words = (sys.executable, "-m", "invoke", "build", "--target", request.param, "--json", "--output", str(output))
    done = run(words, cwd=ROOT, environment=dict(os.environ), timeout_seconds=BUILD_SECONDS)
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)["reports"]
    (archive,) = output.rglob("*.xcframework.zip")
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(output / "unpacked")  # its links become files, and none of them is needed here
    target = TARGETS[request.param]
    (framework,) = (output / "unpacked").rglob("onnxruntime.framework")
    inner = framework / "Versions" / "A" if slice_of(target).on_mac else framework
    return Built(target=target, report=report, library=inner / "onnxruntime", headers=inner / "Headers")


def test_the_library_is_apples(built: Built) -> None:
    """It names its system, needs Apple's C library alone and offers the C API alone; for ARM64 Macs it is signed."""
    (image,) = read_macho(built.library).images
    part, pins = slice_of(built.target), runtime_pins("1.21.0").apple
    assert pins is not None
    inner = "Versions/A/" if part.on_mac else ""
    assert image.architecture == part.architectures[0]
    assert [(build.platform, build.variant) for build in image.builds] == [(part.platform, part.variant)]
    assert image.builds[0].minimum_os in {pins.ios, pins.macos, pins.maccatalyst}
    assert image.install_name == f"@rpath/onnxruntime.framework/{inner}onnxruntime"
    assert [need.name for need in image.needed] == ["/usr/lib/libSystem.B.dylib"]
    assert set(image.exported) == {"OrtGetApiBase", "OrtSessionOptionsAppendExecutionProvider_CPU"}
    on_apples_processor = built.target.architecture is Architecture.ARM64 and built.target.identifier != "ios-arm64"
    assert image.signature is (MachSignature.AD_HOC if on_apples_processor else MachSignature.NONE)
    assert signed_anew(built.library.read_bytes()) == built.library.read_bytes()


def test_it_calls_nothing_that_apple_wants_a_reason_for(built: Built) -> None:
    """But what the privacy manifest declares."""
    (image,) = read_macho(built.library).images
    assert set(used_categories(image.undefined)) == {"NSPrivacyAccessedAPICategoryFileTimestamp"}


def test_it_is_small(built: Built) -> None:
    """Frames are described once, and the C++ library has nothing of exceptions, locales and wide characters."""
    assert built.library.stat().st_size < LARGEST[built.target.identifier]


def test_its_code_is_right(built: Built, tmp_path: Path) -> None:
    """All cases of the demo have the outputs of the full runtime."""
    planned = planned_for(Request(spec=SPEC, target=built.target.identifier, elsewhere=True), Console())
    (prepared,), (cases,) = planned.models.prepared, planned.cases
    reference = reference_outputs(prepared, cases, planned.models.runtime, tmp_path / "reference")
    run_cases(planned, built, tmp_path)
    for case in reference.cases:
        for output in case.outputs:
            assert output.file
            file = Path(case.name, output.file)
            ours, theirs = (np.load(folder / file) for folder in (tmp_path / "outputs", reference.folder))
            assert np.abs(ours - theirs).max() < LARGEST_DIFFERENCE, f"{case.name} {output.name}"


def run_cases(planned: Planned, built: Built, folder: Path) -> None:
    """Run the cases of the demo with a runner that loads Mach-O libraries."""
    (model,), (cases,) = planned.models.converted, planned.cases
    named = [word for case in cases for word in ("--case", f"{case.name}={case.folder}")]
    once = ("--runs", "1", "--warmup", "0", "--outputs", str(folder / "outputs"))
    done = run(
        (
            *(("qemu-aarch64-static",) if built.target.architecture is Architecture.ARM64 else ()),
            *(str(runner(built, folder)), "--library", str(built.library)),
            *("--model", str(model.path), *named, *once),
        )
    )
    assert done.returncode == 0, done.stderr


def runner(built: Built, folder: Path) -> Path:
    """Compile the runner with a loader of Mach-O libraries in it."""
    zig = str(packages_folder("tools", tool_requirements()) / "ziglang" / "zig")
    sources = (*sorted(shipped_folder("runner").glob("*.c")), SUPPORT / "macho_loader.c")
    machine = MACHINE[built.target.architecture]
    options = ("-target", f"{machine}-linux-musl", "-static", "-std=gnu11", "-O1", "-include", "macho_loader.h")
    words = (zig, "cc", *options, f"-I{SUPPORT}", f"-I{built.headers}", *map(str, sources), "-lm", "-o", "runner")
    environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(cache_folder("zig"))}
    done = run(words, cwd=folder, environment=environment)
    assert done.returncode == 0, done.stderr
    return folder / "runner"
