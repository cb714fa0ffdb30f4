import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.devices.facts import read_cpu_information

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
    assert read_cpu_information(text) == expected


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    """A kernel may print what it likes."""
    assert len(read_cpu_information(text)) == 2
