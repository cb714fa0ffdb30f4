"""Apple libraries' code on Linux, as far as the device itself goes; integration tests have the real loader."""

import dataclasses
from pathlib import Path
from typing import Final

import pytest

from device_samples import GOOD, sample_request
from failing_runs import run_refused
from fake_machine import fake_parts, fake_tool
from ortrim.base.command import Completed
from ortrim.base.tools import Emulation
from ortrim.buildspec.targets import TARGETS
from ortrim.devices import macho
from ortrim.devices.macho import MachoDevice
from ortrim.errors import Diagnostic, SourcesError
from ortrim.parity.runner import OF_ONE_MODEL
from ortrim.sources.root_file_systems import MachineParts

EMULATE: Final = 'shift 2; exec "$@"'
INTEL: Final = TARGETS["macos-x86_64"]
ARM: Final = TARGETS["macos-arm64"]


def device_with(folder: Path, script: str = GOOD, *, qemu: str = "") -> MachoDevice:
    """Make a device whose runner is a shell script, and whose qemu is another one, if any."""
    runner = sample_request(folder / "own", script).runner
    tool = fake_tool(folder / "qemu", qemu, name="qemu-aarch64-static") if qemu else None
    return MachoDevice(ARM if qemu else INTEL, runner, tool)


def test_a_library_runs_with_the_devices_own_runner(tmp_path: Path) -> None:
    """What was compiled for a Mac runs on one alone."""
    request = dataclasses.replace(sample_request(tmp_path, "exit 9"), outputs=tmp_path / "outputs")
    (tmp_path / "outputs").mkdir()
    assert device_with(tmp_path).run(request).cases[0].name == "only"
    assert (tmp_path / "outputs" / "only" / "output_000.npy").read_bytes() == b"the input"


def test_another_processor_is_emulated_with_all_that_apples_have(tmp_path: Path) -> None:
    device = device_with(tmp_path, qemu=f'echo "$@" >{tmp_path}/words; {EMULATE}')
    assert device.run(sample_request(tmp_path)).status == "ok"
    assert (tmp_path / "words").read_text().startswith(f"-cpu max {tmp_path}/own/runner --library {tmp_path}/libonn")


def test_time_says_nothing_and_memory_only_where_nothing_is_emulated(tmp_path: Path) -> None:
    """A simulator's memory is a Mac's, and no phone's: it is not judged on a Mac either."""
    native, emulated = device_with(tmp_path), device_with(tmp_path, qemu=EMULATE)
    simulator = MachoDevice(TARGETS["ios-simulator-x86_64"], tmp_path / "runner", None)
    assert [each.memory_meaningful for each in (native, emulated, simulator)] == [True, False, False]
    assert not any(each.time_meaningful for each in (native, emulated, simulator))
    facts = emulated.facts()
    assert (facts.machine, facts.cpu) == ("aarch64", "max, emulated by qemu-aarch64-static 7.2.22")
    assert (facts.kind, facts.memory_meaningful, facts.time_meaningful) == ("user-emulation", False, False)
    assert facts.model.startswith("an Apple library's code on ")


@pytest.mark.parametrize(
    ("script", "reference"),
    [
        ("kill -SEGV $$", "runner-crashed"),
        (
            "echo 'qemu: uncaught target signal 4 (Illegal instruction) - core dumped' >&2; exit 1",
            "illegal-instruction",
        ),
        ("exit 3", "library-refused"),
        ("exit 97", "runner-failed"),
        ("sleep 600", "runner-timeout"),
    ],
)
def test_runners_that_end_badly(tmp_path: Path, script: str, reference: str) -> None:
    request = sample_request(tmp_path, seconds=0.5 if script.startswith("sleep") else 20.0)
    assert run_refused(device_with(tmp_path, script), request).code == reference


@pytest.mark.parametrize(
    ("symbol", "what", "hint"),
    [
        ("_fork", "the library uses fork, which macho does not have", "verify it on an Apple system"),
        (
            "_no_such",
            "the library uses no_such, which Apple's system library does not have",
            "no Apple system loads it",
        ),
    ],
)
def test_a_symbol_that_is_not_found_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, symbol: str, what: str, hint: str
) -> None:
    """And whose fault it is: the loader's, which has what runtimes need, or the library's."""
    stub = tmp_path / "ziglang" / "lib" / "libc" / "darwin" / "libSystem.tbd"
    stub.parent.mkdir(parents=True)
    stub.write_text("    symbols:         [ _creat, _fork, '_fork$x', _forkpty ]\n")
    monkeypatch.setattr(macho, "packages_folder", lambda *_: tmp_path)
    script = f"echo 'macho: not found: {symbol}' >&2; exit 97"
    error = run_refused(device_with(tmp_path, script), sample_request(tmp_path))
    assert (error.code, error.what, error.hint) == ("symbol-not-found", what, hint)
    assert error.code in OF_ONE_MODEL


def test_a_runner_is_compiled_once_for_each_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other headers, which are another version's, make another one."""
    calls: list[tuple[str, ...]] = []

    def compile_(words: tuple[str, ...], **_: object) -> Completed:
        calls.append(words)
        Path(words[-1]).write_text("a program")
        return Completed(argv=words, returncode=0, stdout="", stderr="")

    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(macho, "packages_folder", lambda *_: tmp_path)
    monkeypatch.setattr(macho, "run", compile_)
    (tmp_path / "headers").mkdir()
    header = tmp_path / "headers" / "onnxruntime_c_api.h"
    header.write_text("#define ORT_API_VERSION 21")
    first = macho.make_runner(INTEL, header.parent)
    assert first.read_text() == "a program"
    assert (macho.make_runner(INTEL, header.parent), len(calls)) == (first, 1)
    assert "x86_64-linux-gnu.2.28" in calls[0]
    header.write_text("#define ORT_API_VERSION 22")
    assert macho.make_runner(INTEL, header.parent) != first
    assert macho.make_runner(ARM, header.parent) != first
    assert len(calls) == 3


@pytest.mark.parametrize("delivered", [True, False])
def test_an_emulated_runner_takes_debians_c_library_or_has_musl_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, delivered: bool
) -> None:
    """Where apt delivers nothing, as on another distribution or without a network, zig compiles one."""
    calls: list[tuple[str, ...]] = []

    def parts(emulation: Emulation, *_: object) -> MachineParts:
        if delivered:
            return fake_parts(tmp_path / emulation.debian)
        raise SourcesError("apt-no-sources", "apt has no mirror of Debian here")

    def compile_(words: tuple[str, ...], **_: object) -> Completed:
        calls.append(words)
        Path(words[-1]).write_text("a program")
        return Completed(argv=words, returncode=0, stdout="", stderr="")

    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(macho, "packages_folder", lambda *_: tmp_path)
    monkeypatch.setattr(macho, "machine_parts", parts)
    monkeypatch.setattr(macho, "run", compile_)
    emulator = fake_tool(tmp_path / "qemu", f'echo "$@" >{tmp_path}/words', name="qemu-aarch64-static")
    device = macho.open_macho(ARM, tmp_path, emulator, lambda _: None)
    with pytest.raises(Diagnostic):
        device.run(sample_request(tmp_path))
    (words,), said = calls, (tmp_path / "words").read_text()
    triple = "aarch64-linux-gnu.2.28" if delivered else "aarch64-linux-musl"
    assert (triple in words, "-static" in words) == (True, not delivered)
    assert (f" -L {tmp_path}/arm64/root " in said) == delivered


def test_a_runner_that_does_not_compile_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = Completed(argv=(), returncode=1, stdout="", stderr="loader.c:1: error: no")
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(macho, "packages_folder", lambda *_: tmp_path)
    monkeypatch.setattr(macho, "run", lambda *_, **__: failed)
    with pytest.raises(Diagnostic) as caught:
        macho.make_runner(INTEL, tmp_path)
    assert (caught.value.code, caught.value.why) == ("build-failed", "loader.c:1: error: no")
