"""Steps by tools of onnx, of ONNX Runtime and others, each in a program of its own, which it may crash."""

import os
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, defs

from ortrim.base.console import counted
from ortrim.base.files import storage_errors
from ortrim.base.scripts import Python, packages_folder
from ortrim.buildspec import step_specs
from ortrim.errors import ModelError
from ortrim.models.graph import DEFAULT_DOMAIN, SKIP_HINT, Names, opset_of, rename_values, value_names
from ortrim.models.onnx_files import graphs_below, graphs_in, nodes_of
from ortrim.models.operators import NCHWC
from ortrim.pins.shipped import step_requirements
from ortrim.steps.step import (
    LARGEST_BYTES,
    Feeding,
    Feeds,
    Stepped,
    Workplace,
    ask,
    load,
    packaged_python,
    runtime_python,
    save,
    step_failed,
)

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
        self.model = deepcopy(model)
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


BEFORE: Final = "before.onnx"
AFTER: Final = "after.onnx"


def python_with_onnx(place: Workplace) -> Python:
    """Return the full runtime's Python with onnx, put beside a runtime that has a folder of its own."""
    python = runtime_python(place)
    if (place.runtime.packages / "onnx").is_dir():
        return python
    onnx_packages = packages_folder("onnx", step_requirements("onnx"), python=place.runtime.python)
    search = f"{place.runtime.packages}:{onnx_packages}"
    return Python(words=python.words, environment={**python.environment, "PYTHONPATH": search})


def rewritten(
    model: onnx.ModelProto, step: str, request: Mapping[str, object], place: Workplace, *, python: Python
) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """Let a program write a model anew, and return that with its answer; both models stay in the folder."""
    before, after = place.folder / BEFORE, place.folder / AFTER
    save(model, before, place.where)
    answer = ask(python, step, {"model": str(before), "output": str(after), **request}, place)
    return load(after, place), answer


def write_feeds(cases: Mapping[str, Feeds], place: Workplace) -> tuple[Path, ...]:
    """Write the feeds of cases as `.npz` files; strings as arrays of text, which hold no Python objects.

    `numpy.savez` does not take inputs of every name: `file` is a parameter of its own.
    """
    paths = tuple(place.folder / f"case_{number}.npz" for number in range(len(cases)))
    for path, feeds in zip(paths, cases.values(), strict=True):
        with storage_errors(path), zipfile.ZipFile(path, "w") as archive:
            for name, array in feeds.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    plain = array.astype(np.str_) if array.dtype == object else array
                    np.lib.format.write_array(file, plain, allow_pickle=False)
    return paths


def accuracy(place: Workplace) -> tuple[str, ...]:
    """Say of each float output how far it is from what it was before the step, on all cases."""
    data = [str(path) for path in write_feeds(place.cases, place)]
    files = {"before": str(place.folder / BEFORE), "after": str(place.folder / AFTER)}
    failed = "the model no longer runs, or did not before"
    answer = ask(runtime_python(place), "compare", {**files, "data": data}, place, failed=failed)
    return tuple(map(_in_words, answer["outputs"]))


def _in_words(output: Mapping[str, Any]) -> str:
    if output["largest"] is None:
        return f"output '{output['name']}' has another shape, or no numbers"
    noise = "no noise" if output["decibels"] is None else f"{output['decibels']:.1f} dB over the noise"
    words = f"output '{output['name']}': {noise}, largest difference {output['largest']:.3g} of {output['range']:.3g}"
    return words if output["agreement"] is None else f"{words}, {output['agreement']:.1%} of rows have the same largest"


def float16(model: onnx.ModelProto, options: step_specs.Float16, place: Workplace) -> Stepped:
    """Convert by ONNX Runtime's own converter, and say how far the outputs of the cases then are from before.

    Raises `ModelError` (`step-failed`) when the model does not run afterwards, too: not every CPU kernel takes float16.
    """
    request = {
        "keep_io_types": options.keep_io_types,
        "blocked_operators": None if options.blocked_operators is None else list(options.blocked_operators),
        "blocked_nodes": list(options.blocked_nodes),
    }
    made, answer = rewritten(model, "float16", request, place, python=python_with_onnx(place))
    stayed = (f"at 32 bits stayed: {', '.join(answer['blocked'])}",) if answer["blocked"] else ()
    changed = _half(made) - _half(model)
    return Stepped(model=made, notes=(*stayed, *accuracy(place)), feeding=_narrowing(changed) if changed else None)


def _half(model: onnx.ModelProto) -> set[str]:
    """Return the inputs that are of 16 bits."""
    values = model.graph.input
    return {value.name for value in values if value.type.tensor_type.elem_type == TensorProto.FLOAT16}


def _narrowing(names: Collection[str]) -> Feeding:
    def forward(feeds: Feeds) -> Feeds:
        return {name: array.astype(np.float16) if name in names else array for name, array in feeds.items()}

    def back(feeds: Feeds) -> Feeds:
        return {name: feeds[name].astype(np.float32) for name in names}

    return Feeding(forward=forward, back=back)


def quantize(model: onnx.ModelProto, options: step_specs.Quantize, place: Workplace) -> Stepped:
    """Quantize by ONNX Runtime's own quantizer, and say how far the outputs of the cases then are from before."""
    data = _calibration(options, place) if options.mode == "static" else ()
    aliases = Aliases(model)
    request = {
        "inputs": {alias: name for name, alias in aliases.values.items()},
        "mode": options.mode,
        "data": [str(path) for path in data],
        "method": options.method,
        "weights": options.weights,
        "activations": options.activations,
        "per_channel": options.per_channel,
        "reduce_range": takes_seven_bits(options),
        "operators": list(options.operators),
        "exclude": aliases.of_nodes(options.exclude),
    }
    before = Counter(node.op_type for node in nodes_of(model))
    try:
        made, _ = rewritten(aliases.model, "quantize", request, place, python=python_with_onnx(place))
    except ModelError as error:
        error.why = aliases.in_words(error.why)
        raise
    aliases.restore(made)
    save(model, place.folder / BEFORE, place.where)
    save(made, place.folder / AFTER, place.where)
    new = Counter(node.op_type for node in nodes_of(made)) - before
    if not new:
        hint = "it may have no operators that can be quantized this way, or no constant weights"
        raise ModelError("nothing-quantized", "the quantizer changed nothing", where=place.where, hint=hint)
    calibrated = (f"calibrated with {counted(len(data), 'set')} of inputs",) if data else ()
    listed = f"new in the model: {', '.join(f'{count} {name}' for name, count in sorted(new.items()))}"
    width = ("weights have 7 bits: no overflow with AVX2 without VNNI",) if request["reduce_range"] else ()
    return Stepped(model=made, notes=(*calibrated, listed, *width, *accuracy(place)))


def takes_seven_bits(options: step_specs.Quantize) -> bool:
    """Return whether weights are to have 7 bits.

    Sums of two products of signed with unsigned bytes overflow 16 bits in `vpmaddubsw`, which MLAS takes on x64 without
    VNNI.
    """
    unsigned = options.mode == "dynamic" or options.activations == "uint8"
    return options.weights == "int8" and unsigned if options.reduce_range is None else options.reduce_range


def _calibration(options: step_specs.Quantize, place: Workplace) -> tuple[Path, ...]:
    """Return files with calibration data: the buildspec's, or the cases."""
    if not options.data:
        return write_feeds(place.cases, place)
    paths = tuple(place.base / path for path in options.data)
    for path in paths:
        if not path.is_file() or not zipfile.is_zipfile(path):
            what = f"the calibration data '{path.name}' does not exist, or is not an .npz file"
            hint = "write it with numpy.savez, one array for each input by its name; paths start at the buildspec"
            raise ModelError("no-calibration-data", what, where=place.where, hint=hint)
    return paths


LEVELS_SINCE: Final[Mapping[step_specs.OptimizationLevel, tuple[int, int]]] = MappingProxyType({"layout": (1, 23)})
"""The versions that brought a level (`ORT_ENABLE_LAYOUT` in `onnxruntime_c_api.h`); others are in all."""


def optimize(model: onnx.ModelProto, options: step_specs.Optimize, place: Workplace) -> Stepped:
    """Let ONNX Runtime optimise the graph at one level for one execution provider."""
    since = LEVELS_SINCE.get(options.level, (0, 0))
    if tuple(map(int, place.runtime.version.split(".")[:2])) < since:
        what = f"ONNX Runtime {place.runtime.version} has no optimization level '{options.level}'"
        hint = f"use 'all' or 'extended', or ONNX Runtime {'.'.join(map(str, since))} or newer"
        raise ModelError("level-not-there", what, where=place.where, hint=hint)
    before = _operators(model)
    request = {"level": options.level, "provider": options.provider}
    made, _ = rewritten(model, "optimize", request, place, python=runtime_python(place))
    return Stepped(model=made, notes=tuple(_notes(_operators(made) - before, options)))


def _operators(model: onnx.ModelProto) -> Counter[tuple[str, str]]:
    return Counter((node.domain, node.op_type) for node in nodes_of(model) if node.domain not in DEFAULT_DOMAIN)


def _notes(new: Counter[tuple[str, str]], options: step_specs.Optimize) -> Iterator[str]:
    """Say what only some runtimes can do with the model from now on."""
    if new:
        listed = ", ".join(f"{count} {name} ({domain})" for (domain, name), count in sorted(new.items()))
        yield f"operators that only ONNX Runtime has, for {options.provider} takes them: {listed}"
    if any(domain == NCHWC for domain, _ in new):
        yield (
            "convolutions are laid out for processors like this machine's, which others may not run: a minimal build "
            "takes blocks of 8, for which layout = 'nchwc8' of the conversion is, or of 16, layout = 'nchwc16'"
        )


SMALL_BYTES: Final = 1 << 16
"""What a model may always grow by: a factor says nothing of a few nodes."""


def simplify(model: onnx.ModelProto, options: step_specs.Simplify, place: Workplace) -> Stepped:
    """Return the model that the program makes, unless folded constants have swollen it.

    onnxslim works constants out with the full runtime of the buildspec, and without one it folds none, in silence.
    """
    before, after = place.folder / BEFORE, place.folder / AFTER
    save(model, before, place.where)
    size = before.stat().st_size
    most = min(int(size * options.most_growth) + SMALL_BYTES, LARGEST_BYTES)
    request = {"by": options.by, "model": str(before), "output": str(after), "most_bytes": most}
    python = packaged_python(options.by, step_requirements(options.by), place.runtime)
    answer = ask(python, "simplify", request, place)
    if "swollen" in answer:
        made: int = answer["swollen"]
        what = f"{options.by} made {made:,} bytes of the model's {size:,}: folded constants made it larger"
        hint = f"leave the step out, give it optional = true, or allow more: most_growth = {made / size * 1.1:.2g}"
        raise ModelError("model-swollen", what, where=place.where, hint=hint)
    return Stepped(model=load(after, place))


def by_onnx(model: onnx.ModelProto, step: str, place: Workplace, **request: object) -> onnx.ModelProto:
    """Return what a step with ortrim's own onnx makes of a model. Raises `ModelError` as `ask` does."""
    python = Python(words=(sys.executable,), environment={**os.environ, "LC_ALL": "C.UTF-8"})
    made, _ = rewritten(model, step, request, place, python=python)
    return made


def inferred(model: onnx.ModelProto, place: Workplace, *, strict: bool = False) -> onnx.ModelProto:
    """Return a model with the shapes that onnx infers; `strict` fails where it cannot. Raises `ModelError`."""
    return by_onnx(model, "infer-shapes", place, strict=strict)


def infer_shapes(model: onnx.ModelProto, options: step_specs.InferShapes, place: Workplace) -> Stepped:
    """Return the model with the shapes that are found. Raises `ModelError` as `ask` does."""
    before = _known(model)
    if options.symbolic:
        made, _ = rewritten(model, "infer-symbolic-shapes", {}, place, python=python_with_onnx(place))
    else:
        made = inferred(model, place)
    return Stepped(model=made, notes=(f"shapes known of {_known(made):,} values inside, before of {before:,}",))


def _known(model: onnx.ModelProto) -> int:
    return sum(value.type.tensor_type.HasField("shape") for graph in graphs_in(model) for value in graph.value_info)


def to_opset(model: onnx.ModelProto, options: step_specs.Opset, place: Workplace) -> Stepped:
    """Convert by onnx's converter; where no operator differs between the two, the number alone is changed.

    Raises `ModelError` (`step-failed`), which names the operators that the other opset has not, or has otherwise.
    """
    before = opset_of(model)
    if before == options.version:
        return Stepped(model=model)
    newest = defs.onnx_opset_version()
    if options.version > newest:
        what = f"onnx {onnx.__version__} knows opsets up to {newest}, not {options.version}"
        raise step_failed(what, place.where, hint="choose an older one")
    missing, changed = _differences(model, before, options.version)
    if missing:
        what = f"opset {options.version} does not have {', '.join(missing)}"
        hint = f"choose another opset, or export the model for that one; or {SKIP_HINT}"
        raise step_failed(what, place.where, hint=hint)
    if not changed:
        _set_opset(model, options.version)
        return Stepped(model=model, notes=("no operator of the model differs between the two",))
    try:
        made = by_onnx(model, "convert-version", place, version=options.version)
    except ModelError as error:
        if error.code == "step-failed":
            error.why = f"{error.why}\noperators that differ: {', '.join(changed)}"
        raise
    made.ir_version = model.ir_version
    return Stepped(model=made, notes=(f"operators that differ: {', '.join(changed)}",))


def _differences(model: onnx.ModelProto, before: int, after: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the model's operators that the new opset has not, and those that it has in another version."""
    used = sorted({node.op_type for node in nodes_of(model) if node.domain in DEFAULT_DOMAIN})
    since = {name: (_since(name, before), _since(name, after)) for name in used}
    missing = tuple(name for name, (old, new) in since.items() if old and not new)
    return missing, tuple(name for name, (old, new) in since.items() if old != new and name not in missing)


def _since(name: str, version: int) -> int:
    """Return since which opset an operator is as it is in `version`; 0 when it is not there or not any more."""
    try:
        schema = defs.get_schema(name, version, "")
    except defs.SchemaError:
        return 0
    return 0 if schema.deprecated else schema.since_version


def _set_opset(model: onnx.ModelProto, version: int) -> None:
    for entry in (*model.opset_import, *(each for function in model.functions for each in function.opset_import)):
        if entry.domain in DEFAULT_DOMAIN:
            entry.version = version
    if not any(entry.domain in DEFAULT_DOMAIN for entry in model.opset_import):
        model.opset_import.add(domain="", version=version)
