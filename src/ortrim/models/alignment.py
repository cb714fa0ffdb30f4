"""Where a model in ORT format has its tensors: processors without unaligned access fault on those that lie crooked.

ONNX Runtime can be told to read tensors in place, in the bytes that the application loaded, when they have 128 bytes
or more (`core.sessions.IN_PLACE`); smaller ones are always copied, and so are all without that setting, into memory
that is aligned.
The file is then in memory as it is on disk, so that what is aligned here is aligned there if the buffer is.
Source: `onnxruntime/core/graph/graph_flatbuffers_utils.cc`, `LoadInitializerOrtFormat`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from ortrim.errors import ModelError
from ortrim.models.ort_reading import Damaged, Table, graphs_of, root_of

ELEMENT_BYTES: Final = {
    1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 14: 4, 15: 8, 16: 2, 17: 1, 18: 1,
    19: 1, 20: 1,
}  # fmt: skip
"""By `TensorDataType`; a complex number has the alignment of its parts, and strings have no bytes of their own here."""
IN_PLACE_BYTES: Final = 128


@dataclass(frozen=True, kw_only=True)
class TensorPlace:
    """One initializer's data: the offset in the file, the bytes of all, and those of one element."""

    name: str
    offset: int
    size_bytes: int
    element_bytes: int

    @property
    def excess(self) -> int:
        """By how many bytes the data lies behind a multiple of its elements' size; 0 when it is aligned."""
        return self.offset % self.element_bytes

    @property
    def is_read_in_place(self) -> bool:
        """Whether ONNX Runtime may use the data where it is."""
        return self.size_bytes >= IN_PLACE_BYTES


def tensor_places(data: bytes, where: str) -> tuple[TensorPlace, ...]:
    """Return the places of all initializers, those of inner graphs too, in the file's order.

    Raises `ModelError` (`not-ort`).
    """
    try:
        model = root_of(data, where).table(1)
        graph = model.table(7) if model else None
        return tuple(chain.from_iterable(map(_initializers, graphs_of(graph)))) if graph else ()
    except Damaged as error:
        hint = "convert the model again"
        raise ModelError("not-ort", "the file is damaged or cut short", where=where, hint=hint) from error


def misaligned_tensors(path: Path) -> tuple[str, ...]:
    """Return in words the initializers that ONNX Runtime may read in place and that are not aligned.

    Raises `ModelError` as `tensor_places` does.
    """
    return misaligned(tensor_places(path.read_bytes(), str(path)))


def misaligned(places: tuple[TensorPlace, ...]) -> tuple[str, ...]:
    """Return in words those of the places that are read there and are not aligned."""
    crooked = (place for place in places if place.is_read_in_place and place.excess)
    return tuple(f"{each.name} ({each.element_bytes}-byte elements at offset {each.offset})" for each in crooked)


def _initializers(graph: Table) -> Iterator[TensorPlace]:
    dense = graph.tables(0)
    sparse = (tensor for entry in graph.tables(7) for tensor in (entry.table(0), entry.table(1)) if tensor)
    for tensor in chain(dense, sparse):
        element, found = ELEMENT_BYTES.get(tensor.integer(3, "i"), 0), tensor.bytes_at(4)
        if element and found is not None:
            yield TensorPlace(name=tensor.text(0), offset=found[0], size_bytes=found[1], element_bytes=element)
