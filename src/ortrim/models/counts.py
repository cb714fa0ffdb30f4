"""A model in numbers: what tells before from after."""

from collections import Counter
from math import prod

import onnx

from ortrim.core.models import ModelFacts
from ortrim.core.steps_report import ModelCounts
from ortrim.models.graph_weights import weights_of
from ortrim.models.onnx_reading import nodes_of

NO_PARAMETERS = ("int64", "int32", "bool", "string")
"""Types of constants that say where and how to work, such as shapes and axes."""


def counts_of(model: onnx.ModelProto, facts: ModelFacts) -> ModelCounts:
    """Return a model's numbers; its size is that of its files."""
    operators = Counter(f"{node.domain or 'ai.onnx'}:{node.op_type}" for node in nodes_of(model))
    weights = (weight for weight in weights_of(model) if weight.element_type not in NO_PARAMETERS)
    return ModelCounts(
        size_bytes=facts.size_bytes,
        nodes=facts.node_count,
        parameters=sum(max(0, prod(weight.dimensions)) for weight in weights),
        opsets=facts.opsets,
        operators=tuple(sorted(operators.items())),
    )
