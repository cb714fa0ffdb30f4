"""What a library for Macs is compared with: the official one's size, of the same version and architecture."""

from pathlib import Path

import pytest

from apple_samples import sample
from ortrim.binaries.macho.files import universal_file
from ortrim.buildspec.targets import TARGETS, Architecture
from ortrim.errors import BinaryError, ExitCode, ToolError
from ortrim.models import full_runtime
from ortrim.models.full_runtime import FullRuntime
from ortrim.platforms import APPLE, platform_of
from ortrim.platforms.apple.platform import mac_baseline
from ortrim.verify.measure import NO_SIZE
from refusing import refused
from sample_plans import sample_plan

REQUIREMENTS = f"onnxruntime==1.21.0 \\\n    --hash=sha256:{'a' * 64}\n"


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a wheel's folder without installing one, and return the library in it."""
    monkeypatch.setattr(full_runtime, "packages_folder", lambda *_, **__: tmp_path)
    library = tmp_path / "onnxruntime" / "capi" / "libonnxruntime.1.21.0.dylib"
    library.parent.mkdir(parents=True)
    library.write_bytes(universal_file({name: sample(f"macos-{name}.dylib") for name in ("arm64", "x86_64")}))
    return library


def test_each_kind_of_mac_has_its_own_part_of_the_wheel(wheel: Path) -> None:
    """Not the file with both."""
    for architecture, name in ((Architecture.ARM64, "arm64"), (Architecture.X64, "x86_64")):
        baseline, size = mac_baseline("1.21.0", REQUIREMENTS, architecture)
        assert size.file_bytes == len(sample(f"macos-{name}.dylib")) < wheel.stat().st_size
        assert baseline.library is None
        assert baseline.name == "onnxruntime 1.21.0 (official wheel for macOS, its size alone)"


def test_a_wheel_for_the_other_kind_is_reported(wheel: Path) -> None:
    """By what it is for."""
    wheel.write_bytes(sample("macos-arm64.dylib"))
    caught = refused(BinaryError, mac_baseline, "1.21.0", REQUIREMENTS, Architecture.X64)
    assert (caught.code, caught.why) == ("architecture-missing", "it is for arm64")


@pytest.mark.parametrize("reference", ["", "install-failed"])
def test_a_version_without_a_pinned_wheel_has_no_baseline(monkeypatch: pytest.MonkeyPatch, reference: str) -> None:
    """Its name says so; whatever else goes wrong with the wheel is not taken for that."""

    def install(*_: object, **__: object) -> Path:
        raise ToolError(reference, "pip could not install the pinned packages")

    monkeypatch.setattr(full_runtime, "packages_folder", install)
    baseline, size = mac_baseline("1.21.0", REQUIREMENTS if reference else None, Architecture.ARM64)
    assert (baseline.name, size) == ("none: no official wheel of 1.21.0 for macOS is pinned", NO_SIZE)


def test_other_failures_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python without pip says so."""

    def library(*_: object) -> Path:
        raise ToolError("pip-missing", "this Python has no pip")

    monkeypatch.setattr(full_runtime, "foreign_library", library)
    caught = refused(ToolError, mac_baseline, "1.21.0", REQUIREMENTS, Architecture.ARM64)
    assert (caught.code, caught.exit_code) == ("pip-missing", ExitCode.TOOL)


def test_programs_of_macs_have_it_and_apps_do_not() -> None:
    """Upstream publishes wheels; of what runs on phones and in Catalyst there is none."""
    runtime = FullRuntime(version="1.21.0", words=(), environment={}, packages=Path(), library=Path())
    for name in (name for name, target in TARGETS.items() if platform_of(target) is APPLE):
        found, _ = APPLE.baseline(sample_plan(name).targets[0].job, runtime, None)
        assert ("wheel" in found.name) is (name in {"macos-arm64", "macos-x86_64"})
