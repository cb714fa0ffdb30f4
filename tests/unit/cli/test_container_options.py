"""`--executor container` and `pins.update --images` on the command line."""

import os
from pathlib import Path

import pytest

from fake_engine import FakeEngine, fake_engine
from ortrim.cli.options import container_options, request_from
from ortrim.cli.tasks import pins as pins_task
from ortrim.compiling.container_engines import ContainerOptions, Mount
from ortrim.errors import UsageError
from ortrim.pins.shipped import IMAGES_FILE
from program_runs import Run
from refusing import refused


def test_a_container_becomes_part_of_the_request(tmp_path: Path) -> None:
    options = container_options("container", "podman", [f"{tmp_path}:/opt/own:ro"], ["--memory=8g"])
    mount = Mount(source=tmp_path.resolve(), target="/opt/own")
    assert options == ContainerOptions(engine="podman", mounts=(mount,), flags=("--memory=8g",))
    assert request_from(None, container=options).container == options
    assert container_options("container", None, [], []) == ContainerOptions()
    assert container_options("native", None, [], []) is None


@pytest.mark.parametrize("executor", ["", "docker", "GitHub", "containers"])
def test_another_executor_is_refused(executor: str) -> None:
    error = refused(UsageError, container_options, executor, None, [], [])
    assert "native, container or github" in error.hint


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """Have an engine and pins of the test's own."""
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path / "pins"))
    (tmp_path / "pins").mkdir()
    (tmp_path / "pins" / IMAGES_FILE).write_text('[bases.python]\nreference = "python:3"\n')
    return fake_engine(tmp_path, monkeypatch)


def test_images_are_pinned_by_the_engine_asked_for(
    ortrim: Run, docker: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that was written is the answer."""
    asked = []

    def update(usable: object, **options: object) -> Path:
        asked.append((usable, options["mirrors"]))
        return tmp_path / "images.toml"

    monkeypatch.setattr(pins_task, "update_image_pins", update)
    ended = ortrim("pins.update", "--images", "--engine", "docker", "--mirror", "https://a=http://b")
    assert (ended.code, ended.out.splitlines()[-1]) == (0, str(tmp_path / "images.toml"))
    ((usable, mirrors),) = asked
    assert getattr(usable, "name", None) == "docker"
    assert mirrors == (("https://a", "http://b"),)


@pytest.mark.parametrize("words", [(), ("--version", "1.21.0", "--images")])
def test_either_a_version_or_the_images_are_pinned(ortrim: Run, words: tuple[str, ...]) -> None:
    ended = ortrim("pins.update", *words)
    assert ended.code == 2
    assert ended.err.startswith("error: bad-option\n")


def test_without_an_engine_nothing_is_pinned(ortrim: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    ended = ortrim("pins.update", "--images")
    assert ended.code == 16
    assert "error: no-container-engine" in ended.err
    assert os.environ["PATH"] == str(tmp_path)
