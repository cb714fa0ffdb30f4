"""Which engine is used, with engines of a few lines on PATH."""

from pathlib import Path

import pytest

from fake_engine import FakeEngine, fake_engine
from ortrim.compiling.containers.engines import DOCKER, UsableEngine, engine_named, first_that_works, probe
from ortrim.errors import ExitCode, NetworkError, ToolError, UsageError

DAEMON = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?\n"
Tried = list[str]


def fine(_: UsableEngine) -> None:
    """Find nothing wrong with an engine."""


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """Have docker alone."""
    return fake_engine(tmp_path, monkeypatch)


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[FakeEngine, FakeEngine]:
    """Have docker and podman."""
    docker, podman = fake_engine(tmp_path, monkeypatch), FakeEngine(tmp_path / "fake podman", "podman")
    monkeypatch.setenv("PATH", f"{docker.home / 'bin'}:{podman.home / 'bin'}")
    return docker, podman


def test_an_engine_tells_its_version(docker: FakeEngine) -> None:
    """It is there, new enough, and its daemon answers."""
    usable = probe(DOCKER)
    assert (usable.name, usable.version, usable.rootless) == ("docker", "28.0.1", False)


def test_an_absent_engine_is_reported_with_what_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is on PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError) as caught:
        first_that_works("buildah", fine, print)
    assert (caught.value.code, caught.value.exit_code) == ("tool-missing", ExitCode.TOOL)
    assert "buildah" in caught.value.hint


def test_an_old_engine_is_refused(docker: FakeEngine) -> None:
    """Docker before 20.10 does not know all the words."""
    program = docker.home / "bin" / "docker"
    program.write_text(program.read_text().replace("28.0.1", "19.03.8"))
    with pytest.raises(ToolError) as caught:
        probe(DOCKER)
    assert caught.value.code == "tool-too-old"


def test_a_daemon_that_does_not_run_is_reported(docker: FakeEngine) -> None:
    """The client alone is no engine."""
    docker.answer("docker info", 1, DAEMON)
    with pytest.raises(ToolError) as caught:
        first_that_works("docker", fine, print)
    assert caught.value.code == "engine-not-running"


def test_a_name_that_is_none_is_a_usage_error() -> None:
    """The names are reported."""
    with pytest.raises(UsageError) as caught:
        engine_named("lxc")
    assert caught.value.where == "--engine"
    assert "docker, podman, buildah" in caught.value.hint


def test_the_first_that_works_is_taken(both: tuple[FakeEngine, FakeEngine]) -> None:
    """In the order docker, podman, buildah; those that are there and do not work are told of, absent ones are not."""
    docker, podman = both
    assert first_that_works(None, fine, print).name == "docker"
    docker.answer("docker info", 1, DAEMON)
    notes: list[str] = []
    assert first_that_works(None, fine, notes.append).name == "podman"
    assert notes == ["docker: its daemon is not running"]
    assert podman.calls("info")


def test_an_engine_that_cannot_make_containers_is_passed_over(both: tuple[FakeEngine, FakeEngine]) -> None:
    """It shows only when it does; what it said is reported."""

    def attempt(usable: UsableEngine) -> None:
        if usable.name == "docker":
            raise ToolError("engine-not-permitted", "it may not create containers here", where="docker: run")

    assert first_that_works(None, attempt, print).name == "podman"
    with pytest.raises(ToolError) as caught:
        first_that_works("docker", attempt, print)
    assert caught.value.code == "engine-not-permitted"


def test_what_another_engine_would_not_mend_ends_the_search(both: tuple[FakeEngine, FakeEngine]) -> None:
    """A registry that cannot be reached cannot be reached by the next one either."""

    def attempt(_: UsableEngine) -> None:
        raise NetworkError("image-unreachable", "the base image cannot be fetched")

    with pytest.raises(NetworkError):
        first_that_works(None, attempt, print)
    assert not both[1].calls()


def test_when_none_works_each_says_why(docker: FakeEngine) -> None:
    """One diagnostic, a line and a remedy for each."""
    docker.answer("docker info", 1, DAEMON)
    with pytest.raises(ToolError) as caught:
        first_that_works(None, fine, lambda _: None)
    assert caught.value.code == "no-container-engine"
    assert [line.partition(":")[0] for line in caught.value.why.splitlines()] == ["docker", "podman", "buildah"]
    assert "--executor native" in caught.value.hint
