"""What all tests share: who runs what, loopback alone, and the marker `needs` for tools of the machine."""

import gc
import ipaddress
import os
import signal
import socket
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from availability import KNOWN_TOOLS, Availability, is_present, read_unavailable
from company import in_company
from fake_sources import private_cache

PROXIES: Final = tuple(name for word in ("HTTP", "HTTPS", "ALL") for name in (f"{word}_PROXY", f"{word}_proxy".lower()))
"""Variables by which pip, git, apt, npm, gcloud and Python's own clients find a proxy."""
DIRECT: Final = dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,::1")
ADDRESSED: Final = frozenset({"socket.connect", "socket.sendmsg", "socket.sendto"})
NAMED: Final = frozenset({"socket.getaddrinfo", "socket.gethostbyname"})
"""Python's audit events of the network: those with a socket and an address, and those that begin with a host."""


class LoopbackOnly:
    """Refuses addresses other than loopback's while a test is `guarded`."""

    def __init__(self) -> None:
        """Hear of the network for good: an audit hook cannot be removed, so that a process has one of these."""
        self.refused: list[str] = []
        self._guarded = False
        self._unserved = socket.socket()
        self._unserved.bind(("127.0.0.1", 0))  # and never listened to
        proxy = f"http://127.0.0.1:{self._unserved.getsockname()[1]}"
        self._environment = {**dict.fromkeys(PROXIES, proxy), **DIRECT}
        sys.addaudithook(self._hear)

    @contextmanager
    def guarded(self) -> Iterator[None]:
        before = {name: os.environ.get(name) for name in self._environment}
        os.environ.update(self._environment)
        self.refused.clear()
        self._guarded = True
        try:
            yield
        finally:
            self._guarded = False
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value

    def check(self) -> None:
        """Fail a test that was refused an address, also when its own code, or a thread, has hidden that."""
        if self.refused:
            asked = ", ".join(dict.fromkeys(self.refused))
            pytest.fail(f"tests talk to loopback alone, unless marked `network`; asked for: {asked}", pytrace=False)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self._guarded or event not in ADDRESSED | NAMED:
            return
        host = _host(arguments[1]) if event in ADDRESSED else arguments[0]
        name = host.decode(errors="replace") if isinstance(host, bytes) else host
        if not isinstance(name, str) or _is_here(name):
            return
        if name.endswith(".invalid"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        self.refused.append(name)
        self.check()


def _host(address: object) -> object:
    """Return the host of an IP address, which is a tuple; those of this machine's own sockets have none."""
    return address[0] if isinstance(address, tuple) and address else None


def _is_here(host: str) -> bool:
    if host in {"", "localhost"}:
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


AVAILABILITY: Final = pytest.StashKey[Availability]()
LOOPBACK: Final = LoopbackOnly()
TESTS: Final = Path(__file__).parent
UNAVAILABLE_FILE: Final = TESTS / "unavailable.toml"
BUILDS: Final = frozenset(
    {
        "integration/test_android_app.py",
        "integration/test_android_harness.py",
        "integration/test_android_kotlin.py",
        "integration/test_build_on_github.py",
        "integration/test_check_compat.py",
        "integration/test_emulated_build.py",
        "integration/test_emulated_build_adb.py",
        "integration/test_incremental.py",
        "integration/test_instructions_x64.py",
        "integration/test_java_api.py",
        "integration/test_unity_csharp.py",
        "integration/test_workflows_run.py",
    }
)
"""Files that build ONNX Runtime in CI, apart from those that run alone."""


def needed_tools(item: pytest.Item) -> tuple[str, ...]:
    names = tuple(str(name) for mark in item.iter_markers("needs") for name in mark.args)
    unknown = [name for name in names if name not in KNOWN_TOOLS]
    if unknown:
        raise pytest.UsageError(f"{item.nodeid} needs unknown tools: {', '.join(unknown)}; see tests/conftest.py")
    return names


@pytest.fixture(name="cache")
def fixture_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a cache of its own, in which nothing is found that another put there."""
    return private_cache(tmp_path, monkeypatch)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run be of all tests, and say for the sake of which tools it is."""
    everything = "run all tests where no file is named, and not the units and one build alone"
    parser.addoption("--all", action="store_true", help=everything)
    words = "a tool without which tests fail, whatever tests/unavailable.toml says; may be given several times"
    parser.addoption("--require", action="append", default=[], metavar="TOOL", choices=KNOWN_TOOLS, help=words)


def nothing_is_named(config: pytest.Config) -> bool:
    """Whether the command line has no file, folder or test; a worker is always given what to run."""
    return config.args_source is not pytest.Config.ArgsSource.ARGS


def _hear_interrupts() -> None:
    """Undo that signals are ignored, as in a script's background and under `nohup`: a test would wait for ever."""
    for number, heard in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, heard)


def pytest_configure(config: pytest.Config) -> None:
    """Read the list once, so that a wrong entry stops the run before any test, and hear signals."""
    os.environ.pop("PYTHONUNBUFFERED", None)
    gc.set_threshold(100_000, 20, 50)
    settings.register_profile("any load", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("any load")
    _hear_interrupts()
    if config.getoption("all") and nothing_is_named(config):
        config.args[:] = [str(TESTS)]
    strict = os.environ.get("CI", "").lower() in {"1", "true"}
    config.stash[AVAILABILITY] = Availability(
        read_unavailable(UNAVAILABLE_FILE),
        strict=strict,
        present=cache(is_present),
        required=frozenset(config.getoption("--require")),
    )


def turn(item: pytest.Item) -> int:
    """Return when it is a test's turn: units first, then what takes longest, and at last what runs alone."""
    if item.get_closest_marker("alone"):
        return 3
    path = item.path.as_posix().removeprefix(f"{TESTS.as_posix()}/")
    return 0 if path.startswith("unit/") else 1 if path in BUILDS else 2


def pytest_collection_finish() -> None:
    """Let the collector of garbage pass over all that stays: a sixth of the units' processor time."""
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests in order and refuse names of tools that nobody knows."""
    for item in items:
        needed_tools(item)
    items.sort(key=turn)


class FilesAndBuilds(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Shares the files among the workers; one worker has all that build ONNX Runtime."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "builds" if file.removeprefix("tests/") in BUILDS else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FilesAndBuilds:
    return FilesAndBuilds(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Start no worker for single files: that would take longer than most of them."""
    return None if any(Path(word).is_dir() for word in config.args) else 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Keep a test and what is made for it on loopback unless it is marked `network`, and alone if it is marked so."""
    alone = item.get_closest_marker("alone") is not None
    with in_company(TESTS, alone=alone), nullcontext() if item.get_closest_marker("network") else LOOPBACK.guarded():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Fail a test that was refused an address, whatever became of that."""
    yield
    LOOPBACK.check()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """Check the tools before any fixture works for the test."""
    item.config.stash[AVAILABILITY].check(needed_tools(item))
    return (yield)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand what a worker did not try to the process that starts workers and prints."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["not_tried"] = session.config.stash[AVAILABILITY].not_tried


def pytest_testnodedown(node: WorkerController) -> None:
    """Take what a worker did not try; one that crashed has left nothing."""
    output = getattr(node, "workeroutput", {})
    node.config.stash[AVAILABILITY].add(output.get("not_tried", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what was not tried, above pytest's own closing line."""
    lines = config.stash[AVAILABILITY].summary()
    if lines:
        terminalreporter.section("not tried")
        for line in lines:
            terminalreporter.line(line)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Say below pytest's own closing line what a contributor's run has left out."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or config.getoption("all") or config.getoption("collectonly") or not nothing_is_named(config):
        return
    files = len({*(TESTS / "integration").glob("test_*.py")} - {TESTS / "integration" / "test_small_build.py"})
    reporter.line(
        f"left out: {files} files in tests/integration, half an hour; to run them, too: ./bootstrap pytest --all"
    )
