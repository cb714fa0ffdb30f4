"""A machine that adb reaches, with Android's own C library: bionic, as somebody took it out of a system image.

`ORTRIM_BIONIC` names the folder: the program `linker64` (or `linker`) and the libraries beside or below it, as on a
phone or an emulator in `/apex/com.android.runtime`, with `liblog.so` and `libc++.so` from `/system/lib64`. The shell
and all other programs are Debian's; those of another architecture run by qemu's user emulation (Linux 6.7 or newer).

    ORTRIM_BIONIC=FOLDER .venv/bin/python tests/support/bionic_machine.py \
        invoke build --target android-arm64-v8a --device adb

runs a command beside the machine. `ORTRIM_BIONIC_CPU` names a processor of qemu's, such as `cortex-a76`.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from adb_machine import AdbMachine, adb_machine
from adb_virtual_machine import AdbVirtualMachine, adb_virtual_machine
from android_root import android_root
from network_kernel import LARGE_PAGES
from ortrim.base.tools import EMULATIONS, require
from ortrim.binaries.elf import machine_of, with_elf
from ortrim.buildspec.targets import ABIS, Architecture
from ortrim.devices.machine_files import regular

VARIABLE: Final = "ORTRIM_BIONIC"
CPU_VARIABLE: Final = "ORTRIM_BIONIC_CPU"
LINKERS: Final = {"linker64": "lib64", "linker": "lib"}
"""Android's names of the program that starts others, and the folder of the libraries that it looks into."""
OTHER_ALLOCATORS: Final = frozenset({"asan", "bootstrap", "hwasan"})
"""Folders of a phone with the same libraries again, for programs that are checked or that mount the others."""
X64_MACHINE: Final = "x86_64"
"""Its kernels run programs of 32 bits, too."""
PROPERTIES: Final = "[ro.kernel.qemu]: [1]\n[ro.product.cpu.abilist]: [{abi}]\n[ro.product.model]: [bionic]\n"
"""Not a phone: what adb says of it must not look like one."""
HEADER_BYTES: Final = 20
"""Of an ELF file, up to and with its machine."""
MASK: Final = b"\xff" * 7 + b"\x00" + b"\xff" * 8 + b"\xfe\xff\xff\xff"
"""Of these bytes, those that tell one architecture's programs; the system's version is left out, and a program's type
is 2 or 3."""
MEGABYTES: Final = 512
VIRTUAL_MEMORY_MIB: Final = 768
VIRTUAL_DISK_MIB: Final = 256


@dataclass(frozen=True, kw_only=True)
class Bionic:
    """Android's C library as found: its program and its libraries."""

    linker: Path
    libraries: tuple[Path, ...]
    architecture: Architecture

    @property
    def abi(self) -> str:
        """Android's name of the architecture."""
        return ABIS[self.architecture]

    @property
    def machine(self) -> str:
        """The kernel's name of the machine that these programs are for."""
        emulation = EMULATIONS.get(self.architecture)
        return emulation.machine if emulation else X64_MACHINE

    @property
    def emulated(self) -> bool:
        """Whether these programs are for another machine than this one."""
        return self.machine != platform.machine()

    @property
    def cpus(self) -> tuple[str, ...]:
        """The processors that the machine can be, an empty name for this computer's."""
        return EMULATIONS[self.architecture].user_cpus if self.emulated else ("",)


def find_bionic() -> Bionic | None:
    """Return what lies in the folder that the environment names; None when it names none, or one without it."""
    folder = Path(os.environ.get(VARIABLE) or os.devnull)
    linker = next((path for name in LINKERS for path in sorted(folder.rglob(name)) if path.is_file()), None)
    if linker is None:
        return None
    architecture = with_elf(linker, machine_of)
    candidates = (path for path in sorted(folder.rglob("*.so")) if not OTHER_ALLOCATORS & set(path.parts))
    libraries = tuple(path for path in candidates if with_elf(path, machine_of) == architecture)
    return Bionic(linker=linker, libraries=libraries, architecture=Architecture(architecture))


@contextmanager
def bionic_machine(bionic: Bionic, cpu: str = "") -> Iterator[AdbMachine]:
    """Run the machine, as one of qemu's processors where it is emulated (by default qemu's own choice)."""
    emulator = require(EMULATIONS[bionic.architecture].user).path if bionic.emulated else None
    with tempfile.TemporaryDirectory(prefix="ortrim-bionic-", dir="/tmp") as temporary:
        root = Path(temporary) / "root"
        shutil.copytree(android_root(bionic.machine), root, symlinks=True)
        for name, source in _files(bionic).items():
            (root / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(source, root / name)
            (root / name).chmod(0o755)
        with adb_machine(
            {"getprop": _getprop(bionic)},
            megabytes=MEGABYTES,
            root=root,
            emulator=_registration(root, emulator) if emulator else "",
            variables=f"QEMU_CPU={cpu}" if cpu else "",
        ) as found:
            yield found


@contextmanager
def bionic_virtual_machine(bionic: Bionic) -> Iterator[AdbVirtualMachine]:
    """Run a whole arm64 machine, whose kernel has pages of 16 KB."""
    files = [regular(name, path.read_bytes(), executable=True) for name, path in _files(bionic).items()]
    files.append(regular("shims/getprop", _getprop(bionic).encode(), executable=True))
    with adb_virtual_machine(
        memory_mib=VIRTUAL_MEMORY_MIB, disk_mib=VIRTUAL_DISK_MIB, package=LARGE_PAGES, more=files
    ) as machine:
        yield machine


def _files(bionic: Bionic) -> dict[str, Path]:
    """Return what lies where on a phone."""
    folder = f"system/{LINKERS[bionic.linker.name]}"
    libraries = {f"{folder}/{path.name}": path for path in bionic.libraries}
    return {f"system/bin/{bionic.linker.name}": bionic.linker, **libraries}


def _getprop(bionic: Bionic) -> str:
    return f"#!/system/bin/sh\ncat <<'END'\n{PROPERTIES.format(abi=bionic.abi)}END\n"


def _registration(root: Path, emulator: Path) -> str:
    """Return the line by which a kernel runs programs like this root's shell by an emulator that lies outside of it."""
    with (root / "usr" / "bin" / "mksh-static").open("rb") as file:
        header = bytearray(file.read(HEADER_BYTES))
    header[7] = 0
    header[16] = 2
    magic, mask = ("".join(f"\\x{byte:02x}" for byte in part) for part in (header, MASK))
    return f":bionic:M::{magic}:{mask}:{emulator}:F"


def main(words: list[str]) -> int:
    bionic = find_bionic()
    if bionic is None or not words:
        sys.stderr.write(__doc__ or "")
        return 2
    with bionic_machine(bionic, os.environ.get(CPU_VARIABLE, "")) as machine:
        environment = {**os.environ, "ADB_SERVER_SOCKET": machine.client.environment["ADB_SERVER_SOCKET"]}
        return subprocess.run(words, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
