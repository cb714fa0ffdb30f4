"""Which bytes of what is shipped are there for the sake of one model."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ortrim.binaries.leaves import Leaf, by_operator, shares
from ortrim.core.operators import OperatorId, RequiredOperators

OWN: Final = "kernels for this model alone"
COMMON: Final = "kernels that other models need, too"
OTHERS: Final = "kernels for other models"
RUNTIME: Final = "the runtime itself"
MODEL: Final = "this model's file"
MODELS: Final = "other models' files"


@dataclass(frozen=True, kw_only=True)
class SharePart:
    """A part of what is shipped."""

    name: str
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class KernelShare:
    """One operator of the model: the bytes of its kernels, and which other models need them."""

    operator: str
    size_bytes: int
    others: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SizeShare:
    """All bytes that are shipped, in parts, and the kernels of one model, largest first."""

    parts: tuple[SharePart, ...]
    kernels: tuple[KernelShare, ...]


@dataclass(frozen=True, kw_only=True)
class ShippedModel:
    """A model that is shipped with the library: its name, the size of its file, and what it requires."""

    name: str
    size_bytes: int
    operators: RequiredOperators


def size_share(leaves: Iterable[Leaf], model: ShippedModel, others: tuple[ShippedModel, ...]) -> SizeShare:
    """Part a library's bytes and the models' files by what needs them.

    Code that serves several operators counts as the runtime's, as does what no operator's kernel is.
    """
    own = _names(model)
    needed = {other.name: _names(other) for other in others}
    foreign = frozenset().union(*needed.values())
    sums = dict.fromkeys((OWN, COMMON, OTHERS, RUNTIME), 0)
    kernels = []
    for share in shares(leaves, by_operator):
        name = share.name[0]
        sums[_part(name, own, foreign)] += share.size_bytes
        if name in own:
            users = tuple(other for other, names in needed.items() if name in names)
            kernels.append(KernelShare(operator=name, size_bytes=share.size_bytes, others=users))
    sums[MODEL] = model.size_bytes
    sums[MODELS] = sum(other.size_bytes for other in others)
    parts = tuple(SharePart(name=name, size_bytes=size) for name, size in sums.items() if size)
    return SizeShare(parts=parts, kernels=tuple(kernels))


def _part(name: str, own: frozenset[str], foreign: frozenset[str]) -> str:
    if name in own:
        return COMMON if name in foreign else OWN
    return OTHERS if name in foreign else RUNTIME


def _names(model: ShippedModel) -> frozenset[str]:
    return frozenset(map(_shown, model.operators.operators))


def _shown(operator: OperatorId) -> str:
    """Write an operator as the library's accounting does."""
    return operator.name if operator.domain == "ai.onnx" else f"{operator.domain}:{operator.name}"
