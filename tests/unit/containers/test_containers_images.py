"""Building images with an engine of a few lines."""

import json
from pathlib import Path

import pytest

from fake_engine import FakeEngine
from ortrim.compiling.containers.engines import BUILDAH, DOCKER, ImageBuild, UsableEngine, probe
from ortrim.compiling.containers.executor import build_image, image_exists, image_label, pulled_digest
from ortrim.errors import Diagnostic, NetworkError, StorageError

TAG = "ortrim-linux:0123"


@pytest.fixture
def image(tmp_path: Path) -> ImageBuild:
    """Return an image to build."""
    context = tmp_path / "context"
    context.mkdir()
    (context / "Dockerfile").write_text(f"FROM scratch\n{image_label(TAG)}\n")
    return ImageBuild(context=context, tag=TAG)


def test_an_image_is_there_once_it_was_built(docker: FakeEngine, image: ImageBuild, tmp_path: Path) -> None:
    """What the engine prints is handed over line by line."""
    usable, lines = probe(DOCKER), list[str]()
    assert not image_exists(usable, TAG)
    build_image(usable, image, tmp_path, lines.append)
    assert image_exists(usable, TAG)
    assert lines == ["Step 1/1 : FROM scratch"]


def test_a_failed_build_is_reported_and_shows_no_password(
    docker: FakeEngine, image: ImageBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in the diagnostic nor in the log."""
    monkeypatch.setenv("https_proxy", "http://user:pass-word@proxy:8080")
    docker.answer("docker build", 1, "use http://user:pass-word@proxy:8080\nwrite /x: no space left on device\n")
    lines: list[str] = []
    with pytest.raises(StorageError) as caught:
        build_image(probe(DOCKER), image, tmp_path, lines.append)
    assert caught.value.code == "disk-full"
    assert TAG in caught.value.where
    assert lines[0] == "use http://...@proxy:8080"
    (words,) = docker.calls("build")
    assert "https_proxy" in [words[at + 1] for at, word in enumerate(words) if word == "--build-arg"]
    assert "pass-word" not in json.dumps(docker.calls())


BUILDAH_SCRIPT = """\
#!/bin/sh
echo "$@" >>'{home}/words'
case "$*" in
--version) echo buildah version 1.28.2 ;;
containers*) printf 'mine\\nanothers\\n' ;;
*container\\ mine) echo '{mine}' ;;
*container\\ anothers) echo '{anothers}' ;;
esac
"""


def test_what_a_killed_build_of_the_same_image_left_is_removed_first(
    docker: FakeEngine, image: ImageBuild, tmp_path: Path
) -> None:
    """Buildah keeps its containers; those of another image may be in use."""
    program = docker.home / "bin" / "buildah"
    mine, anothers = (json.dumps({"History": [image_label(tag)]}) for tag in (TAG, "ortrim-linux:4567"))
    program.write_text(BUILDAH_SCRIPT.format(home=docker.home, mine=mine, anothers=anothers))
    program.chmod(0o755)
    build_image(UsableEngine(engine=BUILDAH, version="1.28.2", rootless=False), image, tmp_path, print)
    words = (docker.home / "words").read_text().splitlines()
    assert [line for line in words if line.startswith("rm")] == ["rm mine"]
    assert words[-1].startswith("build ")


def test_the_digest_of_a_pulled_image_is_the_registrys(docker: FakeEngine) -> None:
    """It is read from what the engine says of the image."""
    digest = f"sha256:{'a' * 64}"
    program = docker.home / "bin" / "docker"
    program.write_text(f"#!/bin/sh\necho python@{digest}\n")
    usable = UsableEngine(engine=DOCKER, version="28", rootless=False)
    assert pulled_digest(usable, "python:3.13") == digest


@pytest.mark.parametrize("answer", ["", "<none>", "sha256:abc", f"sha256:{'A' * 64}"])
def test_an_image_without_a_digest_is_refused(docker: FakeEngine, answer: str) -> None:
    """A local image has none."""
    program = docker.home / "bin" / "docker"
    program.write_text(f"#!/bin/sh\necho '{answer}'\n")
    with pytest.raises(NetworkError) as caught:
        pulled_digest(UsableEngine(engine=DOCKER, version="28", rootless=False), "python:3.13")
    assert caught.value.code == "image-without-digest"


def test_an_image_that_cannot_be_pulled_is_reported(docker: FakeEngine) -> None:
    """The registry's answer is a network matter."""
    docker.answer("docker pull", 1, "Error response from daemon: manifest unknown\n")
    with pytest.raises(Diagnostic) as caught:
        pulled_digest(probe(DOCKER), "python:3.13")
    assert caught.value.code == "image-not-found"
