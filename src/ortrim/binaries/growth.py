"""What made one library larger or smaller than another, in the same terms in which the bytes are accounted for."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ortrim.binaries.leaves import Accounting, Leaf, shares
from ortrim.binaries.operators import registered_operators, with_operators
from ortrim.core.units import UnitIndex


@dataclass(frozen=True, kw_only=True)
class Change:
    """What has one name in both libraries, with its bytes in each; a change of nothing is none."""

    name: tuple[str, ...]
    before: int
    after: int

    @property
    def difference(self) -> int:
        """How many bytes it grew by."""
        return self.after - self.before

    @property
    def kind(self) -> str:
        """What became of it: `new`, `gone`, `grown` or `shrunk`."""
        if not self.before:
            return "new"
        if not self.after:
            return "gone"
        return "grown" if self.difference > 0 else "shrunk"


def comparable(before: Accounting, after: Accounting, index: UnitIndex | None = None) -> tuple[Accounting, Accounting]:
    """Return both with operators told by what either registers, so that the same code has the same operator in both."""
    one, other = (registered_operators(each.leaves) for each in (before, after))
    both = {file: one.get(file, frozenset()) | other.get(file, frozenset()) for file in (*one, *other)}
    first, second = (replace(each, leaves=with_operators(each.leaves, both, index)) for each in (before, after))
    return first, second


def changes(before: Accounting, after: Accounting, key: Callable[[Leaf], tuple[str, ...]]) -> tuple[Change, ...]:
    """Return what differs in size, grouped by `key`; the largest effect first, growth before shrinkage.

    The differences sum to that of the files.
    """
    old, new = ({share.name: share.size_bytes for share in shares(each.leaves, key)} for each in (before, after))
    found = (Change(name=name, before=old.get(name, 0), after=new.get(name, 0)) for name in dict.fromkeys((*old, *new)))
    differing = (change for change in found if change.difference)
    return tuple(sorted(differing, key=lambda each: (-abs(each.difference), -each.difference, each.name)))
