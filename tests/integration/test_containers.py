"""The container executor with real engines, on an image made of Debian packages, and what kills do to it."""

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from container_storage import container_storage, containers
from native_builds import native_executor
from ortrim.base.cache import cache_folder
from ortrim.base.command import run
from ortrim.binaries.elf import read_library
from ortrim.compiling.container_engines import ContainerOptions, Mount, UsableEngine, engine_named, probe
from ortrim.compiling.containers import (
    ImageRecipe,
    build_image,
    container_environment,
    environments_in_containers,
    image_label,
    ready_image,
    remove_leftovers,
    run_in,
)
from ortrim.compiling.executor import Executor
from ortrim.compiling.plan import BuildJob
from ortrim.errors import Diagnostic, ExitCode, StorageError
from ortrim.pins.runtime import runtime_pins
from ortrim.planning.planner import with_arguments
from ortrim.platforms import LINUX
from ortrim.sources.sources import fetch_sources
from running import processes_that_say
from sample_plans import sample_plan
from unit_samples import without_shipped_indices

pytestmark = [
    pytest.mark.container,
    pytest.mark.network,
    pytest.mark.needs("apt-get"),
    pytest.mark.needs("root"),  # whose the stores of these tests are
]

TOY: Final = Path(__file__).with_name("data") / "toy"
PATIENCE: Final = 30.0
SETTLED: Final = 0.1
ZIG: Final = sample_plan().targets[0].job.toolchain
STRANGER: Final = 12345


ENGINES: Final = tuple(
    pytest.param(engine, marks=pytest.mark.needs(*programs))
    for engine, programs in {"buildah": ("buildah",), "podman": ("podman", "runc"), "docker": ("dockerd",)}.items()
)


@dataclass(frozen=True, kw_only=True)
class Ready:
    """An engine with an image in which Linux's jobs run."""

    folder: Path
    usable: UsableEngine
    image: str

    def run(self, *words: str, mounts: tuple[Mount, ...] = (), folder: str = "/") -> tuple[int, list[str]]:
        """Run a command in a container; return its exit code and its output."""
        lines: list[str] = []
        return self.run_with(lines.append, *words, mounts=mounts, folder=folder), lines

    def run_with(
        self, on_line: Callable[[str], None], *words: str, mounts: tuple[Mount, ...] = (), folder: str = "/"
    ) -> int:
        """Run a command in a container; return its exit code."""
        environment = {"PATH": "/usr/bin:/bin"}
        return run_in(
            self.usable, self.image, words, on_line, environment=environment, folder=Path(folder), mounts=mounts
        )

    def nothing_left(self) -> bool:
        """Whether neither a container is there nor the folder of one."""
        return containers(self.usable.name) == [] and list(cache_folder("containers").iterdir()) == []


@pytest.fixture(scope="module", params=ENGINES)
def ready(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Ready]:
    with container_storage(tmp_path_factory.mktemp("containers"), request.param) as folder:
        usable, recipe = probe(engine_named(request.param)), zig_image()
        ready_image(usable, recipe, lambda _: None)
        yield Ready(folder=folder, usable=usable, image=recipe.tag)


def zig_image(announce: Callable[[str], None] = lambda _: None) -> ImageRecipe:
    return LINUX.images().image_recipe(ZIG, announce)


def eventually(condition: Callable[[], object]) -> bool:
    """Whether something comes true while one waits for it."""
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        if condition():
            return True
        time.sleep(SETTLED)
    return False


def in_container(native: Executor, ready: Ready) -> Executor:
    options = ContainerOptions(engine=ready.usable.name)
    return replace(native, execution=environments_in_containers(options, LINUX.images()))


def test_the_runner_compiled_in_a_container_is_the_native_one(ready: Ready, tmp_path: Path) -> None:
    """The same job gives the same bytes in both places; nothing of the container is left."""
    job = sample_plan().targets[0].runner
    native = native_executor(fetch_sources(runtime_pins("1.21.0"), "auto").folder, tmp_path / "build.log")
    there = in_container(native, ready).run_runner(job)
    contained = there.read_bytes()
    there.unlink()
    there.parent.rmdir()
    assert native.run_runner(job).read_bytes() == contained
    assert ready.nothing_left()


@contextmanager
def cache_without(folder: Path, *shared: str) -> Iterator[None]:
    folder.mkdir()
    for kind in shared:
        (folder / kind).symlink_to(cache_folder(kind))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ORTRIM_CACHE", str(folder))
        patch.setenv("ORTRIM_PINS", str(folder / "pins"))
        without_shipped_indices(patch)
        yield


def toy_job() -> BuildJob:
    job = sample_plan().targets[0].job
    build_options = replace(job.build_options, libcxx_no_exceptions=False)
    return with_arguments(replace(job, exceptions=True, build_options=build_options))


def test_a_library_built_in_a_container_is_the_native_one(ready: Ready, tmp_path: Path) -> None:
    """CMake, ninja, zig and the compiler cache work there; the plan's job is the same, and so are the bytes."""
    native, job = native_executor(TOY, tmp_path / "build.log"), toy_job()
    with cache_without(tmp_path / "own cache", "packages", "roots", "zig", "apt"):
        inside = in_container(native, ready).run(job)
        library = inside.library.read_bytes()
        inside.folder.rename(tmp_path / "inside")
        outside = native.run(job)
        assert outside.library.read_bytes() == library
        assert len([path for path in cache_folder("trees").iterdir() if path.is_dir()]) == 2
        assert inside.compiler_cache is not None
        assert inside.compiler_cache.hits == 0
        assert outside.compiler_cache is not None
        assert outside.compiler_cache.hits == outside.compiler_cache.requests > 0
    assert read_library(outside.library).exported
    assert ready.nothing_left()


def test_a_container_has_no_network_and_nothing_of_this_machine_but_its_mounts(ready: Ready, tmp_path: Path) -> None:
    """Only the loopback device, which is down; other processes, environment and folders are not to be seen."""
    script = "cat /proc/net/dev; echo ==; ls / /root /home; echo ==; ls -d /proc/[0-9]* | wc -l"
    code, lines = ready.run("/bin/sh", "-c", script, mounts=(Mount(source=tmp_path, target="/opt/own"),))
    network, root, processes = "\n".join(lines).split("\n==\n")
    assert code == 0
    assert re.findall(r"^ *(\w+):", network, re.MULTILINE) == ["lo"]
    assert "opt" in root.split()
    assert "work" not in root.split()
    assert int(processes) < 15
    assert ready.run("/usr/bin/env") == (0, ["PATH=/usr/bin:/bin"])


def test_sources_cannot_be_written_and_results_are_the_users(ready: Ready, tmp_path: Path) -> None:
    """A read-only mount stays as it was even for root; what is written belongs to who runs ortrim, not to root."""
    sources, tree = tmp_path / "sources", tmp_path / "tree"
    sources.mkdir()
    tree.mkdir()
    os.chown(tree, STRANGER, STRANGER)
    mounts = (
        Mount(source=sources, target=str(sources)),
        Mount(source=tree, target=str(tree), writable=True),
    )
    script = f"touch {sources}/new; touch new; id -u"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: STRANGER)
        patch.setattr(os, "getegid", lambda: STRANGER)
        code, lines = ready.run("/bin/sh", "-c", script, mounts=mounts, folder=str(tree))
    assert code == 0
    assert lines[-1] == str(STRANGER)
    assert "Read-only file system" in lines[0]
    assert list(sources.iterdir()) == []
    assert (tree / "new").stat().st_uid == STRANGER


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("exit 0", 0), ("kill -9 $$", 137), ("exit 125", 125)])
def test_the_exit_code_is_the_commands(ready: Ready, script: str, code: int) -> None:
    """Whatever it is, it is not taken for the engine's own; what buildah adds to the output is left out."""
    assert ready.run("/bin/sh", "-c", f"echo said; {script}") == (code, ["said"])
    assert ready.nothing_left()


def test_an_interruption_ends_the_command_and_its_children(ready: Ready) -> None:
    """Ctrl-C in the middle: no process, no container and no folder is left."""
    mark = f"10{os.getpid()}.5"

    def interrupt(_: str) -> None:
        assert processes_that_say(mark)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ready.run_with(interrupt, "/bin/sh", "-c", f"sleep {mark} & setsid sleep {mark} & echo started; wait")
    assert processes_that_say(mark) == []
    assert ready.nothing_left()


KILLED_RUN: Final = """
import sys
from pathlib import Path
from ortrim.compiling.container_engines import engine_named, probe
from ortrim.compiling.containers import run_in
words = ("/bin/sh", "-c", "setsid sleep %s & sleep %s & echo started; wait")
seen = {"environment": {"PATH": "/usr/bin"}, "folder": Path("/"), "mounts": ()}
run_in(probe(engine_named(sys.argv[1])), sys.argv[2], words, lambda line: print(line, flush=True), **seen)
"""


@contextmanager
def another_ortrim(script: str, *arguments: str) -> Iterator[int]:
    """Start a program that uses ortrim; give its number."""
    process = os.posix_spawn(sys.executable, [sys.executable, "-c", script, *arguments], os.environ)
    try:
        yield process
    finally:
        with_child_gone(process)


def with_child_gone(process: int) -> None:
    """Kill a child, if it is there, and take note of its end."""
    try:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    except (ProcessLookupError, ChildProcessError):
        return


def test_a_killed_ortrim_leaves_nothing_running_and_the_next_one_cleans_up(ready: Ready) -> None:
    """Kill -9: the command ends by itself; its container is removed by the next start, a living one's is not."""
    dead, alive = f"20{os.getpid()}.5", f"30{os.getpid()}.5"
    with (
        another_ortrim(KILLED_RUN % (dead, dead), ready.usable.name, ready.image) as victim,
        another_ortrim(KILLED_RUN % (alive, alive), ready.usable.name, ready.image) as other,
    ):
        assert eventually(lambda: len(processes_that_say(f"sleep\0{dead}")) == 2)
        assert eventually(lambda: len(processes_that_say(f"sleep\0{alive}")) == 2)
        with_child_gone(victim)
        assert eventually(lambda: processes_that_say(f"sleep\0{dead}") == [])
        removed = remove_leftovers(ready.usable)
        assert eventually(lambda: len(containers(ready.usable.name)) == 1)
        assert not set(removed).intersection(containers(ready.usable.name))
        assert remove_leftovers(ready.usable) == ()
        assert len(processes_that_say(f"sleep\0{alive}")) == 2
        with_child_gone(other)
        assert eventually(lambda: processes_that_say(f"sleep\0{alive}") == [])
    remove_leftovers(ready.usable)
    assert eventually(ready.nothing_left)


def context(folder: Path, tag: str, *steps: str) -> tuple[Path, str]:
    folder.mkdir(exist_ok=True)
    image = tag if ":" in tag else f"{tag}:1"
    (folder / "Dockerfile").write_text("\n".join(steps))
    return (folder, image)


KILLED_BUILD: Final = """
import sys
from pathlib import Path
from ortrim.compiling.container_engines import engine_named, probe
from ortrim.compiling.containers import build_image, image_label
image = (Path(sys.argv[2]), sys.argv[3])
build_image(probe(engine_named(sys.argv[1])), *image, Path(sys.argv[4]), lambda line: print(line, flush=True))
"""


def test_a_killed_build_of_an_image_stops_and_is_built_the_next_time(ready: Ready, tmp_path: Path) -> None:
    if ready.usable.name != "buildah":
        pytest.skip("other engines clean up by themselves")
    mark = f"40{os.getpid()}.5"
    label = image_label("ortrim-slow:1")
    image = context(tmp_path / "slow", "ortrim-slow", f"FROM {ready.image}", label, f"RUN sleep {mark}")
    with another_ortrim(KILLED_BUILD, ready.usable.name, str(image[0]), image[1], str(tmp_path)) as victim:
        assert eventually(lambda: processes_that_say(f"sleep\0{mark}"))
        buildah = [pid for pid in processes_that_say(str(image[0])) if pid != victim]
        for process in buildah:
            os.kill(process, signal.SIGKILL)
        with_child_gone(victim)
    for process in processes_that_say(mark):
        os.kill(process, signal.SIGKILL)
    assert len(containers(ready.usable.name)) == 1
    context(tmp_path / "slow", "ortrim-slow", f"FROM {ready.image}", label, "RUN true")
    build_image(ready.usable, *image, tmp_path, lambda _: None)
    assert ready.nothing_left()


def test_a_build_of_an_image_ends_with_ortrim(ready: Ready, tmp_path: Path) -> None:
    """Kill -9 of ortrim alone: the engine is told to stop, and cleans up by itself."""
    mark = f"50{os.getpid()}.5"
    image = context(tmp_path / "slow", "ortrim-slow", f"FROM {ready.image}", f"RUN sleep {mark}")
    with another_ortrim(KILLED_BUILD, ready.usable.name, str(image[0]), image[1], str(tmp_path)) as victim:
        assert eventually(lambda: processes_that_say(f"sleep\0{mark}"))
        with_child_gone(victim)
        assert eventually(lambda: processes_that_say(mark) == [])
    assert eventually(ready.nothing_left)


def test_two_at_once_build_one_image_and_do_not_disturb_each_other(ready: Ready, tmp_path: Path) -> None:
    text = f'FROM {ready.image}\nLABEL ortrim.image="ortrim-both:1"\nRUN touch /made\n'
    recipe = ImageRecipe(tag="ortrim-both:1", dockerfile=text, files={})
    told: list[str] = []
    answers: list[tuple[int, list[str]]] = []

    def one(number: int) -> None:
        ready_image(ready.usable, recipe, told.append)
        own = replace(ready, image=recipe.tag)
        answers.append(own.run("/bin/sh", "-c", f"echo {number} > /tmp/own; sleep 0.3; cat /tmp/own; ls /made"))

    threads = [threading.Thread(target=one, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [(0, ["1", "/made"]), (0, ["2", "/made"])]
    assert len(told) == 1
    assert ready.nothing_left()


def test_steps_see_the_proxy_and_nobody_else_does(
    ready: Ready, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step of the build can use it; neither the image nor the log has its password, nor does a container get it."""
    monkeypatch.setenv("HTTPS_PROXY", "http://user:s3cret@proxy.example.com:8080")
    monkeypatch.setenv("no_proxy", "localhost")
    check = 'RUN test "$HTTPS_PROXY" = http://user:s3cret@proxy.example.com:8080 && test "$no_proxy" = localhost'
    seen = "RUN env | sort"
    image = context(tmp_path / "proxied", "ortrim-proxied", f"FROM {ready.image}", seen)
    lines: list[str] = []
    build_image(ready.usable, *image, tmp_path, lines.append)
    assert "HTTPS_PROXY=http://...@proxy.example.com:8080" in lines
    assert "s3cret" not in "\n".join(lines)
    inspect = ("inspect", "--type", "image", image[1])
    described = run((ready.usable.name, *inspect)).stdout
    assert image[1] in described
    assert "s3cret" not in described
    assert "proxy.example.com" not in described
    with pytest.raises(Diagnostic) as caught:
        build_image(
            ready.usable, *context(tmp_path / "bad", "bad", f"FROM {ready.image}", check + " && false"), tmp_path, print
        )
    assert "s3cret:" not in str(caught.value)
    assert replace(ready, image=image[1]).run("/usr/bin/env") == (0, ["PATH=/usr/bin:/bin"])


def test_a_base_that_cannot_be_fetched_is_reported_as_such(ready: Ready, tmp_path: Path) -> None:
    """No registry answers here; the digest is named, and nothing is left."""
    missing = f"127.0.0.1:9/nobody@sha256:{'0' * 64}"
    with pytest.raises(Diagnostic) as caught:
        build_image(ready.usable, *context(tmp_path / "missing", "missing", f"FROM {missing}"), tmp_path, print)
    assert (caught.value.code, caught.value.exit_code) == ("image-unreachable", ExitCode.NETWORK)
    assert ready.nothing_left()


@pytest.mark.needs("buildah")
def test_a_full_disk_is_reported_as_one(tmp_path: Path) -> None:
    """The store lies on a disk that is too small for the image; the record of the image is not kept."""
    small = tmp_path / "small"
    small.mkdir()
    assert run(("mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", small)).returncode == 0
    try:
        with container_storage(small), pytest.raises(StorageError) as caught:
            ready_image(probe(engine_named("buildah")), zig_image(), lambda _: None)
        assert (caught.value.code, caught.value.exit_code) == ("disk-full", ExitCode.STORAGE)
        assert not [path for path in (small / "cache" / "images").iterdir() if path.is_dir()]
    finally:
        run(("umount", "--recursive", "--lazy", small))


def test_a_place_needs_no_engine_named(ready: Ready) -> None:
    """Without `--engine` the first that works is taken; those that are there and do not work are told of."""
    notes: list[str] = []
    place = container_environment(zig_image(notes.append), ContainerOptions(), notes.append)
    assert place.usable.name in {"docker", "podman", "buildah"}
    assert notes[-1].startswith(f"in {place.image} with {place.usable.name} ")
