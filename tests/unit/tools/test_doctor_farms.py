"""What `doctor` says of device farms: the programs, how to get them, and that there are credentials, never which."""

import importlib.metadata
import os
from pathlib import Path
from typing import Final

import pytest

from ortrim.base.tools import Finding
from ortrim.pipeline import doctor
from ortrim.pipeline.doctor import examine

SECRET: Final = "geheimer-Schluessel-31"  # noqa: S105 - a secret to look for
VERSION: Final = 'case "$*" in --version) echo "Google Cloud SDK 528.0.0";;'


@pytest.fixture(autouse=True)
def nobodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the credentials and programs of whoever runs the tests."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "BROWSERSTACK_", "CLOUDSDK_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "absent"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))


def finding(name: str) -> Finding:
    """Return one finding, in which nothing is secret and which keeps nobody from building."""
    found = dict(doctor.FARM_CHECKS)[name]()
    assert found.name == name
    assert SECRET not in repr(found)
    assert (found.required, "verification on" in found.needed_for) == (False, True)
    return found


def program(folder: Path, text: str) -> None:
    """Write a script called gcloud."""
    path = folder / "gcloud"
    path.write_text(f"#!/bin/sh\n{VERSION}\n{text}\nesac\n")
    path.chmod(0o755)


def test_gcloud_is_absent() -> None:
    """The command that installs it is named."""
    found = finding("gcloud")
    assert (found.found, found.problem) == ("", "is not installed")
    assert "snap install google-cloud-cli --classic" in found.remedy


def test_gcloud_without_an_account(tmp_path: Path) -> None:
    """It is there, and how to sign in is said."""
    program(tmp_path, "auth*) echo 'WARNING: no keys' >&2;;")
    found = finding("gcloud")
    assert found.found == f"528.0.0 ({tmp_path / 'gcloud'}), no account"
    assert (found.satisfied, found.remedy) == (False, "gcloud auth login")


def test_gcloud_with_an_account(tmp_path: Path) -> None:
    """That there is one is asked for, and nothing else of it."""
    program(tmp_path, """"auth list --filter=status:ACTIVE --format=value(status)") echo ACTIVE;; *) exit 1;;""")
    found = finding("gcloud")
    assert found.found == f"528.0.0 ({tmp_path / 'gcloud'}), with an account"
    assert found.satisfied


@pytest.mark.parametrize("name", ["CLOUDSDK_AUTH_ACCESS_TOKEN_FILE", "CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE"])
def test_gcloud_with_a_credential_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """As on CI, where nobody signs in."""
    program(tmp_path, "auth*) exit 1;;")
    monkeypatch.setenv(name, str(tmp_path / SECRET))
    assert finding("gcloud").satisfied


def test_gcloud_that_does_not_answer(tmp_path: Path) -> None:
    """One that is broken has no account that could be used."""
    program(tmp_path, "auth*) echo 'ERROR: (gcloud.auth.list) ya29.secret'; exit 1;;")
    found = finding("gcloud")
    assert (found.satisfied, "ya29" in repr(found)) == (False, False)


def test_boto3_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra of ortrim's."""
    version = importlib.metadata.version

    def absent(name: str) -> str:
        if name == "boto3":
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    found = finding("boto3")
    assert (found.problem, found.remedy) == ("is not installed", 'pip install "ortrim[devicefarm]"')


def test_aws_without_credentials() -> None:
    """How to give them is said."""
    found = finding("boto3")
    assert found.found == f"{importlib.metadata.version('boto3')}, no credentials"
    assert (found.satisfied, "aws configure" in found.remedy) == (False, True)


def test_aws_with_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they are is said."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", SECRET)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    found = finding("boto3")
    assert (found.satisfied, found.found) == (True, f"{importlib.metadata.version('boto3')}, with credentials (env)")


@pytest.mark.parametrize(
    ("variable", "value"), [("AWS_PROFILE", "absent"), ("AWS_ACCESS_KEY_ID", SECRET)], ids=["no-profile", "half"]
)
def test_aws_with_credentials_that_are_wrong(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    """A profile that is not there, or half a pair, is none."""
    monkeypatch.setenv(variable, value)
    found = finding("boto3")
    assert (found.satisfied, found.found.endswith(", no credentials")) == (False, True)
    assert found.problem


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ((), "BROWSERSTACK_USERNAME and BROWSERSTACK_ACCESS_KEY"),
        (("BROWSERSTACK_USERNAME",), "BROWSERSTACK_ACCESS_KEY"),
        (("BROWSERSTACK_USERNAME", "BROWSERSTACK_ACCESS_KEY"), ""),
    ],
)
def test_browserstack(monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...], missing: str) -> None:
    """Both variables have to be set; their values are nobody's."""
    for name in given:
        monkeypatch.setenv(name, SECRET)
    found = finding("BrowserStack")
    assert found.satisfied == (not missing)
    assert found.problem == (f"not set: {missing}" if missing else "")
    assert bool(found.remedy) == bool(missing)


@pytest.mark.parametrize(
    ("programs", "command"),
    [((), "sudo snap install google-cloud-cli --classic"), (("brew",), "brew install --cask gcloud-cli")],
)
def test_how_gcloud_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs: tuple[str, ...], command: str
) -> None:
    """By what is here; root needs no sudo."""
    for name in programs:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert finding("gcloud").remedy.startswith(f"{command}; ")


def test_all_farms_are_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that fails for an unforeseen reason keeps nobody from building."""

    def refuse(_gcloud: object) -> bool:
        raise ValueError("unforeseen")

    program(Path(os.environ["PATH"]), "auth*) exit 1;;")
    monkeypatch.setattr("ortrim.farms.firebase.has_account", refuse)
    found = {finding.name: finding for finding in examine()}
    assert {"boto3", "BrowserStack"} <= found.keys()
    assert (found["gcloud"].problem, found["gcloud"].required) == ("cannot be examined: unforeseen", False)
