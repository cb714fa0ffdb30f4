"""A runtime that users have: what is compiled into it, as far as that decides which models it runs. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ortrim.core.operators import OperatorId, RequiredOperators

KernelVersions = Mapping[tuple[str, str], tuple[tuple[int, int], ...]]
"""First and last opset of each kernel, by domain and name of its operator; a last of `ANY_LATER` is open."""
ANY_LATER: Final = 2**31 - 1
FORMAT_VERSIONS: Final = ("5", "6")
"""Versions of ORT format that a minimal build reads: `IsOrtModelVersionSupported` of `ort_format_version.h`, the same
since 1.16."""

_ALWAYS: Final[Mapping[str, Mapping[str, tuple[int, ...]]]] = {
    "ai.onnx": {
        "DequantizeLinear": (10, 13, 19, 21), "Gather": (1, 11, 13), "Identity": (1, 13, 14, 16, 19, 21),
        "QuantizeLinear": (10, 13, 19, 21), "Squeeze": (1, 11, 13, 21), "Transpose": (1, 13, 21),
        "Unsqueeze": (1, 11, 13, 21),
    },
    "com.microsoft": {"DequantizeLinear": (1,), "NhwcMaxPool": (1,), "QLinearConv": (1,), "QuantizeLinear": (1,)},
}  # fmt: skip
LAYOUT_OPERATORS: Final = frozenset(
    OperatorId(domain=domain, opset=opset, name=name)
    for domain, names in _ALWAYS.items()
    for name, opsets in names.items()
    for opset in opsets
)
"""What every extended minimal build has: upstream's `layout_transformation_potentially_added_ops.h` of 1.21.0."""


@dataclass(frozen=True, kw_only=True)
class InstalledRuntime:
    """What is compiled into a runtime.

    `label` names it for the user, `targets` are its targets' identifiers. `operators` is its configuration.
    `extended` says whether it is an extended minimal build, None when that is not known. `without` are the kinds of
    types that are compiled out for every operator: `float8`, `sparsetensor`. `conversions` are style and level of the
    models that it was made for, the usual one first. `channel_block` is how many channels lie in a block of models that
    are laid out so, where that is known.
    """

    label: str
    ort_version: str
    operators: RequiredOperators
    targets: tuple[str, ...] = ()
    extended: bool | None = None
    without: tuple[str, ...] = ()
    conversions: tuple[tuple[str, str], ...] = ()
    channel_block: int | None = None

    @property
    def present(self) -> frozenset[OperatorId]:
        """The operators that are sure to be there, at the opsets of the configuration."""
        return frozenset(self.operators.operators) | (LAYOUT_OPERATORS if self.extended else frozenset())

    def opsets_of(self, operator: OperatorId) -> tuple[int, ...]:
        """Return the opsets at which an operator is there."""
        same = (each for each in self.present if (each.domain, each.name) == (operator.domain, operator.name))
        return tuple(sorted(each.opset for each in same))

    def has(self, operator: OperatorId, kernels: KernelVersions) -> bool:
        """Whether a kernel that serves an operator is there.

        A build keeps the kernels whose range holds an opset of its configuration. Such a kernel also serves other
        opsets in its range; of an open range, the first alone (`VerifyVersion` in upstream's `kernel_registry.cc`).
        """
        if self.operators.everything or operator in self.present:
            return True
        ranges = kernels.get((operator.domain, operator.name), ())
        return any(_serves(kernel, operator.opset) and self._keeps(kernel, operator) for kernel in ranges)

    def _keeps(self, kernel: tuple[int, int], operator: OperatorId) -> bool:
        first, last = kernel
        return any(first <= opset <= last for opset in self.opsets_of(operator))


def _serves(kernel: tuple[int, int], opset: int) -> bool:
    first, last = kernel
    return opset == first or (last != ANY_LATER and first <= opset <= last)
