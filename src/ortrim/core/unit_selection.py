"""Which units a library takes: those that its operators' kernels and its interface lead to. Pure."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ortrim.core.kernel_names import kernel_key
from ortrim.core.kernel_table import WIDE_BLOCKS, WIDE_VECTORS
from ortrim.core.operators import RequiredOperators
from ortrim.core.units import UnitIndex

WIDE_UNITS: Final = {
    WIDE_VECTORS: (
        "convsym.cpp", "qgemm_kernel_avx2.cpp", "intrinsics/avx512/quantize_avx512f.cpp",
        "x86_64/ConvSymKernelAvx512Core.S", "x86_64/QgemmU8X8KernelAvx2.S", "x86_64/QgemmU8X8KernelAvx512Core.S",
        "x86_64/QgemvU8S8KernelAvx512Core.S", "x86_64/QgemvU8S8KernelAvx512Vnni.S", "x86_64/SgemmKernelAvx512F.S",
        "x86_64/SoftmaxKernelAvx512F.S", "x86_64/TransKernelAvx512F.S",
    ),
    WIDE_BLOCKS: ("x86_64/SconvKernelAvx512F.S", "x86_64/SpoolKernelAvx512F.S"),
}  # fmt: skip
"""By the source of ours that puts kernels into MLAS's table: where MLAS has them, below its own folder."""


@dataclass(frozen=True, kw_only=True)
class Provided:
    """The units that provide symbols, with all that these need; and the symbols that no unit provides."""

    units: tuple[str, ...]
    unknown: tuple[str, ...]


def select_units(index: UnitIndex, operators: RequiredOperators) -> tuple[str, ...]:
    """Return the paths of the units that a library with these operators may take, sorted.

    They are all that the roots and the operators' kernels lead to, of whatever opset and type. An operator that the
    index does not know adds nothing: should there be a kernel of it, the link asks for it.
    """
    keys = {f"{operator.domain}:{operator.name}" for operator in operators.operators}
    chosen = [numbers for key, numbers in index.kernels if operators.everything or key in keys]
    return _closure(index, set(index.roots).union(*chosen))


def wide_units(index: UnitIndex, sources: Iterable[str]) -> tuple[str, ...]:
    """Return the paths of the units that these of `WIDE_UNITS`' sources name kernels of, with all that these need."""
    endings = tuple(f"/mlas/lib/{name}" for source in sources for name in WIDE_UNITS[source])
    named = {number for number, unit in enumerate(index.units) if unit.path.endswith(endings)}
    return _closure(index, named)


def providers(index: UnitIndex, symbols: Iterable[str]) -> Provided:
    """Return the units that provide symbols, mangled, which a link did not find.

    Kernels are found by their operator, whatever opset and type they are for. Unknown is also what some unit defines
    but none needed of another when the index was made.
    """
    known: defaultdict[str, set[int]] = defaultdict(set)
    for number, unit in enumerate(index.units):
        for symbol in unit.provides:
            known[symbol].add(number)
    kernels = dict(index.kernels)
    found = {symbol: known.get(symbol) or kernels.get(kernel_key(symbol) or "", ()) for symbol in symbols}
    return Provided(
        units=_closure(index, set[int]().union(*found.values())),
        unknown=tuple(sorted(symbol for symbol, numbers in found.items() if not numbers)),
    )


def _closure(index: UnitIndex, start: set[int]) -> tuple[str, ...]:
    seen, pending = set(start), list(start)
    while pending:
        fresh = set(index.units[pending.pop()].needs) - seen
        seen |= fresh
        pending.extend(fresh)
    return tuple(index.units[number].path for number in sorted(seen))
