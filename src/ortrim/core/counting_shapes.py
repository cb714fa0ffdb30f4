"""What the rules of counting are given: a node's shapes and attributes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ortrim.models.value_sizes import Shape


class Uncountable(Exception):
    """A node cannot be counted; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Counting:
    """A node to be counted: its operator's name, its shapes (None when not known), and its simple attributes."""

    operator: str
    inputs: tuple[Shape | None, ...]
    outputs: tuple[Shape | None, ...]
    attributes: Mapping[str, int | str | tuple[int, ...]] = field(default_factory=dict)

    def integer(self, name: str, default: int) -> int:
        """Return an attribute that is a whole number."""
        value = self.attributes.get(name, default)
        return value if isinstance(value, int) else default

    def integers(self, name: str) -> tuple[int, ...]:
        """Return an attribute that is a list of whole numbers; empty when there is none."""
        value = self.attributes.get(name, ())
        return value if isinstance(value, tuple) else ()

    def text(self, name: str) -> str:
        """Return an attribute that is a text; empty when there is none."""
        value = self.attributes.get(name, "")
        return value if isinstance(value, str) else ""

    def length(self, name: str) -> int:
        """Return how many numbers an attribute holds: of a list of floats, only that is kept."""
        return self.integer(f"{name}.length", 0)


def required(shapes: Sequence[Shape | None], index: int, what: str, *, rank: int | None = None) -> Shape:
    """Return a shape. Raises `Uncountable` when it is not known or has another number of dimensions than `rank`."""
    shape = shapes[index] if index < len(shapes) else None
    if shape is None:
        raise Uncountable(f"the shape of {what} is not known")
    if rank is not None and len(shape) != rank:
        raise Uncountable(f"the shape of {what} has {len(shape)} dimensions, not {rank}")
    return shape


def optional(shapes: Sequence[Shape | None], index: int) -> Shape | None:
    """Return the shape of an input that may be left out."""
    return shapes[index] if index < len(shapes) else None
