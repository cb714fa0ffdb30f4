"""What only a real NDK can show: that it is found, that its compilers are called, and what a library comes to."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from elftools.elf.elffile import ELFFile

from native_builds import native_executor
from ortrim.base.command import run
from ortrim.buildspec.buildspec import AndroidSpec
from ortrim.buildspec.targets import TARGETS
from ortrim.cli.options import demo_spec
from ortrim.compiling.executor import Executor
from ortrim.compiling.plan import BuildPlan
from ortrim.compiling.workspace import choose_parallelism
from ortrim.package.aar_contents import read_aar
from ortrim.pins.runtime import SourcePin, runtime_pins
from ortrim.platforms.android.ndk import Ndk, installed_ndk
from ortrim.sources.sources import SourceTree, fetch_sources
from sample_plans import sample_plan

pytestmark = [pytest.mark.needs("ndk"), pytest.mark.network]

ANDROID: Final = [name for name in TARGETS if name.startswith("android-")]
MACHINES: Final = {"arm64-v8a": "EM_AARCH64", "armeabi-v7a": "EM_ARM", "x86_64": "EM_X86_64", "x86": "EM_386"}
PAGE: Final = 16384
ROOT: Final = Path(__file__).parents[2]
BUILD_SECONDS: Final = 3600.0


@pytest.fixture(scope="module")
def sources() -> SourceTree:
    return fetch_sources(runtime_pins("1.21.0"), "auto")


def plan_for(ndk: Ndk, target: str, pins: tuple[SourcePin, ...]) -> BuildPlan:
    return sample_plan(target, android=AndroidSpec(api=28, ndk=ndk.version), sources=pins)


def executor(sources: SourceTree, folder: Path, ndk: Ndk) -> Executor:
    log = folder / "build.log"
    return native_executor(
        sources.folder, log, target="android-arm64-v8a", sdk=ndk.folder, parallelism=choose_parallelism(None)
    )


def require_aligned(elf: ELFFile) -> None:
    for segment in elf.iter_segments():
        if segment["p_type"] == "PT_LOAD":
            assert segment["p_align"] >= PAGE
        if segment["p_type"] == "PT_GNU_RELRO":
            assert (segment["p_vaddr"] + segment["p_memsz"]) % PAGE == 0


def build_id(elf: ELFFile) -> bytes:
    section = elf.get_section_by_name(".note.gnu.build-id")
    assert section is not None
    content: bytes = section.data()
    return content


@pytest.mark.parametrize("target", ANDROID)
def test_the_runner_compiles_for_every_abi(sources: SourceTree, tmp_path: Path, target: str) -> None:
    """The wrapper finds the NDK's clang, headers and libraries; the program is for the ABI and for pages of 16 KB."""
    ndk = installed_ndk()
    job = plan_for(ndk, target, sources.pins).targets[0].runner
    with executor(sources, tmp_path, ndk).run_runner(job).open("rb") as file:
        elf = ELFFile(file)
        assert elf["e_machine"] == MACHINES[target.removeprefix("android-")]
        require_aligned(elf)


@pytest.mark.build
def test_a_library_and_its_symbols_are_built(sources: SourceTree, tmp_path: Path) -> None:
    ndk = installed_ndk()
    job = plan_for(ndk, "android-arm64-v8a", sources.pins).targets[0].job
    result = executor(sources, tmp_path, ndk).run(replace(job, operator_config=""))
    symbols = result.folder / "libonnxruntime.so.sym"
    with result.library.open("rb") as file, symbols.open("rb") as other:
        library, whole = ELFFile(file), ELFFile(other)
        require_aligned(library)
        assert library.get_section_by_name(".symtab") is None
        assert whole.get_section_by_name(".symtab") is not None
        assert build_id(library) == build_id(whole)
    assert str(sources.folder).encode() not in result.library.read_bytes()
    assert result.link_map is not None


@pytest.mark.build
def test_the_demo_becomes_an_aar(tmp_path: Path) -> None:
    """One command gives a package of two ABIs that passed every gate; without a device nothing is claimed."""
    spec = tmp_path / "app.toml"
    spec.write_text(f'{demo_spec().read_text()}\n[android]\nndk = "{installed_ndk().version}"\n')
    words = ("build", "--spec", str(spec), "--target", "android-arm*", "--output", str(tmp_path), "--json")
    done = run((sys.executable, "-m", "invoke", *words), cwd=ROOT, timeout_seconds=BUILD_SECONDS)
    assert done.returncode == 0, done.stderr
    reports = json.loads(done.stdout)["reports"]
    assert [report["target"] for report in reports] == ["android-arm64-v8a", "android-armeabi-v7a"]
    (aar,) = tmp_path.rglob("android/*/*.aar")
    for report in reports:
        assert report["devices"] == []
        assert {gate["verdict"] for gate in report["gates"]} <= {"pass", "not judged"}
        assert report["package_bytes"] == aar.stat().st_size
    assert read_aar(aar).abis == ("arm64-v8a", "armeabi-v7a")
