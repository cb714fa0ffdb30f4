"""Stand-ins for qemu: programs that leave what a machine would have left, whole, cut off or wrong."""

import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

from device_samples import REPORT
from ortrim.base.tools import EMULATIONS, InstalledTool
from ortrim.devices.qemu import Machine, QemuSystem
from ortrim.sources.debian import DebianPackage
from ortrim.sources.root_file_systems import MachineParts
from program_files import write_program

CPU_INFORMATION = b"Features\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd03\n"
FACTS = {"cpuinfo": CPU_INFORMATION, "meminfo": b"MemTotal:  226640 kB\n", "release": b"6.12.107-cloud\n"}
GOOD_FILES = {"0": REPORT.encode(), "saved/only/output_000.npy": b"the output", **FACTS}
OUT_OF_MEMORY = "[    4.1] Out of memory: Killed process 61 (runner) total-vm:9000kB"
DEADLOCK = "[    1.7] Kernel panic - not syncing: System is deadlocked on memory"
PANIC = "[    2.0] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)"


def answer_of(files: dict[str, bytes], codes: Sequence[int] = (0,)) -> bytes:
    """Return what a machine sends that ran commands with these exit codes and holds these files."""
    marks = "".join(f"@@BEGIN\n@@EXIT {code}\n" for code in codes)
    return marks.encode() + b"@@FILES\n" + sent_files(files)


def sent_files(files: dict[str, bytes], *, kind: bytes = tarfile.REGTYPE) -> bytes:
    """Return how a machine sends files, or what else has a name."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"./{name}")
            member.type, member.size = kind, len(content) if kind == tarfile.REGTYPE else 0
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue() + b"@@END\n"


def fake_tool(place: Path, script: str, name: str = "qemu-system-aarch64") -> InstalledTool:
    place.mkdir(parents=True, exist_ok=True)
    write_program(place / name, script)
    return InstalledTool(name=name, path=place / name, version="7.2.22")


def fake_qemu(place: Path, *, answer: bytes = b"", console: str = "", then: str = "exit 0") -> InstalledTool:
    place.mkdir(parents=True, exist_ok=True)
    (place / "prepared").write_bytes(answer)
    (place / "console").write_text(console)
    noted = f'printf "%s\\n" "$@" >{place}/words; pwd >{place}/folder; cp initrd {place}/initrd'
    return fake_tool(place, f"{noted}; cp {place}/prepared answer; cp {place}/console console; {then}")


def fake_parts(place: Path) -> MachineParts:
    (place / "root" / "usr" / "lib").mkdir(parents=True, exist_ok=True)
    for name in ("kernel", "shell"):
        (place / name).write_bytes(name.encode())
    package = DebianPackage(name="libc6", version="2.41-12", architecture="arm64", suite="trixie", sha256="a" * 64)
    return MachineParts(root=place / "root", kernel=place / "kernel", shell=place / "shell", packages=(package,))


def hungry_qemu(place: Path, enough_mib: int) -> InstalledTool:
    """Make a qemu whose machine is killed for want of memory below a ceiling, and runs well from there on."""
    place.mkdir()
    (place / "good").write_bytes(answer_of(GOOD_FILES))
    (place / "killed").write_bytes(answer_of({}, [137]))
    (place / "said").write_text(OUT_OF_MEMORY)
    script = f"""while [ "$1" != -m ]; do shift; done
if [ "$2" -ge {enough_mib} ]; then cp {place}/good answer; else cp {place}/killed answer; cp {place}/said console; fi"""
    return fake_tool(place, script)


def fake_machine(place: Path, tool: InstalledTool, memory_mib: int = 256) -> QemuSystem:
    parts = fake_parts(place / "parts")
    machine = Machine(program=tool.path, cpu="cortex-a53", memory_mib=memory_mib, kernel=parts.kernel)
    return QemuSystem(EMULATIONS["arm64"], parts, tool, machine, shell=parts.shell)
