"""The code of Apple's libraries on Linux: on a processor of its own kind, or one that qemu emulates.

A program of ours does what Apple's dyld does, and has what of Apple's system library a runtime asks for. It shows what
the compiler and the linker have made: right results, and what the code takes of memory. It is neither an Apple
system nor an Apple processor, and what it takes of time says nothing of them.
"""

import contextlib
import dataclasses
import hashlib
import platform
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ortrim.base.cache import cache_folder, cached, kept_folder
from ortrim.base.command import Completed, last_lines, run
from ortrim.base.files import shipped_folder, storage_errors
from ortrim.base.scripts import environment_with, packages_folder
from ortrim.base.tools import EMULATIONS, InstalledTool
from ortrim.binaries.apple import slice_of
from ortrim.buildspec.targets import Target
from ortrim.compiling.toolchains import MACHINE
from ortrim.devices import kinds
from ortrim.devices.device import ProgramDevice
from ortrim.devices.host import Host, absolute, run_locally
from ortrim.devices.qemu import with_signal
from ortrim.errors import BuildError, SourcesError
from ortrim.parity.measurements import HostFacts
from ortrim.parity.runner import RunnerEnded, RunnerOutput, RunRequest, place_of, read_output, runner_words
from ortrim.pins.shipped import tool_requirements
from ortrim.sources.root_file_systems import machine_parts

PROCESSOR: Final = "max"
"""Of those that qemu has, the only one with all that Apple's least processors have."""
GLIBC: Final = "gnu.2.28"
"""Of the oldest systems that have a wheel of the full runtime: this machine's and Debian's load what asks for it."""
MUSL: Final = "musl"
"""Needs no library where it runs, but zig compiles a thousand files for it: 56 seconds of processor time, not 8."""
NOT_FOUND: Final = 97
"""The loader's exit code for a library that uses what is not found; `loader.h` has it too."""
SYMBOL: Final = re.compile(r"^macho: not found: _(\S+)$", re.MULTILINE)


class MachoDevice(ProgramDevice):
    """Runs a runner that loads Mach-O libraries as a child process, by `emulator` where the processor is another.

    `libraries` is where the emulator finds the runner's C library, None for a runner that has it inside.

    Memory means something where nothing is emulated, and of a Mac alone: it is not a phone's.
    """

    name = kinds.MACHO.name
    time_meaningful = kinds.MACHO.time
    caveat = "says nothing about an Apple system"

    def __init__(
        self, target: Target, runner: Path, emulator: InstalledTool | None, libraries: Path | None = None
    ) -> None:
        self.memory_meaningful = emulator is None and slice_of(target).on_mac
        self._target = target
        self._runner = runner
        self._emulator = emulator
        self._libraries = libraries

    def facts(self) -> HostFacts:
        """Describe what programs see: this machine, or the processor that is emulated on it."""
        here, emulator = Host().facts(), self._emulator
        emulated = f"{PROCESSOR}, emulated by {emulator.name} {emulator.version}" if emulator else ""
        return dataclasses.replace(
            here,
            machine=MACHINE[self._target.architecture],
            cpu=emulated or here.cpu,
            kind="user-emulation",
            model=f"an Apple library's code on {platform.system()}",
            memory_meaningful=self.memory_meaningful,
            time_meaningful=False,
        )

    def run(self, request: RunRequest) -> RunnerOutput:
        """Run the runner once."""
        words = runner_words(absolute(dataclasses.replace(request, runner=self._runner)))
        emulator = (str(self._emulator.path), "-cpu", PROCESSOR) if self._emulator else ()
        libraries = ("-L", str(self._libraries)) if self._libraries else ()
        # In a folder of its own, since qemu writes the memory of a program that crashes where it runs.
        with storage_errors(Path(tempfile.gettempdir())), tempfile.TemporaryDirectory(prefix="ortrim-macho-") as place:
            completed = run_locally((*emulator, *libraries, *words), request, cwd=Path(place))
        completed = with_signal(completed)
        if completed.returncode == NOT_FOUND and (found := SYMBOL.search(completed.stderr)):
            raise _not_found(found[1], completed, request)
        return read_output(completed, request)


def _not_found(symbol: str, completed: Completed, request: RunRequest) -> RunnerEnded:
    """Return the diagnostic of a library that calls or reads a symbol that nothing here has."""
    what, hint = f"the library uses {symbol}, which Apple's system library does not have", "no Apple system loads it"
    if is_apples(symbol):
        what, hint = f"the library uses {symbol}, which {kinds.MACHO} does not have", "verify it on an Apple system"
    return RunnerEnded(
        "symbol-not-found",
        what,
        returncode=completed.returncode,
        where=place_of(request),
        why=last_lines(completed.stderr),
        hint=hint,
    )


def is_apples(symbol: str) -> bool:
    """Whether Apple's system library exports a symbol, as far as the pinned zig knows."""
    library = packages_folder("tools", tool_requirements()) / "ziglang" / "lib" / "libc" / "darwin" / "libSystem.tbd"
    with storage_errors(library):
        text = library.read_text(encoding="utf-8")
    return re.search(rf"[\s\[',]_{re.escape(symbol)}[\s\],']", text) is not None


def open_macho(
    target: Target, headers: Path, emulator: InstalledTool | None, announce: Callable[[str], None]
) -> MachoDevice:
    """Return the device for a target's processor, which `emulator` emulates, None for this machine's own.

    Debian's C library is emulated, too, where apt delivers it. Raises as `make_runner` does.
    """
    if emulator is None:
        return MachoDevice(target, make_runner(target, headers, announce), None)
    libraries = None
    if emulation := EMULATIONS.get(target.architecture.value):
        with contextlib.suppress(SourcesError):
            libraries = machine_parts(emulation, announce).root
    runner = make_runner(target, headers, announce, c_library=GLIBC if libraries else MUSL)
    return MachoDevice(target, runner, emulator, libraries)


def make_runner(
    target: Target, headers: Path, announce: Callable[[str], None] = lambda _: None, *, c_library: str = GLIBC
) -> Path:
    """Return the runner that loads Mach-O libraries of a target's processor; it is compiled if the cache lacks it.

    `headers` is the folder of the runtime's headers. Raises `BuildError` `build-failed`.
    """
    ours = (*shipped_folder("runner").glob("*.[ch]"), *shipped_folder("macho").glob("*.[ch]"))
    # Of all headers, which are more in a build's folder than in the sources', those of which a runner is made.
    sources = sorted((*ours, *headers.glob("onnxruntime*c_api.h")), key=lambda path: (path.parent.name, path.name))
    triple, requirements = f"{MACHINE[target.architecture]}-linux-{c_library}", tool_requirements()
    content = hashlib.sha256(f"{triple}\n{requirements}".encode())
    for source in sources:
        with storage_errors(source):
            content.update(f"{source.name}\n".encode() + source.read_bytes())
    folder = cache_folder("runners") / f"macho-{content.hexdigest()[:20]}"
    with cached(folder) as destination:
        if destination:
            announce(f"compiling a runner that loads Mach-O libraries ({triple})")
            _compile(triple, headers, [path for path in sources if path.suffix == ".c"], destination / "runner")
    return folder / "runner"


def _compile(triple: str, headers: Path, sources: list[Path], runner: Path) -> None:
    tools = packages_folder("tools", tool_requirements())
    loader = shipped_folder("macho")
    words = (
        *(str(tools / "ziglang" / "zig"), "cc", "-target", triple, "-std=gnu11", "-O1", "-s"),
        *(("-static",) if triple.endswith(MUSL) else ()),
        *("-include", str(loader / "loader.h"), f"-I{headers}", *map(str, sources), "-lm", "-o", str(runner)),
    )
    with kept_folder(cache_folder("zig") / triple) as zig, tempfile.TemporaryDirectory(prefix="ortrim-") as scratch:
        caches = {"ZIG_GLOBAL_CACHE_DIR": str(zig.path), "ZIG_LOCAL_CACHE_DIR": scratch, "HOME": scratch}
        done = run(words, cwd=Path(scratch), environment={**environment_with(tools), **caches})
    if done.returncode != 0:
        what = "the runner that loads Mach-O libraries cannot be compiled"
        raise BuildError("build-failed", what, where=triple, why=last_lines(done.stderr))
