"""qemu's log, as 7.2 writes it, and a library whose bytes lie elsewhere in the file than in memory."""

from pathlib import Path

import pytest
from executed_code import code_symbols, is_dot_product, read_executed, read_executed_bytes, traced

from ortrim.binaries.link_map import MapSymbol

DATA = Path(__file__).parents[1] / "binaries" / "data"
LIBRARY = DATA / "tiny.so"
"""Its code lies 0x1000 further in memory than in the file."""
START = 0x5500B00000


def log(*blocks: str, library: Path = LIBRARY) -> list[str]:
    """Return the lines that tell where a library was opened and mapped, then blocks of code."""
    return [
        "IN: ",
        "0x0000005500000570:  d503245f  hint     #0x22",
        f'5313 openat(AT_FDCWD,"{library}",O_RDONLY|O_CLOEXEC) = 5',
        "5313 mmap(NULL,17534216,PROT_NONE,MAP_PRIVATE|MAP_ANONYMOUS|MAP_DENYWRITE,-1,0) = 0x0000005500a53000",
        "5313 mmap(0x5500a60000,4096,PROT_READ,MAP_PRIVATE|MAP_DENYWRITE|MAP_FIXED,5,0) = 0x0000005500a60000",
        f"5313 mmap(0x5500b00000,4096,PROT_EXEC|PROT_READ,MAP_PRIVATE|MAP_DENYWRITE|MAP_FIXED,5,0) = {START:#018x}",
        "5313 close(5) = 0",
        "5313 mmap(0x5500c00000,4096,PROT_EXEC|PROT_READ,MAP_PRIVATE|MAP_DENYWRITE|MAP_FIXED,5,0) = 0x5500c00000",
        *blocks,
    ]


def block(offset: int, *words: int) -> str:
    """Return what qemu writes of instructions of the library, each four bytes further."""
    lines = [f"0x{START + offset + 4 * at:010x}:  {word:08x}  any      thing" for at, word in enumerate(words)]
    return "\n".join(["IN: ", *lines, "", "----------------"])


def test_code_is_found_at_the_linkers_addresses() -> None:
    """Only the library's own code counts, each instruction once, however often it was translated."""
    lines = "\n".join(log(block(0x570, 1, 2), block(0x5B3, 3), block(0x570, 1), "0x5500c00570:  00000004  other"))
    executed = read_executed(lines.splitlines(), LIBRARY)
    assert dict(executed.instructions) == {0x1570: 1, 0x1574: 2, 0x15B3: 3}


def test_functions_are_found_by_the_link_map() -> None:
    """Each instruction counts for the function in which it lies."""
    lines = "\n".join(log(block(0x570, 1, 2), block(0x5B3, 3), block(0x65C, 4, 5))).splitlines()
    functions = read_executed(lines, LIBRARY).functions(code_symbols(DATA / "tiny.map"))
    assert functions == {"OrtGetApiBase": 2, "kernel": 2}


def test_functions_without_a_size_go_on_to_the_next() -> None:
    """Functions in assembly often have none."""
    symbols = [
        MapSymbol(name="assembled", address=0x1570, size_bytes=0),
        MapSymbol(name="next", address=0x1578, size_bytes=4),
    ]
    lines = "\n".join(log(block(0x570, 1, 2, 3, 4))).splitlines()
    assert read_executed(lines, LIBRARY).functions(symbols) == {"assembled": 2, "next": 1}


def test_labels_of_assembly_are_no_functions(tmp_path: Path) -> None:
    """Of symbols without a size, MLAS's functions count, each with its labels (ONNX Runtime 1.21.0)."""
    rows = [
        "             VMA              LMA     Size Align Out     In      Symbol",
        "           fb894            fb894      c08     4 .text",
        "           fb894            fb894      788     4         mlas.a(ConvSymU8KernelDot.S.o):(.text)",
        "           fb894            fb894        0     1                 $x",
        "           fb894            fb894        0     1                 MlasConvSymU8KernelDot",
        "           fb8e8            fb8e8        0     1                 OutputChannelLoop",
        "           fc01c            fc01c      480     4         mlas.a(ConvSymS8KernelNeon.S.o):(.text)",
        "           fc01c            fc01c        0     1                 MlasConvSymS8KernelNeon",
    ]
    (tmp_path / "link.map").write_text("\n".join(rows))
    symbols = code_symbols(tmp_path / "link.map")
    assert [symbol.name for symbol in symbols] == ["MlasConvSymU8KernelDot", "MlasConvSymS8KernelNeon"]


@pytest.mark.parametrize("lines", [[], ["garbage"], log(), log(block(0x570, 1), library=Path("/other.so"))])
def test_a_log_without_the_library(lines: list[str]) -> None:
    """When nothing was executed it is said, and not taken for a library without kernels."""
    with pytest.raises(ValueError, match=r"tiny\.so"):
        read_executed("\n".join(lines).splitlines(), LIBRARY)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (0x4E829420, True),  # sdot v0.4s, v1.16b, v2.16b
        (0x6E829420, True),  # udot v0.4s, v1.16b, v2.16b
        (0x2E829420, True),  # udot v0.2s, v1.8b, v2.8b
        (0x4F82E020, True),  # sdot v0.4s, v1.16b, v2.4b[0]
        (0x6FA2E820, True),  # udot v0.4s, v1.16b, v2.4b[3]
        (0x4E829400, True),
        (0x4EA29420, False),  # mla v0.4s, v1.4s, v2.4s
        (0x4E80A420, False),  # smmla v0.4s, v1.16b, v0.16b
        (0x0E22C020, False),  # smull v0.8h, v1.8b, v2.8b
        (0xD503245F, False),
        (0, False),
    ],
)
def test_dot_products_are_told_from_others(word: int, *, expected: bool) -> None:
    """Signed and unsigned, of vectors and of elements, of both widths, and nothing that looks like them."""
    assert is_dot_product(word) == expected


def test_a_program_that_fails_is_not_read(tmp_path: Path) -> None:
    """What a failed run executed says nothing."""
    with pytest.raises(RuntimeError, match="ended with 3"):
        traced(("/bin/sh", "-c", "exit 3", "sh"), (), tmp_path / "log")


def test_bytes_of_instructions_for_x64_are_found() -> None:
    """The folder that a path starts at is a number there."""
    opened = f'5313 openat(-100,"{LIBRARY}",O_RDONLY|O_CLOEXEC) = 5'
    blocks = f"0x{START + 0x570:010x}:  48 89 e7                 movq     %rsp, %rdi\n0x0000000001:  c3   retq"
    lines = "\n".join(opened if "openat" in line else line for line in log(blocks)).splitlines()
    assert read_executed_bytes(lines, LIBRARY) == {0x1570, 0x1571, 0x1572}
