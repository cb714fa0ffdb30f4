"""A library's bytes as leaves: the smallest parts that have a name, each byte in exactly one of them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ortrim.binaries.map_inputs import member_name

REST: Final = "(rest)"
"""The symbol of bytes of an input section that no symbol of it covers."""
NO_OPERATOR: Final = "no operator's kernel"


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """Some bytes of a library file.

    `file` is the object file, empty for what the linker makes; `section` is the library's; `symbol` is demangled, or
    says what else the bytes are. `operator` is that of the kernel, such as `Conv`, empty for all other code. `folded`
    are further names of the same bytes, as identical code folding leaves them.
    """

    component: str
    section: str
    size_bytes: int
    file: str = ""
    symbol: str = ""
    operator: str = ""
    folded: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Accounting:
    """All bytes of a library file: the leaves' sizes sum to `file_bytes`.

    `zeroed_bytes` come on top in memory. `mapped` says whether a link map told the object files; `notes` say what
    could not be told, and why.
    """

    file_bytes: int
    zeroed_bytes: int
    leaves: tuple[Leaf, ...]
    mapped: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Share:
    """The leaves of one name together; `name` has the fields by which they were grouped."""

    name: tuple[str, ...]
    size_bytes: int
    leaves: tuple[Leaf, ...]


def shares(leaves: Iterable[Leaf], key: Callable[[Leaf], tuple[str, ...]]) -> tuple[Share, ...]:
    """Group leaves by `key`; largest first, and by name among equals."""
    groups: dict[tuple[str, ...], list[Leaf]] = {}
    for leaf in leaves:
        groups.setdefault(key(leaf), []).append(leaf)
    found = (
        Share(name=name, size_bytes=sum(leaf.size_bytes for leaf in each), leaves=tuple(each))
        for name, each in groups.items()
    )
    return tuple(sorted(found, key=lambda share: (-share.size_bytes, share.name)))


def by_component(leaf: Leaf) -> tuple[str, ...]:
    """Group by component."""
    return (leaf.component,)


def by_operator(leaf: Leaf) -> tuple[str, ...]:
    """Group by the operator whose kernel it is; everything else is one group."""
    return (leaf.operator or NO_OPERATOR,)


def by_file(leaf: Leaf) -> tuple[str, ...]:
    """Group by object file; what has none by what it is."""
    return (leaf.file or f"({leaf.component})",)


def by_symbol(leaf: Leaf) -> tuple[str, ...]:
    """Group by symbol and object file; what has no symbol is named by its file and section."""
    plain = leaf.symbol.startswith((".", REST))
    name = f"{member_name(leaf.file)}: {leaf.section}" if plain and leaf.file else leaf.symbol
    return (name, leaf.file or f"({leaf.component})")


def by_section(leaf: Leaf) -> tuple[str, ...]:
    """Group by section of the library."""
    return (leaf.section,)


GROUPINGS: Final[Mapping[str, Callable[[Leaf], tuple[str, ...]]]] = {
    "component": by_component,
    "operator": by_operator,
    "file": by_file,
    "symbol": by_symbol,
    "section": by_section,
}
"""By what the bytes can be grouped."""
