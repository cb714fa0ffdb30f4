"""A model under names that nothing clashes with which a tool makes of them, and back under its own."""

import re
from collections.abc import Collection
from typing import Final

import onnx

from ortrim.models.onnx_files import graphs_below
from ortrim.steps.graph import Names, rename_values, value_names

STEM: Final = "alias"


class Aliases:
    """A copy of a model in which each value and each named node has a name of its own; functions keep theirs.

    ONNX Runtime's quantizer names what it adds after values and nodes (`x_scale`), whether the model has such a name or
    not.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self._names = Names(model)
        stem = STEM
        while self._names.contain(stem):
            stem += "_"
        self._stem, self._pattern = stem, re.compile(rf"{stem}([0-9]+)z")
        self._own: list[str] = []
        self._invented: dict[str, str] = {}
        self.model = onnx.ModelProto()
        self.model.CopyFrom(model)
        self.values = {name: self._alias(name) for name in sorted(value_names(model)) if name}
        for graph in graphs_below(self.model.graph):
            rename_values(graph, self.values)
            for node in graph.node:
                node.name = self._alias(node.name) if node.name else ""

    def of_nodes(self, names: Collection[str]) -> list[str]:
        """Return the aliases of all nodes that have one of these names."""
        nodes = (node.name for graph in graphs_below(self.model.graph) for node in graph.node)
        return [alias for alias in nodes if self.in_words(alias) in names]

    def in_words(self, text: str) -> str:
        """Return a text with the model's own names."""
        return self._pattern.sub(lambda found: self._own[int(found[1])], text)

    def restore(self, model: onnx.ModelProto) -> None:
        """Give what a tool made of the copy the model's own names; what it added is named after them."""
        values = {name: self._restored(name) for name in sorted(value_names(model)) if name}
        for graph in graphs_below(model.graph):
            rename_values(graph, values)
            for node in graph.node:
                node.name = self._restored(node.name) if node.name else ""

    def _alias(self, name: str) -> str:
        self._own.append(name)
        return f"{self._stem}{len(self._own) - 1}z"

    def _restored(self, name: str) -> str:
        if self._pattern.fullmatch(name):
            return self.in_words(name)
        if name not in self._invented:
            self._invented[name] = self._names.fresh(self.in_words(name))
        return self._invented[name]
