"""What `doctor` says of device farms: programs and how to get them."""

import importlib.metadata
import os
from pathlib import Path
from typing import Final

import pytest

from ortrim.base.tools import ToolFinding
from ortrim.planning import doctor
from ortrim.planning.doctor import examine

VERSION: Final = 'case "$*" in --version) echo "Google Cloud SDK 528.0.0";;'


@pytest.fixture(autouse=True)
def nobodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the credentials and programs of whoever runs the tests."""
    for name in [name for name in os.environ if name.startswith("CLOUDSDK_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))


def finding(name: str) -> ToolFinding:
    """Return one finding, which keeps nobody from building."""
    found = next(check for check in doctor.FARM_CHECKS if check.name == name).finding()
    assert found.name == name
    assert (found.required, "verification on" in found.needed_for) == (False, True)
    return found


def program(folder: Path, text: str) -> None:
    path = folder / "gcloud"
    path.write_text(f"#!/bin/sh\n{VERSION}\n{text}\nesac\n")
    path.chmod(0o755)


def test_gcloud_is_absent() -> None:
    found = finding("gcloud")
    assert (found.found, found.problem) == ("", "is not installed")
    assert "snap install google-cloud-cli --classic" in found.remedy


def test_gcloud_is_here(tmp_path: Path) -> None:
    """Its version and place are told; whether somebody is signed in is asked when a device is used."""
    program(tmp_path, "*) exit 1;;")
    found = finding("gcloud")
    assert (found.satisfied, found.found) == (True, f"528.0.0 ({tmp_path / 'gcloud'})")


def test_boto3_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    version = importlib.metadata.version

    def absent(name: str) -> str:
        if name == "boto3":
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    found = finding("boto3")
    assert (found.problem, found.remedy) == ("is not installed", 'pip install "ortrim[devicefarm]"')


@pytest.mark.parametrize(
    ("programs", "command"),
    [((), "sudo snap install google-cloud-cli --classic"), (("brew",), "brew install --cask gcloud-cli")],
)
def test_how_gcloud_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: tuple[str, ...], command: str
) -> None:
    for name in programs:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert finding("gcloud").remedy.startswith(f"{command}; ")


def test_all_farms_are_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that fails for an unforeseen reason keeps nobody from building."""

    def refuse() -> None:
        raise ValueError("unforeseen")

    monkeypatch.setattr("ortrim.devices.firebase.find_gcloud", refuse)
    found = {finding.name: finding for finding in examine()}
    assert "boto3" in found
    assert (found["gcloud"].problem, found["gcloud"].required) == ("cannot be examined: unforeseen", False)
