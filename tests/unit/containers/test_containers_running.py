"""Running commands with an engine of a few lines: the real lifeline, on this machine itself."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from fake_engine import FakeEngine
from ortrim.base.cache import cache_folder, locked
from ortrim.base.command import run
from ortrim.compiling.containers.engines import DOCKER, Mount, UsableEngine, probe
from ortrim.compiling.containers.executor import LIFELINE, STARTED, Command, own_folder, owner, remove_leftovers, run_in
from ortrim.errors import ToolError

PATIENCE = 20.0


@pytest.fixture
def usable(docker: FakeEngine) -> UsableEngine:
    """Have it probed."""
    return probe(DOCKER)


def command(*words: str, flags: tuple[str, ...] = (), folder: str = "/") -> Command:
    """Return a command with one variable."""
    mounts = (Mount(source=Path("/srv"), target="/srv"),)
    return Command(words=words, environment=(("NAME", "a value"),), folder=folder, mounts=mounts, flags=flags)


def folders() -> list[str]:
    """Return what is left of containers."""
    return [path.name for path in cache_folder("containers").iterdir()]


def test_a_command_sees_its_environment_and_nothing_else(usable: UsableEngine, tmp_path: Path) -> None:
    """Each line comes as it is printed; the exit code is the command's; nothing is left."""
    lines: list[str] = []
    code = run_in(
        usable,
        "image:1",
        command("/bin/sh", "-c", "/usr/bin/env; /bin/pwd; exit 7", folder=str(tmp_path)),
        lines.append,
    )
    assert code == 7
    assert "NAME=a value" in lines
    assert lines[-1] == str(tmp_path)
    assert not [line for line in lines if line.startswith(("PATH=", "HOME=", "ORTRIM_CACHE="))]
    assert folders() == []


def test_both_streams_come_in_the_order_in_which_they_were_written(usable: UsableEngine) -> None:
    """An engine may pass them on by two ways; a compiler's error belongs after the line that it is about."""
    lines: list[str] = []
    script = "for n in 1 2 3 4; do echo out $n; echo err $n >&2; done"
    run_in(usable, "image:1", command("/bin/sh", "-c", script), lines.append)
    assert lines == [f"{stream} {n}" for n in range(1, 5) for stream in ("out", "err")]


def test_the_engine_is_reported_all_and_removes_the_container(usable: UsableEngine, docker: FakeEngine) -> None:
    """Its name is a new one each time; the folder with the pipe is mounted, read-only, beside the command's own."""
    names = []
    for _ in range(2):
        run_in(usable, "image:1", command("/bin/true", flags=("--memory=8g",)), print)
        words = docker.calls("run")[-1]
        names.append(words[words.index("--name") + 1])
        own = cache_folder("containers") / names[-1]
        assert f"type=bind,src={own},dst={own},readonly" in words
        assert "type=bind,src=/srv,dst=/srv,readonly" in words
        assert "--memory=8g" in words
        assert words[words.index("--user") + 1] == f"{os.geteuid()}:{os.getegid()}"
        assert docker.calls("rm")[-1] == ["rm", "--force", names[-1]]
    assert len(set(names)) == 2
    assert all(name.startswith(f"ortrim-{owner()}-") for name in names)


def test_an_engine_that_starts_nothing_is_the_one_that_failed(usable: UsableEngine, docker: FakeEngine) -> None:
    """Even with an exit code that a command could have had; its own words tell why."""
    docker.answer("docker run", 1, "docker: Error response from daemon: bind source path does not exist: /srv.\n")
    lines: list[str] = []
    with pytest.raises(ToolError) as caught:
        run_in(usable, "image:1", command("/bin/true"), lines.append)
    assert caught.value.code == "folder-not-shared"
    assert lines == []
    assert folders() == []
    assert docker.calls("rm")


def test_an_engine_that_says_nothing_and_starts_nothing_failed_too(usable: UsableEngine, docker: FakeEngine) -> None:
    """Exit code 0 is not believed."""
    docker.answer("docker run", 0, "")
    with pytest.raises(ToolError) as caught:
        run_in(usable, "image:1", command("/bin/true"), print)
    assert caught.value.code == "engine-failed"


def test_a_command_that_does_not_exist_ends_as_in_a_shell(usable: UsableEngine) -> None:
    """It is `env` that says so."""
    lines: list[str] = []
    assert run_in(usable, "image:1", command("/does/not/exist"), lines.append) == 127
    assert "/does/not/exist" in lines[-1]


def test_an_interruption_removes_the_container(usable: UsableEngine, docker: FakeEngine) -> None:
    """Ctrl-C in the middle is passed on when all is gone."""

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_in(usable, "image:1", command("/bin/sh", "-c", "echo started; sleep 60"), interrupt)
    assert docker.calls("rm")
    assert folders() == []


def test_a_container_that_cannot_be_removed_spoils_nothing(usable: UsableEngine, docker: FakeEngine) -> None:
    """It may be gone already."""
    docker.answer("docker rm", 1, "Error: No such container\n")
    assert run_in(usable, "image:1", command("/bin/true"), print) == 0


def test_only_what_dead_runs_left_is_removed(usable: UsableEngine, docker: FakeEngine) -> None:
    """Of this cache folder's: not what a living run holds, nor what others called alike."""
    prefix = f"ortrim-{owner()}-"
    dead, folder_only = f"{prefix}dead", f"{prefix}folder"
    for name in (dead, folder_only):
        (cache_folder("containers") / name).mkdir()
    with own_folder() as alive:
        (docker.home / "leftovers").write_text(f"{dead}\n{alive.name}\nortrim-somebody-else\npostgres\n")
        assert remove_leftovers(usable) == (dead,)
        assert [words[-1] for words in docker.calls("rm")] == [dead]
        assert (alive / "alive").is_fifo()
        assert not (cache_folder("containers") / folder_only).exists()
    assert folders() == []


def test_an_engine_that_cannot_list_has_no_leftovers(usable: UsableEngine, docker: FakeEngine) -> None:
    """Cleaning up keeps nobody from working."""
    docker.answer("docker ps", 1, "Cannot connect to the Docker daemon")
    assert remove_leftovers(usable) == ()


def test_a_container_in_use_is_held(docker: FakeEngine) -> None:
    """Its lock is the sign; it is gone with the folder."""
    with own_folder() as folder:
        assert f".{folder.name}.lock" in folders()
    assert folders() == []
    with locked(cache_folder("containers") / "other"):
        assert folders() == [".other.lock"]


def lifeline(tmp_path: Path, *words: str) -> tuple[int, int, int]:
    """Start the lifeline on a pipe; return its process, the pipe's end that ortrim holds, and its output's."""
    os.mkfifo(tmp_path / "alive")
    held = os.open(tmp_path / "alive", os.O_RDWR)
    reading, writing = os.pipe()
    argv = [sys.executable, "-I", "-S", "-c", LIFELINE, str(tmp_path / "alive"), *words]
    process = os.posix_spawn(
        sys.executable, argv, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, writing, 1)], setsid=True
    )
    os.close(writing)
    return process, held, reading


def ended(process: int) -> int:
    """Wait for the end of a process and return its exit code."""
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return -1


@pytest.mark.parametrize("how", ["closed", "terminated"])
def test_the_lifeline_ends_with_ortrim(tmp_path: Path, how: str) -> None:
    """When the pipe ends, and when it is told to, at once, though its command would go on."""
    process, held, reading = lifeline(tmp_path, "/bin/sleep", "60")
    with os.fdopen(reading) as output:
        assert output.readline() == f"{STARTED}\n"
        if how == "closed":
            os.close(held)
        else:
            os.kill(process, signal.SIGTERM)
        assert ended(process) == (137 if how == "closed" else 143)
        run(("/bin/sh", "-c", f"kill -9 -{process}"))  # a container's end would end its other processes


def test_a_lifeline_whose_ortrim_is_dead_already_does_not_wait_for_it(tmp_path: Path) -> None:
    """Opening a pipe that nobody holds must not wait for somebody."""
    process, held, reading = lifeline(tmp_path, "/bin/sleep", "60")
    os.close(held)
    assert ended(process) == 137
    os.close(reading)
    run(("/bin/sh", "-c", f"kill -9 -{process}"))


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -9 $$", 137), ("exit 0", 0)])
def test_the_lifeline_ends_as_its_command(tmp_path: Path, script: str, code: int) -> None:
    """A signal is told as shells tell it."""
    process, held, reading = lifeline(tmp_path, "/bin/sh", "-c", script)
    assert ended(process) == code
    os.close(held)
    os.close(reading)
