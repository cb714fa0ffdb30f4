"""The demo for Macs, built on Linux through the command line, and run as far as that goes here."""

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
from ortrim.binaries.macho import MachSignature, read_macho
from ortrim.binaries.macho_exports import signed_anew
from ortrim.parity.reference import reference_outputs
from ortrim.pins.shipped import tool_requirements
from ortrim.planning.planned import Planned, planned_for
from ortrim.planning.request import Request

pytestmark = [
    pytest.mark.build,
    pytest.mark.network,
    pytest.mark.slow,
    pytest.mark.needs("apt-get", "qemu-aarch64-static"),
]

ROOT: Final = Path(__file__).parents[2]
SUPPORT: Final = ROOT / "tests" / "support" / "macho"
SPEC: Final = ROOT / "buildspecs" / "silero-vad.toml"
BUILD_SECONDS: Final = 5400.0
MACS: Final = {"macos-arm64": ("arm64", "aarch64", 1_300_000), "macos-x86_64": ("x86_64", "x86_64", 1_450_000)}
"""For each target Apple's word for its architecture, Linux's, and the most bytes that a library may have."""
LARGEST_DIFFERENCE: Final = 1e-5


@dataclass(frozen=True, kw_only=True)
class Built:
    """What the build left: its report, the library, and the headers that came with it."""

    target: str
    report: dict[str, Any]
    library: Path
    headers: Path


@pytest.fixture(scope="module", params=MACS)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    output = tmp_path_factory.mktemp("output")
    words = (sys.executable, "-m", "invoke", "build", "--target", request.param, "--json", "--output", str(output))
    done = run(words, cwd=ROOT, environment=dict(os.environ), timeout_seconds=BUILD_SECONDS)
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)["reports"]
    (archive,) = output.rglob("*.xcframework.zip")
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(output / "unpacked")  # its links become files, and none of them is needed here
    (version,) = (output / "unpacked").rglob("onnxruntime.framework/Versions/A")
    return Built(target=request.param, report=report, library=version / "onnxruntime", headers=version / "Headers")


def test_the_library_is_a_macs(built: Built) -> None:
    """It names the oldest system, needs Apple's C library alone and offers the C API alone; for ARM64 it is signed."""
    (image,) = read_macho(built.library).images
    assert image.architecture == MACS[built.target][0]
    assert [(build.platform, build.minimum_os) for build in image.builds] == [("macos", "13.3")]
    assert image.install_name == "@rpath/onnxruntime.framework/Versions/A/onnxruntime"
    assert [need.name for need in image.needed] == ["/usr/lib/libSystem.B.dylib"]
    assert set(image.exported) == {"OrtGetApiBase", "OrtSessionOptionsAppendExecutionProvider_CPU"}
    assert built.target == "macos-x86_64" or image.signature is MachSignature.AD_HOC
    assert signed_anew(built.library.read_bytes()) == built.library.read_bytes()


def test_it_is_small(built: Built) -> None:
    """Frames are described once, and the C++ library has nothing of exceptions, locales and wide characters."""
    assert built.library.stat().st_size < MACS[built.target][2]


def test_its_code_is_right(built: Built, tmp_path: Path) -> None:
    """All cases of the demo have the outputs of the full runtime."""
    planned = planned_for(Request(spec=SPEC, target=built.target, elsewhere=True), Console())
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
            *(("qemu-aarch64-static",) if built.target == "macos-arm64" else ()),
            *(str(runner(built, folder)), "--library", str(built.library)),
            *("--model", str(model.path), *named, *once),
        )
    )
    assert done.returncode == 0, done.stderr


def runner(built: Built, folder: Path) -> Path:
    """Compile the runner with a loader of Mach-O libraries in it."""
    zig = str(packages_folder("tools", tool_requirements()) / "ziglang" / "zig")
    sources = (*sorted(shipped_folder("runner").glob("*.c")), SUPPORT / "macho_loader.c")
    options = (
        "-target",
        f"{MACS[built.target][1]}-linux-musl",
        "-static",
        "-std=gnu11",
        "-O1",
        "-include",
        "macho_loader.h",
    )
    words = (zig, "cc", *options, f"-I{SUPPORT}", f"-I{built.headers}", *map(str, sources), "-lm", "-o", "runner")
    environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(cache_folder("zig"))}
    done = run(words, cwd=folder, environment=environment)
    assert done.returncode == 0, done.stderr
    return folder / "runner"
