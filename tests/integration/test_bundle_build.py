"""The demo built from a bundle in a network namespace without any interface: the same library as with the network."""

import os
import sys
from pathlib import Path
from typing import Final

import pytest

from ortrim.base.command import run
from ortrim.base.files import sha256_of, shipped_folder
from ortrim.planning.request import require_host

pytestmark = [pytest.mark.build, pytest.mark.network, pytest.mark.slow, pytest.mark.needs("unshare")]

BUILD_SECONDS: Final = 5400.0
ALONE: Final = ("unshare", "--map-root-user", "--net")


def ortrim(*words: str | Path, before: tuple[str, ...] = (), **environment: str) -> None:
    """Run the program on the demo for this machine; it has to end well."""
    spec = shipped_folder("buildspecs") / "silero-vad.toml"
    command = (*before, sys.executable, "-m", "invoke", words[0], "--spec", spec, "--target", require_host().identifier)
    done = run(
        (*command, *words[1:]),
        cwd=Path(__file__).parents[2],
        environment={**os.environ, **environment},
        timeout_seconds=BUILD_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-4000:]


def libraries_in(folder: Path) -> dict[str, str]:
    """Return the digests of the libraries that a build delivered, by name."""
    return {path.name: sha256_of(path) for path in folder.rglob("libonnxruntime.so*") if path.is_file()}


def test_a_build_from_a_bundle_is_the_same_build(tmp_path: Path) -> None:
    """With an empty cache and no network at all, byte for byte."""
    ortrim("build", "--output", tmp_path / "with")
    ortrim("bundle", "--output", tmp_path / "b.zip")
    new_cache = {"ORTRIM_CACHE": str(tmp_path / "cache")}
    ortrim("build", "--bundle", tmp_path / "b.zip", "--output", tmp_path / "without", before=ALONE, **new_cache)
    found = libraries_in(tmp_path / "with")
    assert found
    assert libraries_in(tmp_path / "without") == found
