"""The compiler caches with the real toolchain: what they serve, and what a build does when they fail."""

import hashlib
import json
import os
import random
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from loopback_service import Asked, LoopbackService, Reply, free_port
from ortrim.base.command import Completed, run
from ortrim.base.scripts import packages_folder
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.compiler_cache import CompilerCache, compiler_cache
from ortrim.compiling.plan import CompilerCacheUse
from ortrim.compiling.toolchains import zig_toolchain
from ortrim.compiling.workspace import BuildInputs, job_environment, prepare_workspace
from ortrim.pins.shipped import tool_requirements, tool_versions

PASSWORD: Final = "geheim-77"  # noqa: S105 - a secret to look for
PATIENCE_SECONDS: Final = 30.0


class RedisServer:
    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.pidfile = folder / "redis.pid"
        options = ("--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder))
        start = ("--requirepass", PASSWORD, "--daemonize", "yes", "--pidfile", str(self.pidfile))
        assert run(("redis-server", *options, *start), timeout_seconds=PATIENCE_SECONDS).returncode == 0
        wait_until(lambda: is_open(self.port))

    def kill(self) -> None:
        """End it at once, as a machine that loses its power does."""
        with suppress(FileNotFoundError, ProcessLookupError):
            self.send(signal.SIGKILL)
        self.pidfile.unlink(missing_ok=True)

    def send(self, number: signal.Signals) -> None:
        os.kill(int(self.pidfile.read_text()), number)


class ObjectServer(LoopbackService):
    """As much of S3, or of any store with GET and PUT, as is used."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        super().__init__()
        self.port = int(self.address.rpartition(":")[2])

    def name_of(self, asked: Asked) -> str:
        return asked.path

    def answer(self, asked: Asked) -> Reply:
        if asked.method == "PUT":
            self.objects[asked.path] = asked.body
        found = self.objects.get(asked.path)
        return Reply(status=404) if found is None else Reply(body=b"" if asked.method == "PUT" else found)

    kill = LoopbackService.close


@contextmanager
def killed_at_the_end(server: RedisServer | ObjectServer) -> Iterator[None]:
    try:
        yield
    finally:
        server.kill()


def is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until something has come about. Raises `TimeoutError` when it has not in time."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > give_up:
            raise TimeoutError
        time.sleep(0.05)


def servers_of(socket_path: str) -> tuple[int, ...]:
    """Return the processes that were given this socket in their environment: sccache's server, while it runs."""
    mark = f"SCCACHE_SERVER_UDS={socket_path}\0".encode()
    return tuple(int(path.parent.name) for path in Path("/proc").glob("[0-9]*/environ") if mark in _content(path))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


HEADER: Final = """#pragma once
inline const char* here() { return __FILE__; }
inline int twice(int x) { return 2 * x; }
"""
SOURCE: Final = """#include <cstddef>
#include "shape.h"
extern const unsigned char data{n}[] = {{{bytes}}};
const char* where{n}() {{ return here(); }}
const char* who{n}() {{ return __FILE__; }}
int value{n}() {{ return twice({n}) + OFFSET; }}
"""
GENERATED: Final = "#define OFFSET 7\n"
DATA_BYTES: Final = 3000


class CompiledFolders:
    """Sources, compiler and a build folder beside each other below `root`, as in ortrim's cache on some machine."""

    def __init__(self, root: Path, files: int = 2) -> None:
        self.installed = packages_folder("tools", tool_requirements())
        self.tools = root / "tools"
        shutil.copytree(self.installed / "ziglang", self.tools / "ziglang", copy_function=_linked)
        self.sources = root / "sources"
        self.toolchain = zig_toolchain(TARGETS["linux-x64"], "2.28", dict(tool_versions())["ziglang"])
        (self.sources / "include").mkdir(parents=True)
        (self.sources / "include" / "shape.h").write_text(HEADER)
        self.names = tuple(f"file{n}" for n in range(files))
        for n, name in enumerate(self.names):
            (self.sources / f"{name}.cc").write_text(SOURCE.format(n=n, bytes=_bytes_text(n)))
        (root / "hooks").mkdir()
        (root / "builds" / "one").mkdir(parents=True)
        inputs = BuildInputs(sources=self.sources, tools=self.tools, runner=root, hooks=root / "hooks")
        self.paths = prepare_workspace(root / "builds" / "one", inputs, self.toolchain)
        self.cwd = self.paths.build / "MinSizeRel"
        self.cwd.mkdir()
        (self.cwd / "generated.h").write_text(GENERATED)

    @property
    def programs(self) -> Path:
        return self.installed / "bin"

    @property
    def bases(self) -> tuple[Path, ...]:
        return (self.paths.build.parent, self.sources, self.tools)

    def compile(self, cache: CompilerCache | None, name: str) -> str:
        """Compile one file as ninja would, and return the SHA-256 of the object."""
        output = self.cwd / f"{name}.o"
        output.unlink(missing_ok=True)
        done = self.run(cache, name)
        assert done.returncode == 0, done.stderr
        return hashlib.sha256(output.read_bytes()).hexdigest()

    def compile_all(self, cache: CompilerCache | None) -> tuple[str, ...]:
        """Compile every file, and return the digests of the objects."""
        return tuple(self.compile(cache, name) for name in self.names)

    def run(self, cache: CompilerCache | None, name: str) -> Completed:
        includes = ("-I", str(self.sources / "include"), f"-I{self.cwd}", "-include", str(self.cwd / "generated.h"))
        outputs = ("-MD", "-MT", f"{name}.o", "-MF", f"{name}.o.d", "-o", f"{name}.o")
        compiler = (str(self.paths.wrappers / "c++"), "-Os", "-fPIC", *includes, *outputs)
        command = (*((cache.launcher,) if cache else ()), *compiler, "-c", str(self.sources / f"{name}.cc"))
        environment = job_environment(self.paths, self.toolchain) | dict(cache.environment if cache else {})
        return run(command, cwd=self.cwd, environment=environment)

    def dependencies(self, name: str) -> set[Path]:
        """Return the files that ninja would watch for an object."""
        words = (self.cwd / f"{name}.o.d").read_text().replace("\\\n", " ").partition(": ")[2].split()
        return {Path(os.path.normpath(self.cwd / word)) for word in words}


def _linked(source: str, destination: str) -> None:
    try:
        os.link(source, destination)
    except OSError:
        shutil.copyfile(source, destination)
        shutil.copymode(source, destination)


def _bytes_text(n: int) -> str:
    return ",".join(str(byte) for byte in random.Random(n).randbytes(DATA_BYTES))  # noqa: S311 - only incompressible


pytestmark = pytest.mark.network

Notes = list[str]
MANY: Final = 250
CONTENT_BYTES: Final = 20_000
LIMIT_BYTES: Final = 1_000_000
"""ccache divides its limit among 256 folders, so that it is kept roughly, and only by many objects."""
MOUNTED: Final = 'mount -t tmpfs -o size=64k none "$1" && { [ "$2" = full ] || mount -o remount,ro "$1"; } && shift 2'


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> Notes:
    """Give the list of notes, in an environment that asks for no shared store."""
    for name in [name for name in os.environ if name.startswith(("CCACHE_", "SCCACHE_"))]:
        monkeypatch.delenv(name)
    return []


def build(folders: CompiledFolders, cache: Path, notes: Notes) -> tuple[tuple[str, ...], CompilerCacheUse | None]:
    """Compile everything behind a cache of its own; return the objects and how far the cache helped."""
    with compiler_cache(folders.programs, cache, folders.bases, notes.append) as found:
        return folders.compile_all(found), found.use() if found else None


def hits(folders: CompiledFolders) -> CompilerCacheUse:
    return CompilerCacheUse(hits=len(folders.names), requests=len(folders.names))


def misses(folders: CompiledFolders) -> CompilerCacheUse:
    return CompilerCacheUse(hits=0, requests=len(folders.names))


def test_another_folder_is_served_by_the_first(tmp_path: Path, notes: Notes) -> None:
    first, second = CompiledFolders(tmp_path / "a"), CompiledFolders(tmp_path / "some" / "other place")
    truth = first.compile_all(None)
    assert second.compile_all(None) == truth
    assert build(first, tmp_path / "cache", notes) == (truth, misses(first))
    for _ in range(2):
        assert build(second, tmp_path / "cache", notes) == (truth, hits(second))
        for name in second.names:
            watched = {path for path in second.dependencies(name) if not path.is_relative_to(second.tools)}
            own = (second.sources / f"{name}.cc", second.sources / "include" / "shape.h", second.cwd / "generated.h")
            assert watched == set(own)
    assert notes == []


def test_a_changed_header_is_a_miss_in_whichever_folder(tmp_path: Path, notes: Notes) -> None:
    first, second = CompiledFolders(tmp_path / "a"), CompiledFolders(tmp_path / "b")
    build(first, tmp_path / "cache", notes)
    (second.cwd / "generated.h").write_text("#define OFFSET 8\n")
    truth = second.compile_all(None)
    assert build(second, tmp_path / "cache", notes) == (truth, misses(second))
    assert build(second, tmp_path / "cache", notes) == (truth, hits(second))
    assert build(first, tmp_path / "cache", notes) == (first.compile_all(None), hits(first))


def test_another_compiler_is_a_miss(tmp_path: Path, notes: Notes) -> None:
    """The text of the wrapper, which names toolchain and version, is part of what is looked up."""
    folders = CompiledFolders(tmp_path / "a")
    truth, _ = build(folders, tmp_path / "cache", notes)
    wrapper = folders.paths.wrappers / "c++"
    wrapper.write_text(wrapper.read_text() + "# another version\n")
    assert build(folders, tmp_path / "cache", notes) == (truth, misses(folders))


@pytest.mark.parametrize("name", ["CCACHE_REMOTE_STORAGE", "SCCACHE_REDIS_ENDPOINT"])
@pytest.mark.needs("redis-server")
def test_another_machine_takes_its_objects_from_redis(
    tmp_path: Path, notes: Notes, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """With another cache folder and other places of sources and build, nothing is compiled twice."""
    first, second = CompiledFolders(tmp_path / "a"), CompiledFolders(tmp_path / "b" / "c")
    redis = RedisServer(tmp_path)
    monkeypatch.setenv(name, f"redis://default:{PASSWORD}@127.0.0.1:{redis.port}")
    with killed_at_the_end(redis):
        truth, use = build(first, tmp_path / "first", notes)
        assert (truth, use) == (first.compile_all(None), misses(first))
        assert build(second, tmp_path / "second", notes) == (truth, hits(second))
    assert notes == []
    assert PASSWORD not in "".join(path.read_text(errors="replace") for path in second.cwd.iterdir())


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.needs("redis-server")
def test_a_redis_that_dies_or_hangs_half_way_stops_no_build(
    tmp_path: Path, notes: Notes, monkeypatch: pytest.MonkeyPatch, end: signal.Signals
) -> None:
    """What came before is served, what comes after is compiled; the next build is told that nobody answers."""
    first, second = CompiledFolders(tmp_path / "a"), CompiledFolders(tmp_path / "b")
    redis = RedisServer(tmp_path)
    monkeypatch.setenv("CCACHE_REMOTE_STORAGE", f"redis://{PASSWORD}@127.0.0.1:{redis.port}")
    with killed_at_the_end(redis):
        truth, _ = build(first, tmp_path / "first", notes)
        with compiler_cache(second.programs, tmp_path / "second", second.bases, notes.append) as cache:
            assert cache is not None
            before = tuple(second.compile(cache, name) for name in second.names[:1])
            redis.send(end)
            assert (*before, *(second.compile(cache, name) for name in second.names[1:])) == truth
            assert cache.use() == CompilerCacheUse(hits=1, requests=2)
    assert notes == []
    assert build(second, tmp_path / "second", notes) == (truth, hits(second))
    assert len(notes) == 1
    assert PASSWORD not in notes[0]


@pytest.mark.parametrize("kind", ["http", "folder"])
def test_another_machine_takes_its_objects_from_what_is_no_redis(
    tmp_path: Path, notes: Notes, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """An HTTP server that takes GET and PUT, or a folder that both see."""
    first, second = CompiledFolders(tmp_path / "a"), CompiledFolders(tmp_path / "b" / "c")
    server = ObjectServer()
    urls = {"http": f"http://ann:{PASSWORD}@127.0.0.1:{server.port}/objects", "folder": f"file:{tmp_path}/shared"}
    monkeypatch.setenv("CCACHE_REMOTE_STORAGE", urls[kind])
    with killed_at_the_end(server):
        truth, _ = build(first, tmp_path / "first", notes)
        assert build(second, tmp_path / "second", notes) == (truth, hits(second))
    assert notes == []


@pytest.mark.parametrize("url", ["redis://:{}@127.0.0.1:{}", "rediss://{}@127.0.0.1:{}", "{}:{}", "http://{}@[::1:{}"])
def test_a_wrong_store_is_reported_and_left_out(
    tmp_path: Path, notes: Notes, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """Nobody at home, a protocol that ccache does not speak, no address at all: objects stay on this machine."""
    folders = CompiledFolders(tmp_path / "a", files=1)
    monkeypatch.setenv("CCACHE_REMOTE_STORAGE", url.format(PASSWORD, free_port()))
    assert build(folders, tmp_path / "cache", notes) == (folders.compile_all(None), misses(folders))
    assert len(notes) == 1
    assert "CCACHE_REMOTE_STORAGE" in notes[0]
    assert PASSWORD not in notes[0]


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch, notes: Notes) -> ObjectServer:
    server = ObjectServer()
    settings = {"BUCKET": "objects", "REGION": "auto", "ENDPOINT": f"127.0.0.1:{server.port}", "S3_USE_SSL": "false"}
    for name, value in settings.items():
        monkeypatch.setenv(f"SCCACHE_{name}", value)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ann")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", PASSWORD)
    return server


def test_another_machine_takes_its_objects_from_s3(tmp_path: Path, notes: Notes, s3: ObjectServer) -> None:
    first, second = CompiledFolders(tmp_path / "a"), CompiledFolders(tmp_path / "b" / "c")
    with killed_at_the_end(s3):
        assert build(first, tmp_path / "first", notes) == (first.compile_all(None), misses(first))
        for _ in range(2):
            assert build(second, tmp_path / "second", notes) == (first.compile_all(None), hits(second))
            watched = {path for name in second.names for path in second.dependencies(name)}
            assert not [path for path in watched if path.is_relative_to(tmp_path / "a")]
    accounts = [asked.headers.get("authorization") for asked in s3.asked]
    assert all(account and "Credential=ann/" in account and PASSWORD not in account for account in accounts)
    assert notes == []


@pytest.mark.parametrize("dying", ["store", "server"])
def test_what_dies_half_way_stops_no_build(tmp_path: Path, notes: Notes, s3: ObjectServer, dying: str) -> None:
    """The store of the team, or sccache's own server on this machine: the rest is compiled."""
    folders = CompiledFolders(tmp_path / "a")
    with killed_at_the_end(s3):
        truth, _ = build(folders, tmp_path / "first", notes)
        with compiler_cache(folders.programs, tmp_path / "second", folders.bases, notes.append) as cache:
            assert cache is not None
            before = tuple(folders.compile(cache, name) for name in folders.names[:1])
            if dying == "store":
                s3.kill()
            for process in servers_of(cache.environment["SCCACHE_SERVER_UDS"]) if dying == "server" else ():
                os.kill(process, signal.SIGKILL)
            assert (*before, *(folders.compile(cache, name) for name in folders.names[1:])) == truth
            assert cache.use() is not None
    wait_until(lambda: not servers_of(cache.environment["SCCACHE_SERVER_UDS"]))


def test_a_secret_of_the_store_reaches_no_compilation(tmp_path: Path, notes: Notes, s3: ObjectServer) -> None:
    folders = CompiledFolders(tmp_path / "a", files=1)
    wrapper = folders.paths.wrappers / "c++"
    record = f'{{ echo "$*"; env; }} | tr "\\n" " " >>{tmp_path}/calls; echo >>{tmp_path}/calls'
    wrapper.write_text(wrapper.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\n{record}\n"))
    with killed_at_the_end(s3):
        build(folders, tmp_path / "cache", notes)
    detection, *compilations = (tmp_path / "calls").read_text().splitlines()
    assert "testfile.c" in detection
    assert len(compilations) == 2
    assert PASSWORD not in "".join(compilations)


def scrambled(content: bytes) -> bytes:
    return os.urandom(len(content))


@pytest.mark.parametrize("damage", [scrambled, lambda content: content[: len(content) // 2], lambda _: b""])
def test_a_damaged_cache_gives_right_objects(tmp_path: Path, notes: Notes, damage: Callable[[bytes], bytes]) -> None:
    """Random bytes, halves and empty files instead of all that the cache keeps: everything is compiled again."""
    folders = CompiledFolders(tmp_path / "a")
    truth, _ = build(folders, tmp_path / "cache", notes)
    for path in (tmp_path / "cache").rglob("*"):
        if path.is_file():
            path.write_bytes(damage(path.read_bytes()))
    assert build(folders, tmp_path / "cache", notes) == (truth, misses(folders))
    assert build(folders, tmp_path / "cache", notes) == (truth, hits(folders))
    assert notes == []


@pytest.mark.parametrize("way", ["file", "file below", "folders for files", "gone half way"])
def test_a_cache_folder_that_is_none(tmp_path: Path, notes: Notes, way: str) -> None:
    """Something else has the folder's name, or the folder goes while the build runs: objects are right."""
    folders = CompiledFolders(tmp_path / "a")
    truth, cache = folders.compile_all(None), tmp_path / "cache"
    if way.startswith("file"):
        (cache if way == "file" else cache / "ccache").parent.mkdir(exist_ok=True)
        (cache if way == "file" else cache / "ccache").write_text("in the way")
        assert build(folders, cache, notes) == (truth, None)
        assert len(notes) == 1
        return
    build(folders, cache, notes)
    if way == "folders for files":
        for path in [path for path in cache.rglob("*") if path.is_file()]:
            path.unlink()
            path.mkdir()
    with compiler_cache(folders.programs, cache, folders.bases, notes.append) as found:
        if way == "gone half way":
            shutil.rmtree(cache)
        assert folders.compile_all(found) == truth


@pytest.mark.parametrize("kind", ["full", "read-only"])
@pytest.mark.needs("unshare")
def test_a_cache_that_cannot_be_written(tmp_path: Path, notes: Notes, kind: str) -> None:
    """On a full disk nothing is kept; a folder that is read-only is reported, and the build goes without."""
    folders = CompiledFolders(tmp_path / "a")
    (tmp_path / "cache").mkdir()
    inner = (sys.executable, __file__, str(tmp_path / "b"), str(tmp_path / "cache"))
    shell = ("sh", "-c", f'{MOUNTED} && exec "$@"', "sh", str(tmp_path / "cache"), kind)
    path = os.pathsep.join(sys.path)
    words = ("unshare", "--user", "--map-root-user", "--mount", *shell, *inner)
    done = run(words, environment={**os.environ, "PYTHONPATH": path}, timeout_seconds=300)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["objects"] == [list(folders.compile_all(None))] * 2
    assert len(told["notes"]) == (0 if kind == "full" else 2)


def compile_and_tell(root: Path, cache: Path) -> None:
    """Build twice, where the caller has mounted what it wants to see tried, and print what came of it."""
    folders, notes = CompiledFolders(root), Notes()
    objects = [build(folders, cache, notes)[0] for _ in range(2)]
    sys.stdout.write(json.dumps({"objects": objects, "notes": notes}))


@pytest.mark.needs("gcc")
def test_builds_side_by_side_share_objects_and_respect_the_limit(
    tmp_path: Path, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two builds that write into one folder while it is being emptied for want of space are both right."""
    monkeypatch.setenv("CCACHE_MAXSIZE", f"{LIMIT_BYTES // 1000}k")
    content = tuple(random.Random(n).randbytes(CONTENT_BYTES).hex() for n in range(MANY))  # noqa: S311
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda folder: compile_texts(folder, tmp_path / "cache", content, notes), folders))
    for folder in folders:
        assert all(text.encode() in (folder / f"{n}.o").read_bytes() for n, text in enumerate(content))
    kept = sum(path.stat().st_size for path in (tmp_path / "cache").rglob("*") if path.is_file())
    assert kept < 0.8 * MANY * CONTENT_BYTES
    assert notes == []


def compile_texts(folder: Path, cache: Path, content: tuple[str, ...], notes: Notes) -> None:
    with compiler_cache(packages_folder("tools", tool_requirements()) / "bin", cache, (folder,), notes.append) as found:
        assert found is not None
        for n in random.sample(range(len(content)), len(content)):
            (folder / f"{n}.c").write_text(f'const char text{n}[] = "{content[n]}";\n')
            words = ("gcc", "-MD", "-MF", f"{n}.d", "-c", f"{n}.c", "-o", f"{n}.o")
            environment = {"PATH": os.environ["PATH"], **found.environment}
            assert run((found.launcher, *words), cwd=folder, environment=environment).returncode == 0


if __name__ == "__main__":
    compile_and_tell(Path(sys.argv[1]), Path(sys.argv[2]))
