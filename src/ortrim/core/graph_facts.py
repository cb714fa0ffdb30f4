"""An ONNX model's graph as plain facts, which the rules of `invoke lint` read. Pure."""

from dataclasses import dataclass
from math import prod
from typing import Final

from ortrim.core.models import ModelFacts, TensorInfo

NAMELESS: Final = ("?", "-1", "None")
"""What exporters write for a size that they do not know (Paddle's writes `?`): two of them need not be equal."""


@dataclass(frozen=True, kw_only=True)
class NodeFacts:
    """One node: its operator's domain and name, and its values with the types and shapes that are known.

    `scope` names the nodes and functions around it, outermost first, and is empty in the main graph. An input that is
    left out has an empty name; an unknown element type is empty. `attributes` holds those that are one number or one
    short text, in words; `constants` the names of inputs that the model fixes.
    """

    name: str
    domain: str
    operator: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    scope: str = ""
    attributes: tuple[tuple[str, str], ...] = ()
    constants: tuple[str, ...] = ()
    has_graphs: bool = False

    @property
    def place(self) -> str:
        """The node in words: its name, or its operator and what it makes."""
        own = self.name or f"{self.operator} -> {next((value.name for value in self.outputs), '')}"
        return f"{self.scope}/{own}" if self.scope else own

    def attribute(self, name: str) -> str:
        """Return an attribute in words, empty when it is absent or not kept."""
        return dict(self.attributes).get(name, "")


@dataclass(frozen=True, kw_only=True)
class WeightFacts:
    """A tensor that the model fixes: an initializer, or the value of a Constant node.

    `size_bytes` is what its type and dimensions come to. `digest` is one of type, dimensions and content, empty for
    content in another file, named by `external`. `values` are those of a small integer tensor.
    """

    name: str
    element_type: str
    dimensions: tuple[int, ...]
    size_bytes: int
    digest: str = ""
    external: str = ""
    values: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TextFacts:
    """A text that travels in a model without being needed: `place` says where, such as `doc_string of the graph`."""

    place: str
    text: str


@dataclass(frozen=True, kw_only=True)
class GraphFacts:
    """A model: what it says of itself, its nodes wherever they are, its weights and the texts that it carries.

    `external_bytes` is what the files beside the model that it refers to come to. `functions` are the domains and names
    of operators that the model itself defines by others.
    """

    model: ModelFacts
    producer: str
    nodes: tuple[NodeFacts, ...]
    weights: tuple[WeightFacts, ...]
    texts: tuple[TextFacts, ...] = ()
    external_bytes: int = 0
    functions: tuple[tuple[str, str], ...] = ()


def operators_of(graph: GraphFacts) -> frozenset[tuple[str, str]]:
    """Return the domains and names of a model's operators."""
    return frozenset((node.domain, node.operator) for node in graph.nodes)


def elements(value: TensorInfo) -> int | None:
    """Return the number of a tensor's elements; None when it is not fixed."""
    if value.shape is None or any(not isinstance(size, int) for size in value.shape):
        return None
    return prod(size for size in value.shape if isinstance(size, int))


def dynamic_dimensions(inputs: tuple[TensorInfo, ...]) -> tuple[str, ...]:
    """Return the names of the inputs' dimensions that are not fixed, in order; one without a name is `input[axis]`."""
    names = (dimension_name(value, axis) for value in inputs for axis in range(len(value.shape or ())))
    return tuple(dict.fromkeys(name for name in names if name))


def dimension_name(value: TensorInfo, axis: int) -> str:
    """Return the name of an input's dimension, empty for a fixed one."""
    assert value.shape is not None
    size = value.shape[axis]
    if isinstance(size, int):
        return ""
    return size if size and size not in NAMELESS else f"{value.name}[{axis}]"
