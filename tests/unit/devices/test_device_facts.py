from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.base.command import run
from ortrim.devices import facts

PHONE = "[ro.product.model]: [Phone]\n[ro.build.version.sdk]: [34]"


def test_this_machine_answers() -> None:
    done = run(("sh", "-c", facts.survey_script(facts.LINUX)))
    host = facts.linux_host(facts.read_sections(done.stdout))
    assert done.stderr == ""
    assert host.system == "Linux"
    assert f"Linux {Path('/proc/sys/kernel/osrelease').read_text().strip()}" == host.os_version
    assert host.memory_bytes > 10**8
    assert host.page_bytes in {4096, 16384, 65536}
    assert host.cpu_features or host.machine not in {"x86_64", "aarch64"}


def test_sections_are_told_apart() -> None:
    """A section has what its command printed, NUL and line ends of a terminal apart."""
    script = facts.survey_script({"a": "printf 'x\\000y\\n\\n'", "b": "false", "c": "echo 1; echo 2", "d": "nope"})
    done = run(("sh", "-c", script))
    assert facts.read_sections(done.stdout) == {"a": "x\ny", "b": "", "c": "1\n2", "d": ""}
    assert facts.read_sections(done.stdout.replace("\n", "\r\n"))["c"] == "1\n2"


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
    assert facts.linux_host({"present": present, "cpu": cpu}).cores == cores


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
    assert facts.linux_host(sections).kind == kind
    assert facts.maybe_emulated(sections) == bool(emulated)


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
    assert facts.linux_host({"shell": shell}).kind == kind
    android = "".join(
        f"\n{facts.SECTION}{name}\n{text}\n" for name, text in {"shell": shell, "properties": PHONE}.items()
    )
    assert facts.adb_host(android).kind == kind


@pytest.mark.needs("qemu-x86_64-static")
def test_user_emulation_is_seen_for_real() -> None:
    """A shell under qemu says so, and the same shell without it does not."""

    def kind(*words: str) -> str | None:
        shell = str(Path("/bin/sh").resolve())
        return facts.linux_host(
            facts.read_sections(run((*words, shell, "-c", facts.survey_script(facts.LINUX))).stdout)
        ).kind

    assert kind("qemu-x86_64-static") == "user-emulation" != kind()


def test_a_page_of_16_kilobytes() -> None:
    """The page size is the kernel's; nonsense is none."""
    assert facts.linux_host({"page": "16384"}).page_bytes == 16384
    assert facts.linux_host({"page": "getconf: not found"}).page_bytes is None
    assert facts.linux_host({"page": "9" * 5000}).page_bytes is None


def test_the_line_between_sections() -> None:
    assert facts.read_sections(f"{facts.SECTION}a\n1\n{facts.SECTION}b") == {"a": "1", "b": ""}


# As qemu-system-aarch64 7.2 with Linux 6.12 prints it, shortened.
CORTEX_A53 = """\
processor\t: 0
BogoMIPS\t: 125.00
Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x0
CPU part\t: 0xd03
CPU revision\t: 4
"""
X86 = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\nflags\t\t: fpu sse2 hypervisor avx2\n\n" * 2
BIG_LITTLE = "".join(
    f"processor\t: {number}\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: {part}\n\n"
    for number, part in enumerate(["0xd03", "0xd03", "0xd09"])
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            CORTEX_A53,
            ("Cortex-A53", ("aes", "asimd", "cpuid", "crc32", "evtstrm", "fp", "pmull", "sha1", "sha2")),
        ),
        (X86, ("AMD EPYC", ("avx2", "fpu", "hypervisor", "sse2"))),
        (BIG_LITTLE, ("Cortex-A53 + Cortex-A73", ("asimd", "fp"))),
        ("CPU implementer : 0x51\nCPU part : 0x001\n", ("implementer 0x51 part 0x001", ())),
        ("", ("", ())),
        ("model name\t:\nCPU part", ("", ())),
    ],
)
def test_processors_are_named(text: str, expected: tuple[str, tuple[str, ...]]) -> None:
    """x86-64 kernels give a name; on ARM it follows from two numbers, each kind of core once."""
    assert facts.read_cpu_information(text) == expected


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    assert len(facts.read_cpu_information(text)) == 2


ANY = st.builds(
    facts.Thermal,
    status=st.none() | st.integers(-1, 9),
    battery_celsius=st.none() | st.floats(-30, 80, allow_nan=False),
)


@pytest.mark.parametrize(
    ("status", "battery", "waited", "action"),
    [
        (0, 25.0, 0.0, "run"),
        (None, None, 0.0, "run"),
        (None, 35.0, 0.0, "run"),
        (0, 35.1, 0.0, "wait"),
        (1, 20.0, 0.0, "wait"),
        (6, None, 0.0, "wait"),
        (1, 20.0, 180.0, "mark"),
        (None, 40.0, 180.0, "mark"),
        (0, 40.0, 180.0, "run"),
    ],
)
def test_decisions(status: int | None, battery: float | None, waited: float, action: str) -> None:
    """A cool device runs, a hot one waits, and one that stays hot is marked unless it says that nothing throttles."""
    decision = facts.decide(facts.Thermal(status=status, battery_celsius=battery), waited)
    assert decision.action == action
    assert bool(decision.reason) == (action != "run" or battery == 40.0)


@given(ANY)
def test_waiting_ends(thermal: facts.Thermal) -> None:
    """A device that stays as it is is waited for as long as is allowed and not a second more."""
    waited, steps = 0.0, 0
    while (decision := facts.decide(thermal, waited)).action == "wait":
        assert 0 < decision.seconds <= facts.PAUSE_SECONDS
        waited += decision.seconds
        steps += 1
    assert waited in {0.0, facts.LONGEST_WAIT_SECONDS}
    assert steps in {0, 6}


@given(ANY)
def test_a_throttled_device_is_never_trusted(thermal: facts.Thermal) -> None:
    for waited in (0.0, 90.0, 180.0, 1e6):
        assert facts.decide(thermal, waited).action != "run" or not thermal.throttles


def test_the_reason_names_the_status() -> None:
    """A reader sees Android's word for it, and the number that was too high."""
    assert "status 3, severe" in facts.decide(facts.Thermal(status=3, battery_celsius=20), 0).reason
    assert "unknown" in facts.decide(facts.Thermal(status=9, battery_celsius=20), 0).reason
    assert "36.5 °C" in facts.decide(facts.Thermal(status=0, battery_celsius=36.5), 0).reason
