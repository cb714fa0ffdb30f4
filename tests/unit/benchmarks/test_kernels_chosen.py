"""The table of kernels, from made-up executions."""

from executed_code import Executed
from kernels_chosen import CPUS, kernels, table

from ortrim.binaries.link_map import MapSymbol

SYMBOLS = (
    MapSymbol(name="MlasGemmU8X8KernelUdot", address=0x100, size_bytes=0),
    MapSymbol(name="void MlasGemmQuantKernel<MLAS_KERNEL>(unsigned char const*)", address=0x200, size_bytes=16),
    MapSymbol(name="MlasGemmQuantCopyPackA(int)", address=0x300, size_bytes=16),
    MapSymbol(name="MlasConvSymGetKernelOutputCount(bool)", address=0x380, size_bytes=16),
    MapSymbol(name="onnxruntime::OpKernel::Compute()", address=0x400, size_bytes=16),
)
UDOT = 0x6E829420
OLD = Executed(instructions={0x200: 1, 0x204: 1, 0x300: 1, 0x380: 1, 0x400: 1})
NEW = Executed(instructions={0x100: UDOT, 0x104: UDOT, 0x108: 1, 0x300: 1})


def test_kernels_are_those_of_mlas() -> None:
    """What packs, describes a kernel or computes a node is none; arguments and result types are no part of a name."""
    assert kernels(OLD, SYMBOLS) == {"MlasGemmQuantKernel<MLAS_KERNEL>": 2}
    assert kernels(NEW, SYMBOLS) == {"MlasGemmU8X8KernelUdot": 3}


def test_the_table_has_a_column_for_each_processor() -> None:
    """A kernel that one processor does not run is there all the same."""
    lines = table({"m": {CPUS[0]: OLD, CPUS[1]: NEW}}, SYMBOLS).splitlines()
    assert lines == [
        "| model | kernel | cortex-a53 | cortex-a76 |",
        "|---|---|---|---|",
        "| m | `MlasGemmQuantKernel<MLAS_KERNEL>` | 2 | not run |",
        "| m | `MlasGemmU8X8KernelUdot` | not run | 3 |",
        "| m | dot-product instructions | not run | 2 |",
    ]
