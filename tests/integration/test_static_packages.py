"""The demo as a static library for ARM, through the command line: programs link its archive and run in qemu."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from ortrim.base.cache import cache_folder
from ortrim.base.command import run
from ortrim.base.files import sha256_of
from ortrim.base.scripts import packages_folder
from ortrim.base.tools import EMULATIONS
from ortrim.buildspec.targets import TARGETS, CLibrary
from ortrim.pins.shipped import tool_requirements
from ortrim.sources.root_file_systems import machine_parts
from static_programs import IN_C, IN_CXX, SAID_IN_C, SAID_IN_CXX, linked, said

pytestmark = [pytest.mark.build, pytest.mark.network, pytest.mark.slow, pytest.mark.needs("apt-get")]

ROOT: Final = Path(__file__).parents[2]
BUILD_SECONDS: Final = 3600.0
TRIPLES: Final = {
    "linux-armhf": ("arm-linux-gnueabihf.2.28", "-mcpu=cortex_a7"),
    "linux-arm64-musl": ("aarch64-linux-musl", "-mcpu=generic"),
}
BUILT: Final = [
    pytest.param("linux-armhf", marks=pytest.mark.needs("qemu-arm-static")),
    pytest.param("linux-arm64-musl", marks=pytest.mark.needs("qemu-aarch64-static")),
]


@dataclass(frozen=True, kw_only=True)
class Static:
    """A verified package with an archive: its target, its folder and its report."""

    target: str
    package: Path
    report: dict[str, Any]

    @property
    def launcher(self) -> tuple[str | Path, ...]:
        """What starts a program; one for musl needs no file of the system."""
        emulation = EMULATIONS[TARGETS[self.target].architecture.value]
        if TARGETS[self.target].c_library is CLibrary.MUSL:
            return (emulation.user.name,)
        return (emulation.user.name, "-L", machine_parts(emulation).root)

    @property
    def compiler(self) -> tuple[str | Path, ...]:
        """The pinned compiler for the target; its language is to be added."""
        triple, cpu = TRIPLES[self.target]
        static = ("-static",) if TARGETS[self.target].c_library is CLibrary.MUSL else ()
        return ("-target", triple, cpu, *static)


@pytest.fixture(scope="module")
def static(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Static:
    """Build the demo as a static library for a target and verify it in its emulator."""
    target, folder = request.param, tmp_path_factory.mktemp(request.param)
    musl = TARGETS[target].c_library is CLibrary.MUSL
    own = "budgets = { library_ratio = 0.07 }" if musl else 'glibc = "2.28"'  # as the demo has them
    demo = (ROOT / "buildspecs" / "silero-vad.toml").read_text().partition("[[targets]]")[0]
    (folder / "static.toml").write_text(f'{demo}[[targets]]\nid = "{target}"\n{own}\nlinkage = "static"\n')
    words = ("build", "--spec", folder / "static.toml", "--target", target, "--device", "qemu-user", "--json")
    command = (sys.executable, "-m", "invoke", *words, "--output", folder / "output")
    done = run(command, cwd=ROOT, timeout_seconds=BUILD_SECONDS)
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)["reports"]
    (archive,) = (folder / "output").rglob("*.tar.gz")
    package = archive.with_name(archive.name.removesuffix(".tar.gz"))
    return Static(target=target, package=package, report=report)


@pytest.mark.parametrize("static", BUILT, indirect=True)
def test_the_runner_that_links_the_archive_is_in_parity(static: Static) -> None:
    """It runs every case of the model, and every gate is passed or not to be judged there."""
    assert static.report["verdict"] == "pass"
    (device,) = static.report["devices"]
    assert len(device["parity"]) == 16
    assert {line["verdict"] for line in device["parity"]} == {"pass"}
    assert {gate["verdict"] for gate in static.report["gates"]} <= {"pass", "not judged"}
    assert static.report["artifacts"][1]["sha256"] == sha256_of(static.package / "lib" / "libonnxruntime.a")


@pytest.mark.parametrize("static", BUILT, indirect=True)
@pytest.mark.parametrize("language", ["cc", "c++"])
def test_programs_link_the_real_archive(
    static: Static, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    """In C and in C++; the second runs the model."""
    source, expected = (IN_C, SAID_IN_C) if language == "cc" else (IN_CXX, SAID_IN_CXX)
    for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"):
        monkeypatch.setenv(name, str(cache_folder("zig")))
    zig = packages_folder("tools", tool_requirements()) / "ziglang" / "zig"
    program = linked(static.package, (zig, language, *static.compiler), source, tmp_path / "program")
    assert said(program, static.package, *static.launcher) == expected
