import json
from pathlib import Path

import pytest

from ortrim.base.tools import EMULATIONS, QEMU_SYSTEM, machine_folder
from ortrim.buildspec.targets import TARGETS, OperatingSystem
from ortrim.planning.doctor import DEVICE_TOOLS, machine_parts_found

KERNEL_AND_LIBRARIES = json.dumps(
    {
        "packages": [
            {"name": name, "version": version, "architecture": "arm64", "suite": "trixie", "sha256": "a" * 64}
            for name, version in (("libc6", "2.41"), ("musl", "1"), ("linux-image-6.12-cloud-arm64", "6.12.107-1"))
        ]
    }
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the cache folder inside the test."""
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_every_foreign_architecture_is_emulated() -> None:
    """Each architecture of Linux but x86-64 has an emulator, a linker for each of its libraries, and processors."""
    linux = {target.architecture.value for target in TARGETS.values() if target.system is OperatingSystem.LINUX}
    assert set(EMULATIONS) == linux - {"x64"}
    for emulation in EMULATIONS.values():
        assert len(emulation.library_folders) == len(emulation.loaders)
        assert emulation.user_cpus
    assert len({machine_folder(emulation.debian) for emulation in EMULATIONS.values()}) == len(EMULATIONS)


def test_every_emulator_can_be_missing() -> None:
    """The doctor looks for each of them."""
    looked_for = {tool.name for tool, _ in DEVICE_TOOLS}
    assert {QEMU_SYSTEM.name, *(emulation.user.name for emulation in EMULATIONS.values())} <= looked_for


@pytest.mark.parametrize(
    ("record", "found"),
    [
        (None, ""),
        ("", ""),
        ("[]", ""),
        ('{"packages": 1}', ""),
        ('{"packages": [1]}', ""),
        ('{"packages": [{"name": "libc6"}]}', ""),
        ("\udc80", ""),
        ('{"packages": []}', ""),
        (
            KERNEL_AND_LIBRARIES,
            "libc6 2.41, linux-image-6.12-cloud-arm64 6.12.107-1",
        ),
    ],
)
def test_what_was_fetched_is_reported(record: str | None, found: str) -> None:
    """Kernel and C library are named with their versions; what cannot be read was not fetched."""
    if record is not None:
        machine_folder("arm64").mkdir(parents=True)
        (machine_folder("arm64") / "packages.json").write_text(record, errors="surrogateescape")
    assert machine_parts_found("arm64") == found
