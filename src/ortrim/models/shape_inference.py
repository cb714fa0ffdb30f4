"""onnx's inference of shapes, which also follows the operators that ONNX Runtime made of others when it optimised."""

from collections.abc import Sequence

import onnx

from ortrim.models.stand_ins import MADE_UP, stand_ins

Stands = list[Sequence[onnx.NodeProto]]


def inferred(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of a model with the shapes that can be inferred; its nodes are as they were.

    Raises what onnx raises.
    """
    opset = next((each.version for each in model.opset_import if each.domain in {"", "ai.onnx"}), None)
    stands: Stands = [stand_ins(node, opset) if opset else () for node in model.graph.node]
    if not any(stands):
        return _infer(model)
    standing = onnx.ModelProto()
    standing.CopyFrom(model)
    del standing.graph.node[:]
    for node, stand in zip(model.graph.node, stands, strict=True):
        standing.graph.node.extend(stand or (node,))
    try:
        made = _infer(standing)
    except onnx.shape_inference.InferenceError:  # a node of a damaged model lacks what its stand-in needs
        return _infer(model)
    _put_back(made.graph, model.graph, stands)
    return made


def _infer(model: onnx.ModelProto) -> onnx.ModelProto:
    return onnx.shape_inference.infer_shapes(model, check_type=False, strict_mode=False, data_prop=True)


def _put_back(made: onnx.GraphProto, original: onnx.GraphProto, stands: Stands) -> None:
    """Put the model's own nodes in the place of what stood in for them, and forget the values that it does not have."""
    nodes, position = [], 0
    for node, stand in zip(original.node, stands, strict=True):
        nodes.append(node if stand else _copy(made.node[position]))
        position += len(stand) or 1
    known = [onnx.ValueInfoProto.FromString(each.SerializeToString()) for each in made.value_info]
    del made.node[:], made.value_info[:]
    made.node.extend(nodes)
    made.value_info.extend(each for each in known if not each.name.startswith(MADE_UP))


def _copy(node: onnx.NodeProto) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    return copy
