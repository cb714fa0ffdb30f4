"""An arm64 machine under qemu that adb reaches: Debian's adbd behind a port of this machine's loopback."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from adb_machine import until
from android_root import TOYBOX, android_root
from loopback_service import free_port
from network_kernel import MODULES, network_kernel
from ortrim.base.command import Completed
from ortrim.base.tools import EMULATIONS, Program
from ortrim.devices.adb import find_adb
from ortrim.devices.machine_files import Entry, compress, folder, link, regular, with_folders, write_archive
from ortrim.sources.root_file_systems import KERNEL_PACKAGE, machine_parts

DAEMON: Final = "usr/lib/android-sdk/platform-tools/adbd"
PROGRAMS: Final = (DAEMON, "usr/bin/mksh-static", "usr/bin/toybox")
LIBRARIES: Final = "usr/lib/aarch64-linux-gnu"
ROOMS: Final = ("data/local/tmp", "dev", "proc", "shims", "sys", "tmp")
START_SECONDS: Final = 120.0
INIT: Final = """\
#!/busybox sh
/busybox mount -t proc proc /proc
/busybox mount -t sysfs sys /sys
/busybox mount -t devtmpfs dev /dev
/busybox mkdir /dev/pts
/busybox mount -t devpts pts /dev/pts
/busybox mount -t tmpfs -o size={disk_mib}m,mode=777 disk /data/local/tmp
echo 1 >/proc/sys/vm/overcommit_memory
for module in {modules}; do /busybox insmod /$module; done
/busybox ifconfig lo 127.0.0.1 up
/busybox ifconfig eth0 10.0.2.15 netmask 255.255.255.0 up
ADBD_PORT=5555 PATH=/shims:/system/bin HOME=/ /{daemon} &
# As Android's init does; what adbd starts gets -950 from it.
echo -1000 >/proc/$!/oom_score_adj
# The first process reaps what others leave behind, as Android's init does.
while :; do wait; /busybox sleep 1; done
"""


@dataclass(frozen=True, kw_only=True)
class AdbVirtualMachine:
    """The running machine: its client with a server of its own, its serial number, and qemu."""

    client: Program
    serial: str
    folder: Path
    process: subprocess.Popen[bytes]

    def shell(self, script: str) -> Completed:
        return self.client.run("-s", self.serial, "shell", script, timeout_seconds=60)

    def processes(self, word: str) -> list[str]:
        """Return the command lines within that have `word` in them."""
        lines = self.shell("ps -A -o STAT=,ARGS=").stdout.splitlines()
        return [line for line in lines if word in line and not line.startswith("Z")]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def adb_virtual_machine(
    *,
    cpu: str = "cortex-a76",
    memory_mib: int = 384,
    disk_mib: int = 192,
    package: str = KERNEL_PACKAGE,
    more: Sequence[Entry] = (),
) -> Iterator[AdbVirtualMachine]:
    """Run the machine, with a package's kernel and with more files."""
    kernel = network_kernel(package)
    place = Path(tempfile.mkdtemp(prefix="ortrim-adb-", dir="/tmp"))
    try:
        (place / "initrd").write_bytes(compress(write_archive(_entries(disk_mib, kernel, more))))
        port = free_port()  # beyond 5585, the last at which adb looks by itself
        with _started(_words(cpu, memory_mib, port, kernel), place) as process, _client(place) as client:
            serial = f"127.0.0.1:{port}"
            machine = AdbVirtualMachine(client=client, serial=serial, folder=place, process=process)
            until(lambda: _answers(machine), f"the machine does not answer, see {place}/console", START_SECONDS)
            yield machine
    finally:
        shutil.rmtree(place)


def _entries(disk_mib: int, kernel: Path, more: Sequence[Entry]) -> tuple[Entry, ...]:
    root = android_root("aarch64")
    init = INIT.format(disk_mib=disk_mib, modules=" ".join(MODULES), daemon=DAEMON)
    libraries = [path for path in (root / LIBRARIES).rglob("*.so*") if "gconv" not in path.parts]
    shell = machine_parts(EMULATIONS["arm64"]).shell
    return with_folders([
        regular("init", init.encode(), executable=True),
        regular("busybox", shell.read_bytes(), executable=True),
        *(regular(name, (kernel / name).read_bytes()) for name in MODULES),
        *(regular(name, (root / name).read_bytes(), executable=True) for name in PROGRAMS),
        *(_library(path, path.relative_to(root).as_posix()) for path in libraries),
        link("lib", "usr/lib"),
        link("bin", "system/bin"),
        link("usr/lib/ld-linux-aarch64.so.1", "aarch64-linux-gnu/ld-linux-aarch64.so.1"),
        link("system/bin/sh", "/usr/bin/mksh-static"),
        *(link(f"system/bin/{name}", "/usr/bin/toybox") for name in TOYBOX),
        *more,
        *map(folder, ROOMS),
    ])  # fmt: skip


def _library(path: Path, name: str) -> Entry:
    return link(name, str(path.readlink())) if path.is_symlink() else regular(name, path.read_bytes(), executable=True)


def _words(cpu: str, memory_mib: int, port: int, kernel: Path) -> tuple[str, ...]:
    return (
        *("qemu-system-aarch64", "-M", "virt", "-cpu", cpu, "-smp", "1", "-m", str(memory_mib)),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-kernel", str(kernel / "kernel"), "-initrd", "initrd"),
        *("-append", "console=ttyAMA0 quiet panic=-1"),
        *("-chardev", "file,id=console,path=console", "-serial", "chardev:console"),
        *("-netdev", f"user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{port}-10.0.2.15:5555"),
        *("-device", "virtio-net-pci,netdev=net,romfile="),
    )


@contextmanager
def _started(words: tuple[str, ...], place: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(words, cwd=place, stdout=log, stderr=log, start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def _client(place: Path) -> Iterator[Program]:
    socket_file = f"localfilesystem:{place / 'socket'}"
    client = find_adb({"PATH": os.environ["PATH"], "HOME": str(place), "ADB_SERVER_SOCKET": socket_file})
    try:
        yield client
    finally:
        client.run("kill-server", timeout_seconds=20)


def _answers(machine: AdbVirtualMachine) -> bool:
    assert machine.process.poll() is None, (machine.folder / "log").read_text()
    machine.client.run("connect", machine.serial, timeout_seconds=60)
    return machine.shell("true").returncode == 0
