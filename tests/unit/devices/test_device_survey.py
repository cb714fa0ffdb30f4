from pathlib import Path

import pytest

from ortrim.base.command import run
from ortrim.devices.facts import (
    LINUX,
    SECTION,
    adb_host,
    linux_host,
    maybe_emulated,
    read_sections,
    survey_script,
)

PHONE = "[ro.product.model]: [Phone]\n[ro.build.version.sdk]: [34]"


def test_this_machine_answers() -> None:
    """The survey is a script that a shell runs, and its answer describes this machine."""
    done = run(("sh", "-c", survey_script(LINUX)))
    host = linux_host(read_sections(done.stdout))
    assert done.stderr == ""
    assert host.system == "Linux"
    assert f"Linux {Path('/proc/sys/kernel/osrelease').read_text().strip()}" == host.os_version
    assert host.memory_bytes > 10**8
    assert host.page_bytes in {4096, 16384, 65536}
    assert host.cpu_features or host.machine not in {"x86_64", "aarch64"}


def test_sections_are_told_apart() -> None:
    """A section has what its command printed, NUL and line ends of a terminal apart."""
    script = survey_script({"a": "printf 'x\\000y\\n\\n'", "b": "false", "c": "echo 1; echo 2", "d": "nope"})
    done = run(("sh", "-c", script))
    assert read_sections(done.stdout) == {"a": "x\ny", "b": "", "c": "1\n2", "d": ""}
    assert read_sections(done.stdout.replace("\n", "\r\n"))["c"] == "1\n2"


@pytest.mark.parametrize(
    ("present", "cpu", "cores"),
    [
        ("0-7", "", 8),
        ("0", "", 1),
        ("0-3,6", "", 5),
        ("", "processor\t: 0\nprocessor\t: 1\n", 2),
        ("nonsense", "", 1),
        ("7-0", "", 1),
    ],
)
def test_cores(present: str, cpu: str, cores: int) -> None:
    """Cores that are switched off count; without the kernel's list, those of /proc/cpuinfo do."""
    assert linux_host({"present": present, "cpu": cpu}).cores == cores


@pytest.mark.parametrize(
    ("sections", "kind", "emulated"),
    [
        (
            {"board": "Raspberry Pi 5 Model B Rev 1.0", "compatible": "raspberrypi,5-model-b\nbrcm,bcm2712"},
            "physical",
            0,
        ),
        ({"compatible": "linux,dummy-virt"}, "vm", 1),
        ({"vendor": "QEMU", "cpu": "flags : sse hypervisor"}, "vm", 1),
        ({"vendor": "Amazon EC2", "cpu": "flags : sse hypervisor"}, "vm", 0),
        ({}, "physical", 0),
    ],
)
def test_virtual_machines(sections: dict[str, str], kind: str, emulated: int) -> None:
    """What may be an emulated processor is told from a virtual machine of another maker, and from a board."""
    assert linux_host(sections).kind == kind
    assert maybe_emulated(sections) == bool(emulated)


@pytest.mark.parametrize(
    ("shell", "kind"),
    [
        ("/usr/bin/qemu-aarch64-static", "user-emulation"),
        ("/usr/libexec/qemu-binfmt/qemu-arm (deleted)", "user-emulation"),
        ("qemu-aarch64", "user-emulation"),
        ("/usr/bin/dash", "physical"),
        ("/opt/qemu-tools/bin/sh", "physical"),
        ("/system/bin/sh", "physical"),
        ("", "physical"),
    ],
)
def test_user_emulation(shell: str, kind: str) -> None:
    """What runs the shell is known to the kernel, whatever qemu tells the shell itself; Android's properties aside."""
    assert linux_host({"shell": shell}).kind == kind
    android = "".join(f"\n{SECTION}{name}\n{text}\n" for name, text in {"shell": shell, "properties": PHONE}.items())
    assert adb_host(android).kind == kind


@pytest.mark.needs("qemu-x86_64-static")
def test_user_emulation_is_seen_for_real() -> None:
    """A shell under qemu says so, and the same shell without it does not."""

    def kind(*words: str) -> str | None:
        shell = str(Path("/bin/sh").resolve())
        return linux_host(read_sections(run((*words, shell, "-c", survey_script(LINUX))).stdout)).kind

    assert kind("qemu-x86_64-static") == "user-emulation" != kind()


def test_a_page_of_16_kilobytes() -> None:
    """The page size is the kernel's; nonsense is none."""
    assert linux_host({"page": "16384"}).page_bytes == 16384
    assert linux_host({"page": "getconf: not found"}).page_bytes is None
    assert linux_host({"page": "9" * 5000}).page_bytes is None


def test_the_line_between_sections() -> None:
    assert read_sections(f"{SECTION}a\n1\n{SECTION}b") == {"a": "1", "b": ""}
