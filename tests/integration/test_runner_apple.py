"""The runner for Apple's systems, as far as it can be tried without a Mac."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import lief
import onnxruntime
import pytest

from fake_runtime import HEADERS, fake_request, programs_below
from ortrim.base.command import Completed, run, started
from ortrim.base.files import shipped_folder
from ortrim.base.json import from_json
from ortrim.base.scripts import packages_folder
from ortrim.devices.harness_projects import RUNNER_FLAGS
from ortrim.parity.runner import RunnerOutput, runner_words
from ortrim.pins.runtime import runtime_pins
from ortrim.pins.shipped import tool_requirements
from ortrim.sources.sources import fetch_sources

pytestmark = pytest.mark.network

STRICT: Final = ("-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror")
APP: Final = Path(__file__).parent / "data" / "phone" / "app.c"
CARRIED: Final = shipped_folder("package") / "apple" / "harness" / "Harness" / "app"
MACS: Final = ("aarch64-macos.13.0", "x86_64-macos.13.0")
PHONES: Final = ("aarch64-ios.13.0", "aarch64-ios.13.0-simulator", "x86_64-ios.13.0-simulator")


def zig(*words: str | Path) -> Completed:
    tools = packages_folder("tools", tool_requirements()) / "ziglang"
    headers = fetch_sources(runtime_pins(onnxruntime.__version__), "auto").folder / HEADERS
    done = run((tools / "zig", "cc", "-std=c11", "-O1", *STRICT, f"-I{headers}", *words))
    assert done.returncode == 0, done.stderr
    return done


def runner_sources() -> tuple[Path, ...]:
    return tuple(sorted(shipped_folder("runner").glob("*.c")))


@dataclass(frozen=True, kw_only=True)
class Image:
    platform: lief.MachO.BuildVersion.PLATFORMS | None
    libraries: list[str]
    imported: set[str]
    starts: bool


def image(path: Path) -> Image:
    """Return what the only image of a file says; LIEF's own objects do not outlive the file's."""
    file = lief.MachO.parse(str(path))
    assert file is not None
    found = file.at(0)
    assert found is not None
    version = found.build_version
    return Image(
        platform=version.platform if version else None,
        libraries=[str(library.name) for library in found.libraries],
        imported={str(symbol.name) for symbol in found.imported_symbols},
        starts=found.has_entrypoint,
    )


@pytest.mark.parametrize("triple", MACS)
def test_a_runner_for_macs(tmp_path: Path, triple: str) -> None:
    """It needs nothing but the system's library, asks the kernel for the footprint, and can open a library."""
    zig("-target", triple, *runner_sources(), "-o", tmp_path / "runner")
    made = image(tmp_path / "runner")
    assert made.libraries == ["/usr/lib/libSystem.B.dylib"]
    assert made.platform == lief.MachO.BuildVersion.PLATFORMS.MACOS
    assert {"_task_info", "_dlopen", "_clock_gettime"} <= made.imported


@pytest.mark.parametrize("triple", PHONES)
def test_the_runner_compiles_for_phones_and_simulators(tmp_path: Path, triple: str) -> None:
    """Headers of iOS's are none of zig's; the kernel's and the C library's are those of Macs."""
    tools = packages_folder("tools", tool_requirements()) / "ziglang"
    headers = tools / "lib" / "libc" / "include" / "any-darwin-any"
    source = shipped_folder("runner") / "measure.c"
    zig("-target", triple, "-isystem", headers, "-c", source, "-o", tmp_path / "measure.o")
    expected = "IOS_SIMULATOR" if triple.endswith("simulator") else "IOS"
    made = image(tmp_path / "measure.o")
    assert made.platform == getattr(lief.MachO.BuildVersion.PLATFORMS, expected)


@pytest.fixture(name="app", scope="module")
def fixture_app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile a program that holds the runner as the app does, for this machine."""
    return embedded(tmp_path_factory.mktemp("app"), "x86_64-linux-gnu.2.28")


def embedded(folder: Path, triple: str) -> Path:
    """Compile the app's C for a machine: the runner with the project's flags, the rest without."""
    common = ("-target", triple, f"-I{CARRIED}")
    objects = []
    for source in runner_sources():
        objects.append(folder / f"{source.stem}.o")
        zig(*common, *RUNNER_FLAGS.split(), "-c", source, "-o", objects[-1])
    zig(*common, APP, CARRIED / "transfer.c", *objects, "-o", folder / "app", "-lpthread")
    return folder / "app"


def test_the_apps_c_compiles_for_macs(tmp_path: Path) -> None:
    """Whatever Apple's headers make of functions that carry other names."""
    assert image(embedded(tmp_path, MACS[0])).starts


def test_the_runner_runs_inside_an_app(app: Path, tmp_path: Path) -> None:
    """In a thread, with its report in a file; its end is the app's to act on, a good one like a bad one."""
    request = fake_request(tmp_path / "good", programs_below(tmp_path)("linux-x64"), "good")
    report = tmp_path / "report.json"
    _, *words = runner_words(request)
    done = run((app, *words, "--json", report))
    assert done.returncode == 40, done.stderr
    assert "app: the runner ended with 0" in done.stderr
    assert from_json(RunnerOutput, report.read_bytes()).cases[0].name == "only"
    done = run((app, *words, "--json", report, "--nonsense", "1"))
    assert (done.returncode, done.stdout) == (42, "")
    assert '"status":"error"' in report.read_text()


@contextmanager
def receiving(app: Path, folder: Path) -> Iterator[tuple[int, list[int]]]:
    """Have a process take files; yields its port, and a list that its exit code is put into."""
    folder.mkdir()
    ended: list[int] = []
    with started((str(app), "receive", "nonce", str(folder)), None, None) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline()), ended
        ended.append(process.wait(timeout=30))


def test_files_come_over(app: Path, tmp_path: Path) -> None:
    """With folders, whatever is in them, and of any length."""
    given = tmp_path / "given"
    (given / "outputs" / "only").mkdir(parents=True)
    files = {"end.json": b"{}\nend\n", "outputs/only/output_000.npy": bytes(range(256)) * 500, "empty": b""}
    for name, content in files.items():
        (given / name).write_bytes(content)
    with receiving(app, tmp_path / "taken") as (port, ended):
        assert run((app, "send", str(port), "nonce", given, *files)).returncode == 0
    assert ended == [0]
    taken = tmp_path / "taken"
    found = {path.relative_to(taken).as_posix(): path.read_bytes() for path in taken.rglob("*") if path.is_file()}
    assert found == files


@pytest.mark.parametrize(
    "sent",
    [
        b"", b"nonce\n", b"other\nend\n", b"noncense\nend\n", b"nonce\n3 5\nabcde", b"nonce\n999999 0\n",
        b"nonce\n9 1\n../escaped!", b"nonce\n8 1\n/escaped!", b"nonce\n10 1\na/../../bc!", b"nonce\n2 1\n..!",
        b"nonce\n-1 5\nabc", b"nonce\n3 -5\nabc", b"nonce\nx y\n",
    ],
)  # fmt: skip
def test_who_sends_nonsense_is_refused(app: Path, tmp_path: Path, sent: bytes) -> None:
    """Cut off, of somebody who does not know the nonce, or for a place outside the folder."""
    with (
        receiving(app, tmp_path / "taken") as (port, ended),
        socket.create_connection(("127.0.0.1", port)) as connection,
    ):
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
    assert ended == [4]
    assert {path.name for path in tmp_path.iterdir()} == {"taken"}


def test_a_sender_whose_files_are_gone_says_no_end(app: Path, tmp_path: Path) -> None:
    """And one that nobody listens to fails, too, without a signal."""
    with receiving(app, tmp_path / "taken") as (port, ended):
        assert run((app, "send", str(port), "nonce", tmp_path, "absent")).returncode == 5
    assert ended == [4]
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    assert run((app, "send", str(port), "nonce", tmp_path, "absent")).returncode == 5
