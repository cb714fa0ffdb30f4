"""What `doctor` finds of this machine, and what it says to do about the rest. None of Apple's own tools is run."""

import importlib.metadata
import os
import shutil
import sys
from pathlib import Path
from typing import Final

import pytest

from aar_samples import fake_jdk
from absent_packages import without_package
from fake_engine import fake_engine
from ortrim.base.tools import ToolFinding, extra_command
from ortrim.planning import doctor
from ortrim.planning.doctor import DEVICE_TOOLS, examine
from ortrim.platforms.android import ndk
from ortrim.platforms.apple.xcode import Xcode
from ortrim.sources.debian import DebianPackage, write_packages
from program_files import write_program

PROGRAMS: Final = os.environ["PATH"]
"""This machine's own, of which some take a second to say their version."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the cache folder inside the test, and this machine's programs and logins outside."""
    for name in [name for name in os.environ if name.startswith("CLOUDSDK_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "cache"
    monkeypatch.setenv("ORTRIM_CACHE", str(folder))
    monkeypatch.setenv("PATH", str(tmp_path))
    return folder


def finding(name: str) -> ToolFinding:
    return next(found for found in examine() if found.name == name)


def test_this_machine_can_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", PROGRAMS)
    findings = {found.name: found for found in examine()}
    assert [found.name for found in findings.values() if found.required and not found.satisfied] == []
    assert findings["Python"].found.startswith(f"{sys.version_info.major}.{sys.version_info.minor}.")
    assert findings["memory"].found.endswith(" GB")
    assert int(findings["processors"].found) >= 1


def test_names_are_unique_and_purposes_given() -> None:
    findings = examine()
    assert len({found.name for found in findings}) == len(findings)
    assert all(found.needed_for for found in findings)


def test_absent_tools_have_a_remedy_and_block_only_their_builds() -> None:
    """Without any program on PATH the examination ends all the same, and each tool says how to get it."""
    absent = {found.name: found for found in examine() if not found.satisfied}
    tools = [tool.name for tool, _ in (*doctor.TOOLS, *DEVICE_TOOLS)]
    assert list(absent)[: len(tools)] == tools
    assert all(found.remedy and not found.required for found in absent.values())
    assert {absent[name].problem for name in tools} == {"is not installed"}


def test_the_kit_that_compiles_the_classes_of_an_aar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its version and place when it is there; without, how to get it, since no AAR is made then."""
    jdk = fake_jdk(tmp_path / "jdk" / "bin")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    there = finding("JDK")
    assert there.satisfied
    assert there.found == f"17.0.15 ({jdk.javac})"
    assert "android" in there.needed_for
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (tmp_path / "apt-get").touch(mode=0o755)
    absent = finding("JDK")
    assert (absent.found, absent.required, absent.satisfied) == ("", False, False)
    assert str(tmp_path) in absent.problem
    assert "install" in absent.remedy
    assert not absent.remedy.startswith("run: ")


def test_emulated_machines_are_looked_for(tmp_path: Path) -> None:
    """Parts that were not fetched say how to fetch them, and block nothing; those that were are named."""
    name = "arm64 machine"
    absent = finding(name)
    assert (absent.required, absent.remedy) == (False, "invoke devices --fetch")
    folder = tmp_path / "cache" / "machines" / "debian-trixie-arm64"
    folder.mkdir(parents=True)
    package = DebianPackage(name="libc6", version="2.41-12", architecture="arm64", suite="trixie", sha256="a" * 64)
    write_packages(folder, [package])
    assert (finding(name).found, finding(name).satisfied) == ("libc6 2.41-12", True)
    assert not finding("armhf machine").satisfied


def test_a_full_disk_is_found(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    usage = shutil.disk_usage(cache.parent)._replace(free=1_500_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
    found = finding("cache folder")
    assert found.found == f"1.5 GB free ({cache})"
    assert found.problem.startswith("less than 4 GB")
    assert "ORTRIM_CACHE" in found.remedy


def test_a_cache_folder_that_cannot_be_made_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file in the place of the folder is a finding, not a traceback."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "file"))
    found = finding("cache folder")
    assert (found.satisfied, found.found) == (False, "")
    assert str(tmp_path / "file") in found.problem


def test_a_cache_folder_of_somebody_else_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    assert finding("cache folder").problem == "is not writable"


def test_little_memory_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 250_000}.__getitem__)
    found = finding("memory")
    assert (found.found, found.satisfied) == ("1.0 GB", False)


def test_a_python_without_pip_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Environments made by other installers have no pip, which fetches the toolchain."""

    def absent(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    assert finding("pip").remedy == f"{sys.executable} -m ensurepip"


def test_nothing_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that fails for an unforeseen reason becomes a finding with that reason."""

    def refuse(_name: str) -> int:
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(os, "sysconf", refuse)
    assert finding("memory").problem == "cannot be examined: unrecognized configuration name"


def test_an_ndk_is_looked_for_and_blocks_only_android(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one it is said how to get it; one that is not whole is said to be so, with what it lacks."""
    for name in ("ANDROID_NDK_HOME", "ANDROID_NDK_ROOT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    absent = finding("Android NDK")
    assert (absent.found, absent.required, absent.satisfied) == ("", False, False)
    assert "ANDROID_NDK_HOME" in absent.remedy
    monkeypatch.setenv("ANDROID_NDK_HOME", str(tmp_path))
    assert finding("Android NDK").problem.startswith("is not a whole NDK: not there: source.properties")


def test_an_ndk_that_is_there_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = ndk.Ndk(folder=tmp_path, version="27.2.12479018", levels=(21, 35))
    monkeypatch.setattr(doctor, "installed_ndk", lambda: found)
    assert (finding("Android NDK").found, finding("Android NDK").satisfied) == (f"27.2.12479018 ({tmp_path})", True)


def test_engines_are_examined_by_asking_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that answers is found with its version; a client without its daemon has the remedy for that."""
    engine = fake_engine(tmp_path, monkeypatch)
    found = finding("docker")
    assert (found.found, found.satisfied, found.required) == ("28.0.1", True, False)
    engine.answer("docker info", 1, "Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?")
    found = finding("docker")
    assert found.problem == "its daemon is not running"
    assert "systemctl start docker" in found.remedy
    assert finding("podman").problem == "is not installed"


def test_xcode_is_looked_for_and_blocks_only_apple(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On no Mac it is said where to go; on one its version and folder are shown."""
    monkeypatch.setattr("platform.system", lambda: "Linux")
    absent = finding("Xcode")
    assert (absent.found, absent.required, absent.satisfied) == ("", False, False)
    assert "--executor github" in absent.remedy
    monkeypatch.setattr(doctor, "find_xcode", lambda: Xcode(folder=tmp_path, version="16.4"))
    assert (finding("Xcode").found, finding("Xcode").satisfied) == (f"16.4 ({tmp_path})", True)


@pytest.mark.parametrize("tool", ["simctl", "devicectl"])
def test_ways_to_devices_are_absent_without_a_mac(tool: str) -> None:
    """It is said which devices cannot be reached, and what would help."""
    found = finding(tool)
    assert (found.found, found.required) == ("", False)
    assert found.problem == "comes with Xcode, which runs only on a Mac"
    assert f"'{tool}'" in found.needed_for
    assert found.remedy.startswith("install Xcode")


def test_each_tool_of_apples_is_asked_for_by_itself(tmp_path: Path) -> None:
    """An Xcode before 15 has simulators, and no way to phones that ortrim goes."""
    script = 'case "$2" in simctl) echo /X/simctl ;; *) echo "unable to find utility" >&2; exit 72 ;; esac'
    write_program(tmp_path / "xcrun", script)
    assert (finding("simctl").found, finding("simctl").satisfied) == (f"by {tmp_path / 'xcrun'}", True)
    absent = finding("devicectl")
    assert absent.problem == "the selected developer tools have no devicectl: unable to find utility"
    assert "xcode-select" in absent.remedy


def test_a_licence_that_nobody_accepted(tmp_path: Path) -> None:
    write_program(tmp_path / "xcrun", "echo 'You have not agreed to the Xcode license agreements.' >&2; exit 69")
    assert finding("simctl").remedy == "sudo xcodebuild -license accept"


@pytest.mark.parametrize(
    ("programs", "command"),
    [((), "sudo snap install google-cloud-cli --classic"), (("brew",), "brew install --cask gcloud-cli")],
)
def test_how_gcloud_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: tuple[str, ...], command: str
) -> None:
    for name in programs:
        write_program(tmp_path / name)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found = finding("gcloud")
    assert (found.found, found.problem, found.required) == ("", "is not installed", False)
    assert found.remedy.startswith(f"{command}; ")


def test_gcloud_is_here(tmp_path: Path) -> None:
    """Its version and place are told; whether somebody is signed in is asked when a device is used."""
    version = 'case "$*" in --version) echo "Google Cloud SDK 528.0.0";; *) exit 1;; esac'
    write_program(tmp_path / "gcloud", version)
    assert (finding("gcloud").satisfied, finding("gcloud").found) == (True, f"528.0.0 ({tmp_path / 'gcloud'})")


def test_boto3_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    without_package(monkeypatch, "boto3")
    found = finding("boto3")
    assert (found.problem, found.remedy) == ("is not installed", 'pip install "ortrim[devicefarm]"')
    assert (found.required, "verification on" in found.needed_for) == (False, True)


@pytest.mark.parametrize(
    ("file", "folder", "command"),
    [
        ("pyvenv.cfg", "venv", "pip install"),
        ("uv-receipt.toml", "tools/ortrim", "uv tool install"),
        ("pipx_metadata.json", "venvs/ortrim", "pipx install --force"),
        ("pyvenv.cfg", "archive-v0/UbQLGnHesSKisaaE", "uvx"),
    ],
)
def test_an_extra_is_had_as_ortrim_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, folder: str, command: str
) -> None:
    """By pip into an environment, by uv or pipx as a tool, or by uv for one run."""
    environment = tmp_path / folder
    environment.mkdir(parents=True)
    (environment / file).touch()
    monkeypatch.setattr(sys, "prefix", str(environment))
    assert extra_command("apple") == f'{command} "ortrim[apple]"'
