"""What is done to a library for Macs that zig has linked."""

from dataclasses import replace
from pathlib import Path

import pytest

from apple_slices import recorded
from ortrim.binaries.macho.files import read_macho
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.plan import BuildJob
from ortrim.compiling.workspace import JobPaths
from ortrim.errors import BinaryError, StorageError
from ortrim.platforms import APPLE
from ortrim.platforms.apple.arguments import is_cross_built, zig_apple_toolchain
from refusing import refused
from sample_plans import sample_plan


@pytest.fixture
def job() -> BuildJob:
    toolchain = zig_apple_toolchain(TARGETS["macos-arm64"], "13.3", "0.17.0")
    return sample_plan("macos-arm64", toolchain=toolchain).targets[0].job


@pytest.fixture
def paths(tmp_path: Path) -> JobPaths:
    """Leave what a link leaves: the library, and the list of names that upstream wants exported."""
    made = JobPaths(
        **{name: tmp_path / name for name in ("sources", "build", "tools", "wrappers", "config", "runner", "hooks")}
    )
    made.configured.mkdir(parents=True)
    (made.build / "anew.dylib").write_bytes(recorded("macos-arm64"))
    (made.configured / "onnxruntime.lds").write_text("_OrtGetApiBase\n")
    return made


def test_it_offers_what_upstream_lists(job: BuildJob, paths: JobPaths) -> None:
    """The linker passes the list over, so that it is followed afterwards; what was linked stays, for the next time."""
    APPLE.finish(job, paths)
    library, symbols = (read_macho(paths.build / name).images[0] for name in job.expected_outputs)
    assert library.exported == ("OrtGetApiBase",)
    assert symbols.uuid == library.uuid
    assert (paths.build / "anew.dylib").read_bytes() == recorded("macos-arm64")


def test_without_folding_it_is_what_upstream_linked(job: BuildJob, paths: JobPaths) -> None:
    (paths.build / "anew.dylib").rename(paths.configured / "libonnxruntime.dylib")
    APPLE.finish(replace(job, build_options=replace(job.build_options, icf=False)), paths)
    assert read_macho(paths.build / job.expected_outputs[0]).images[0].exported == ("OrtGetApiBase",)


def cross_job(target: str) -> BuildJob:
    toolchain = zig_apple_toolchain(TARGETS[target], "15.1", "0.17.0")
    return sample_plan(target, toolchain=toolchain).targets[0].job


def test_simulators_on_apples_processors_take_the_phones_library() -> None:
    """It is the phone's own job, so that whoever builds both compiles once."""
    made_of = APPLE.made_of(cross_job("ios-simulator-arm64"))
    assert made_of is not None
    assert made_of[0] == cross_job("ios-arm64")


@pytest.mark.parametrize("target", ["ios-arm64", "ios-simulator-x86_64", "maccatalyst-arm64", "macos-arm64"])
def test_other_libraries_are_compiled(target: str) -> None:
    """Xcode compiles for simulators itself."""
    assert APPLE.made_of(cross_job(target)) is None
    assert APPLE.made_of(sample_plan("ios-simulator-arm64").targets[0].job) is None


def test_a_library_of_xcodes_stays_as_it_is(paths: JobPaths) -> None:
    """Apple's linker follows the list itself."""
    xcode = replace(sample_plan("macos-arm64").targets[0].job, finishing=())
    APPLE.finish(xcode, paths)
    assert not (paths.build / xcode.expected_outputs[0]).exists()


def test_a_list_that_does_not_fit_is_refused(job: BuildJob, paths: JobPaths) -> None:
    """Nothing is left half done."""
    (paths.configured / "onnxruntime.lds").write_text("_OrtGetApiBase\n_OrtOther\n")
    caught = refused(BinaryError, APPLE.finish, job, paths)
    assert caught.code == "symbol-missing"
    assert not (paths.build / job.expected_outputs[0]).exists()


@pytest.mark.parametrize("name", ["../anew.dylib", "onnxruntime.lds"])
def test_what_is_missing_is_reported(job: BuildJob, paths: JobPaths, name: str) -> None:
    """A folder that somebody cleared is a diagnostic."""
    (paths.configured / name).unlink()
    refused(StorageError, APPLE.finish, job, paths)


def test_only_zigs_libraries_for_macs_are_cross_built(job: BuildJob) -> None:
    """Those of Xcode are not, and no library for Linux is."""
    assert is_cross_built(job)
    assert not is_cross_built(sample_plan("macos-arm64").targets[0].job)
    assert not is_cross_built(sample_plan("linux-arm64").targets[0].job)
