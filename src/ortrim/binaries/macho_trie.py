"""The exports trie of a Mach-O library: the names that it offers, as dyld reads them.

Source of the format: `export_off` in Apple's mach-o/loader.h, and dyld's own reader of it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, takewhile


@dataclass(frozen=True, kw_only=True)
class _Node:
    """A place in the trie: the address of the name that ends here, None for none, and what comes after which bytes."""

    address: int | None
    children: tuple[tuple[bytes, "_Node"], ...]


def exports_trie(addresses: Mapping[str, int]) -> bytes:
    """Return the trie of plain exports; an address is counted from the library's first byte."""
    nodes = tuple(_walked(_node({name.encode(): address for name, address in addresses.items()})))
    places = dict.fromkeys(map(id, nodes), 0)
    while True:
        # Where a node lies is written in as few bytes as it takes, so that it hangs on where the others lie.
        written = [_written(node, places) for node in nodes]
        found, place = {}, 0
        for node, content in zip(nodes, written, strict=True):
            found[id(node)] = place
            place += len(content)
        if found == places:
            return b"".join(written)
        places = found


def _node(names: Mapping[bytes, int]) -> _Node:
    children = []
    for _, group in groupby(sorted(name for name in names if name), key=lambda name: name[:1]):
        same = list(group)
        edge = _common(same[0], same[-1])
        children.append((edge, _node({name.removeprefix(edge): names[name] for name in same})))
    return _Node(address=names.get(b""), children=tuple(children))


def _common(first: bytes, last: bytes) -> bytes:
    """Return how two names begin that are alike: of sorted names the first and the last, that is how all of them do."""
    equal = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False)))
    return first[:equal]


def _walked(node: _Node) -> Iterator[_Node]:
    yield node
    for _, child in node.children:
        yield from _walked(child)


def _written(node: _Node, places: Mapping[int, int]) -> bytes:
    export = b"" if node.address is None else _uleb128(0) + _uleb128(node.address)
    edges = b"".join(edge + b"\0" + _uleb128(places[id(child)]) for edge, child in node.children)
    return _uleb128(len(export)) + export + bytes([len(node.children)]) + edges


def _uleb128(number: int) -> bytes:
    content = bytearray()
    while number > 0x7F:
        content.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*content, number])
