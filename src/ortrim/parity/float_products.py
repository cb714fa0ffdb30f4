"""Products whose first factor is quantized in every run: the same model with that factor as it is.

`MatMulNBits` with `accuracy_level` 4 rounds the numbers that it is given to 8 bits, block by block, inside of its
kernel. Kernels differ in how, and a number near the middle of two levels takes the other one: what two right libraries
give is as far from each other as from what the numbers themselves give. How `DynamicQuantizeLinear` rounds is said by
ONNX, and the products of integers that follow are exact: such models need nothing of this.
"""

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import onnx

from ortrim.base.cache import cached_folder
from ortrim.base.files import storage_errors
from ortrim.models.models import OrtModel, PreparedModel
from ortrim.models.onnx_files import facts_of, nodes_of, read_onnx
from ortrim.models.ort_format import graphs_of, root_of
from ortrim.parity.coverage import is_rounding, written_copy

NODES, ATTRIBUTES, NUMBER = 2, 10, 4
"""The numbers of fields in ORT format's schema (core/flatbuffers/schema/ort.fbs)."""


def with_float_products(
    model: PreparedModel, converted: OrtModel, folder: Path
) -> tuple[PreparedModel, OrtModel] | None:
    """Return copies of a model, as it is and as it ships, that compute with float32 throughout; None if it does."""
    original = read_onnx(model.path, model.name)
    levels = list(_levels(original))
    if not levels:
        return None
    for level in levels:
        level.i = 0
    content = original.SerializeToString(deterministic=True)
    shipped = _in_floats(converted.path.read_bytes(), str(converted.path))
    digest = hashlib.sha256(f"{model.facts.sha256} {converted.sha256}".encode()).hexdigest()
    destination = folder / f"{model.name}-float-products-{digest[:16]}"
    name = f"{model.name}.ort"

    def fill(temporary: Path) -> None:
        with storage_errors(temporary):
            written_copy(original, model.path, temporary)
            (temporary / name).write_bytes(shipped)

    cached_folder(destination, fill)
    facts = facts_of(original, hashlib.sha256(content).hexdigest(), len(content), model.name)
    prepared = PreparedModel(name=model.name, path=destination / model.path.name, facts=facts)
    return prepared, replace(converted, path=destination / name, sha256=hashlib.sha256(shipped).hexdigest())


def _levels(model: onnx.ModelProto) -> Iterator[onnx.AttributeProto]:
    for node in nodes_of(model):
        yield from (each for each in node.attribute if is_rounding(node.op_type, each.name, each.i))


def _in_floats(content: bytes, where: str) -> bytes:
    model = root_of(content, where).table(1)
    graph = model.table(7) if model else None
    changed = bytearray(content)
    for each in graphs_of(graph) if graph else ():
        for node in each.tables(NODES):
            for attribute in node.tables(ATTRIBUTES):
                if is_rounding(node.text(5), attribute.text(0), attribute.integer(NUMBER, "q")):
                    struct.pack_into("<q", changed, attribute.place_of(NUMBER), 0)
    return bytes(changed)
