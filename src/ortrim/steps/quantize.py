"""Numbers of 8 bits in the place of those of 32."""

import zipfile
from collections import Counter
from pathlib import Path
from typing import Final

import onnx

from ortrim.console import counted
from ortrim.core.number_steps import Quantize
from ortrim.errors import ModelError
from ortrim.steps.graphs import nodes_in
from ortrim.steps.runtime_tools import accuracy, python_with_onnx, rewritten, write_feeds
from ortrim.steps.stepped import Stepped, Workplace

SCRIPT: Final = "step_quantize.py"


def quantize(model: onnx.ModelProto, options: Quantize, place: Workplace) -> Stepped:
    """Quantize by ONNX Runtime's own quantizer, and say how far the outputs of the cases then are from before.

    Raises `ModelError`: `no-calibration-data`, `nothing-quantized`, `step-failed`.
    """
    data = _calibration(options, place) if options.mode == "static" else ()
    request = {
        "mode": options.mode,
        "data": [str(path) for path in data],
        "method": options.method,
        "weights": options.weights,
        "activations": options.activations,
        "per_channel": options.per_channel,
        "reduce_range": takes_seven_bits(options),
        "operators": list(options.operators),
        "exclude": list(options.exclude),
    }
    before = Counter(node.op_type for node in nodes_in(model))
    made, _ = rewritten(model, SCRIPT, request, place, python=python_with_onnx(place))
    new = Counter(node.op_type for node in nodes_in(made)) - before
    if not new:
        hint = "its operators may be none that can be quantized this way, or may have no constant weights"
        raise ModelError("nothing-quantized", "the quantizer changed nothing", where=place.where, hint=hint)
    calibrated = (f"calibrated with {counted(len(data), 'set')} of inputs",) if data else ()
    listed = f"new in the model: {', '.join(f'{count} {name}' for name, count in sorted(new.items()))}"
    width = ("weights have 7 bits: no overflow with AVX2 without VNNI",) if request["reduce_range"] else ()
    return Stepped(model=made, notes=(*calibrated, listed, *width, *accuracy(place)))


def takes_seven_bits(options: Quantize) -> bool:
    """Return whether weights are to have 7 bits.

    Sums of two products of signed with unsigned bytes overflow 16 bits in `vpmaddubsw`, which MLAS takes on x64 without
    VNNI.
    """
    unsigned = options.mode == "dynamic" or options.activations == "uint8"
    return options.weights == "int8" and unsigned if options.reduce_range is None else options.reduce_range


def _calibration(options: Quantize, place: Workplace) -> tuple[Path, ...]:
    """Return files with calibration data: the buildspec's, or the cases."""
    if not options.data:
        return write_feeds(place.cases, place)
    paths = tuple(place.base / path for path in options.data)
    for path in paths:
        if not path.is_file() or not zipfile.is_zipfile(path):
            what = f"the calibration data '{path.name}' is not there, or not an .npz file"
            hint = "write it with numpy.savez, one array for each input by its name; paths start at the buildspec"
            raise ModelError("no-calibration-data", what, where=place.where, hint=hint)
    return paths
