"""What each finding of `lint` says to do is done to a model that shows it, and the model is judged again."""

import io
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper, version_converter

from linted_models import facts
from onnx_samples import branching, model_of, relu, value, weighted, write
from ortrim.analysis.lint.rules import BY_CODE, RULES
from ortrim.analysis.lint.run import LintRequest, lint_models
from ortrim.base.console import Console
from ortrim.buildspec import step_specs
from ortrim.cli.options import request_from
from ortrim.models.full_runtime import full_runtime
from ortrim.steps.step import Workplace
from ortrim.steps.table import take_step
from quantized_nodes import INPUT_SCALE, WEIGHT_SCALE, quantized_convolution, quantized_resize
from refused_models import REFUSED, dividing, unwrapped, wrapped

FLOAT, DOUBLE, INT64 = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64
Model = onnx.ModelProto
Change = Callable[[Model, Path], Model]


def weights(name: str, *shape: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.ones(shape, np.float32), name)


def numbers(name: str, *values: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def node(operator: str, *inputs: str, shape: Any = (2, 3), opset: int = 17, **attributes: Any) -> Model:
    made = helper.make_node(operator, inputs or ("x",), ["y"], **attributes)
    initializers = [weights("w", 3, 8)] if "w" in inputs else []
    ends = [value("x", shape=shape)], [value("y", shape=None)]
    return model_of([made], *ends, opsets=[("", opset)], initializers=initializers)


def called(source: str, result: str) -> Model:
    return model_of([helper.make_node("Relu", [source], [result])], [value(source)], [value(result)])


def reshaped(*sizes: int) -> Model:
    """Return a model that brings a matrix of any height into a shape."""
    made = helper.make_node("Reshape", ["x", "sizes"], ["y"])
    ends = [value("x", shape=("n", 4))], [value("y", shape=None)]
    return model_of([made], *ends, initializers=[numbers("sizes", *sizes)])


def five_times() -> Model:
    nodes = [
        helper.make_node("Concat", ["a"] * 5, ["all"], axis=0),
        helper.make_node("Concat", ["all", "b"], ["y"], axis=1),
    ]
    return model_of(nodes, [value("a", shape=("n", 1)), value("b", shape=("m", 1))], [value("y", shape=None)])


def in_pairs() -> Model:
    """Return a model with four sizes, of which two and two have to be equal: 3, and 16 or more."""
    nodes = [
        helper.make_node("Add", ["a", "b"], ["ab"]),
        helper.make_node("Reshape", ["ab", "sizes"], ["y"]),
        helper.make_node("Add", ["c", "d"], ["cd"]),
        helper.make_node("Conv", ["cd", "w"], ["z"]),
    ]
    flat = [value(name, shape=(name * 2,)) for name in "ab"]
    signals = [value(name, shape=(1, 1, name * 2)) for name in "cd"]
    constants = [numbers("sizes", 3, -1), weights("w", 1, 1, 16)]
    return model_of(nodes, [*flat, *signals], [value(name, shape=None) for name in "yz"], initializers=constants)


def between(*, kernel: bool) -> Model:
    """Return a product with weights between two transpositions, or the convolution in their place."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["a"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["a", "w"], ["b"]),
        helper.make_node("Transpose", ["b"], ["y"], perm=[0, 2, 1]),
    ]
    constants = [weights("w", 3, 8)]
    if kernel:
        nodes, constants = [helper.make_node("Conv", ["x", "w"], ["y"])], [weights("w", 8, 3, 1)]
    return model_of(nodes, [value("x", shape=(1, 3, "n"))], [value("y", shape=None)], initializers=constants)


def of_type(kind: int, operator: str = "MatMul", *shape: int) -> Model:
    shape = shape or (2, 2)
    return model_of([helper.make_node(operator, ["x", "x"], ["y"])], *([value(name, kind, shape)] for name in "xy"))


def dropout(*, training: bool) -> Model:
    flags = [
        numpy_helper.from_array(np.array(0.5, np.float32), "ratio"),
        numpy_helper.from_array(np.array(training), "on"),
    ]
    return model_of([helper.make_node("Dropout", ["x", "ratio", "on"], ["y"])], initializers=flags)


def normalization(*, trains: bool) -> Model:
    """Return a batch normalization as a network in training exports it, or as one for inference does."""
    outputs = ["y", "mean", "variance"] if trains else ["y"]
    made = helper.make_node("BatchNormalization", ["x", *"wwww"], outputs, training_mode=int(trains))
    ends = [value("x", shape=(2, 3))], [value(name, shape=None) for name in outputs]
    return model_of([made], *ends, opsets=[("", 17)], initializers=[weights("w", 3)])


def leaf(*, version: int) -> Model:
    """Return a tree of one comparison in the operator of ai.onnx.ml 5, or of 3."""
    if version >= 5:
        splits = numpy_helper.from_array(np.ones(1, np.float32))
        made = helper.make_node(
            "TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", tree_roots=[0], n_targets=1,
            nodes_featureids=[0], nodes_splits=splits, nodes_modes=numpy_helper.from_array(np.zeros(1, np.uint8)),
            nodes_truenodeids=[0], nodes_falsenodeids=[1], nodes_trueleafs=[1], nodes_falseleafs=[1],
            leaf_targetids=[0, 0], leaf_weights=numpy_helper.from_array(np.array([1, 2], np.float32)),
        )  # fmt: skip
    else:
        made = helper.make_node(
            "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1,
            nodes_treeids=[0] * 3, nodes_nodeids=[0, 1, 2], nodes_featureids=[0] * 3, nodes_values=[1.0, 0.0, 0.0],
            nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0],
            target_treeids=[0, 0], target_nodeids=[1, 2], target_ids=[0, 0], target_weights=[1.0, 2.0],
        )  # fmt: skip
    ends = [value("x", shape=(2, 3))], [value("y", shape=None)]
    return model_of([made], *ends, opsets=[("", 17), ("ai.onnx.ml", version)])


def with_function() -> Model:
    """Return a model of an operator that ONNX Runtime does not know, which the model itself defines."""
    made = unknown()
    body = [helper.make_node("Relu", ["a"], ["b"])]
    made.functions.append(helper.make_function("my.ops", "Foo", ["a"], ["b"], body, [helper.make_opsetid("", 17)]))
    return made


def unknown() -> Model:
    """Return a model of an operator that ONNX Runtime does not know."""
    return model_of([helper.make_node("Foo", ["x"], ["y"], domain="my.ops")], opsets=[("", 17), ("my.ops", 1)])


def without_kernel(*, cast: bool) -> Model:
    """Return a sum in bfloat16, or in a type that has a kernel."""
    kind = FLOAT if cast else TensorProto.BFLOAT16
    nodes = [
        helper.make_node("Cast", ["x"], ["a"], to=kind),
        helper.make_node("Add", ["a", "a"], ["b"]),
        helper.make_node("Cast", ["b"], ["y"], to=FLOAT),
    ]
    return model_of(nodes)


def convolution(operator: str = "Conv", domain: str = "") -> Model:
    """Return a convolution, as exported or as it is optimized for a GPU."""
    made = helper.make_node(operator, ["x", "w"], ["y"], domain=domain)
    ends = [value("x", shape=(1, 3, 4, 4))], [value("y", shape=None)]
    opsets = [("", 17), ("com.microsoft", 1)]
    return model_of([made], *ends, opsets=opsets, initializers=[weights("w", 8, 3, 1, 1)])


def random(*, given: bool) -> Model:
    nodes = [] if given else [helper.make_node("RandomNormalLike", ["x"], ["r"])]
    nodes.append(helper.make_node("Add", ["x", "r"], ["y"]))
    return model_of(nodes, [value("x"), value("r")] if given else [value("x")])


def normalizer(locale: str) -> Model:
    made = helper.make_node("StringNormalizer", ["x"], ["y"], locale=locale)
    return model_of([made], *([value(name, TensorProto.STRING, (None,))] for name in "xy"))


def large() -> Model:
    made = helper.make_node("MatMul", ["x", "w"], ["y"])
    ends = [value("x", shape=(1, 1000))], [value("y", shape=(1, 300))]
    return model_of([made], *ends, initializers=[weights("w", 1000, 300)])


def equal() -> Model:
    nodes = [helper.make_node("Add", ["x", "v"], ["a"]), helper.make_node("Add", ["a", "w"], ["y"])]
    ends = [value("x", shape=(1, 500))], [value("y", shape=(1, 500))]
    return model_of(nodes, *ends, initializers=[weights("v", 1, 500), weights("w", 1, 500)])


def documented() -> Model:
    """Return a model that shows a file of the exporting machine in a doc string and in the name of a node."""
    made = helper.make_node(
        "Relu", ["x"], ["y"], name="/home/ada/net.py:7", doc_string='File "/home/ada/net.py", line 7'
    )
    return model_of([made])


def by(made: Callable[[], Model]) -> Change:
    """Take the model that the author exports when the fix is followed."""
    return lambda _, __: made()


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A model that shows a finding, and what its fix says to do, each way by itself; `more` are facts of other kinds.

    The full runtime loads and runs the models that are `run`. The change `leaves` other errors.
    """

    model: Callable[[], Model]
    changes: tuple[Change, ...] = ()
    steps: tuple[step_specs.StepChoices, ...] = ()
    run: bool = False
    more: dict[str, Any] = field(default_factory=dict)
    leaves: frozenset[str] = frozenset()


def stepped(choices: step_specs.StepChoices, model: Model, folder: Path) -> Model:
    runtime = full_runtime(onnxruntime.__version__, None)
    place = Workplace(runtime=runtime, folder=folder, base=folder, where="m", cases={})
    return take_step(model, choices, place).model


def as_one_file(model: Model, folder: Path) -> Model:
    (folder / "w.bin").write_bytes(bytes(16))
    path = write(folder / "m.onnx", model)
    onnx.save(onnx.load(path), path)
    return onnx.load(path, load_external_data=False)


def at_opset_22(model: Model, _: Path) -> Model:
    return version_converter.convert_version(model, 22)


SIZES: Final = step_specs.FixDimensions(use="fix-dimensions", sizes={"n": 3})
FIVE: Final = step_specs.FixDimensions(use="fix-dimensions", sizes={"n": 2, "m": 10})
PAIRS: Final = step_specs.NameDimensions(use="name-dimensions", names={"aa": "n", "bb": "n", "cc": "m", "dd": "m"})
BATCH: Final = step_specs.NameDimensions(use="name-dimensions", names={"x:0": "batch"})
TRIED: Final[dict[str, tuple[Tried, ...]]] = {
    "crashes-runtime": (Tried(model=dividing, changes=(by(relu),), run=True),),
    "dynamic-size-baked-in": (
        Tried(model=lambda: reshaped(3, 4), changes=(by(lambda: reshaped(-1, 4)),), steps=(SIZES,), run=True),
    ),
    "no-size-runs": (
        Tried(model=five_times, steps=(FIVE,), run=True),
        Tried(model=in_pairs, steps=(PAIRS,), run=True, leaves=frozenset({"dynamic-size-baked-in"})),
    ),
    "unsupported-opset": (Tried(model=lambda: node("Relu", opset=23), changes=(at_opset_22,)),),
    "external-data": (Tried(model=lambda: weighted("w.bin"), changes=(as_one_file,)),),
    "no-kernel": (
        Tried(model=lambda: without_kernel(cast=False), changes=(by(lambda: without_kernel(cast=True)),), run=True),
    ),
    "not-in-minimal-builds": (
        Tried(model=lambda: normalization(trains=True), changes=(by(lambda: normalization(trains=False)),), run=True),
        Tried(model=lambda: leaf(version=5), changes=(by(lambda: leaf(version=3)),), run=True),
    ),
    "other-provider-only": (
        Tried(model=lambda: convolution("NhwcConv", "com.microsoft"), changes=(by(convolution),), run=True),
    ),
    "unknown-operator": (Tried(model=unknown, changes=(by(relu), by(with_function)), run=True),),
    "unnamed-value": (Tried(model=lambda: called("", "y"), changes=(by(relu),)),),
    "machine-named-value": (
        Tried(
            model=lambda: called("input.1", "y"),
            changes=(by(relu),),
            steps=(step_specs.Rename(use="rename", inputs={"input.1": "image"}),),
        ),
    ),
    "unnamed-dimension": (
        Tried(
            model=lambda: node("Relu", shape=(None, 4)),
            changes=(by(lambda: node("Relu", shape=("batch", 4))),),
            steps=(BATCH,),
        ),
    ),
    "einsum": (
        Tried(
            model=lambda: node("Einsum", "x", "w", equation="bc,cd->bd"),
            changes=(by(lambda: node("MatMul", "x", "w")), by(lambda: between(kernel=True))),
        ),
    ),
    "matmul-between-transposes": (
        Tried(model=lambda: between(kernel=False), changes=(by(lambda: between(kernel=True)),)),
    ),
    "fixed-reshape": (
        Tried(model=lambda: reshaped(2, 2), changes=(by(lambda: reshaped(-1, 2)), by(lambda: reshaped(0, 4)))),
    ),
    "float64": (Tried(model=lambda: of_type(DOUBLE), changes=(by(lambda: of_type(FLOAT)),)),),
    "int64": (
        Tried(
            model=lambda: of_type(INT64, "Add", 5000),
            changes=(by(lambda: of_type(TensorProto.INT32, "Add", 5000)), by(lambda: of_type(FLOAT, "Add", 5000))),
        ),
    ),
    "control-flow": (Tried(model=branching, changes=(by(relu),)),),
    "costly-operator": (
        Tried(
            model=lambda: node("Sigmoid"), changes=(by(relu),), more={"library": (("Sigmoid", 31_744), ("Relu", 900))}
        ),
    ),
    "bias-of-another-scale": (
        Tried(
            model=lambda: quantized_convolution(0.5),
            changes=(by(lambda: quantized_convolution(INPUT_SCALE * WEIGHT_SCALE)),),
        ),
    ),
    "resize-of-integers": (
        Tried(model=lambda: quantized_resize("linear"), changes=(by(lambda: quantized_resize("nearest")),)),
    ),
    "optional-values": (Tried(model=wrapped, changes=(by(unwrapped),), run=True),),
    "random-output": (Tried(model=lambda: random(given=False), changes=(by(lambda: random(given=True)),)),),
    "device-locale": (Tried(model=lambda: normalizer("de_DE.UTF-8"), changes=(by(lambda: normalizer("C")),)),),
    "training-mode": (Tried(model=lambda: dropout(training=True), changes=(by(lambda: dropout(training=False)),)),),
    "dominant-weight": (Tried(model=large, steps=(step_specs.Quantize(use="quantize"),)),),
    "duplicate-weights": (Tried(model=equal, steps=(step_specs.ShareConstants(use="share-constants"),)),),
    "source-path": (Tried(model=documented, steps=(step_specs.Strip(use="strip", node_names=True),)),),
}
UNTRIED: Final = {
    "does-not-load": "asks for the cause",
    "does-not-run": "asks for the cause where the model was made",
    "dynamic-size-limited": "documents the sizes, or pads in the author's program",
    "unsupported-ir-version": "types that no version here has",
    "weights-below-8-bits": "takes another version of the runtime",
    "model-too-large": "takes a model of 2 GB",
    "near-2-gb": "takes a model of 1.5 GB",
    "mobile-partitions": "what a provider takes is its own",
}
MOST_UNTRIED: Final = 8


def test_no_fix_is_untried() -> None:
    """A rule has a model and what is done to it, or a model that all commands refuse, or a reason."""
    refused = {each.code for each in REFUSED.values()}
    assert set(TRIED) | refused | set(UNTRIED) == set(BY_CODE)
    assert not (set(TRIED) | refused) & set(UNTRIED)
    assert len(UNTRIED) <= MOST_UNTRIED


@pytest.mark.parametrize("code", TRIED)
def test_every_step_that_a_fix_names_is_done(code: str) -> None:
    done = {choices.use for tried in TRIED[code] for choices in tried.steps}  # type: ignore[attr-defined]
    assert done == set(re.findall(r"\bstep ([a-z0-9-]+)", BY_CODE[code].fix))


def found_in(model: Model, tried: Tried, path: Path) -> set[str]:
    if tried.run:
        asked = LintRequest(models=(str(write(path, model)),), request=request_from(None))
        console = Console(stdout=io.StringIO(), stderr=io.StringIO(), environment={})
        return {finding.code for finding in lint_models(asked, console)[0].findings}
    known = facts(model, **tried.more)
    return {rule.code for rule in RULES if list(rule.check(known))}


@pytest.mark.parametrize("code", TRIED)
def test_what_a_fix_says_helps(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each way by itself ends the finding, and brings no error."""
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "m.onnx"
    for tried in TRIED[code]:
        assert code in found_in(tried.model(), tried, path)
        steps: list[Change] = [partial(stepped, choices) for choices in tried.steps]
        for number, change in enumerate((*tried.changes, *steps)):
            folder = tmp_path / str(number)
            folder.mkdir(exist_ok=True)
            found = found_in(change(tried.model(), folder), tried, path)
            assert code not in found
            assert {each for each in found if BY_CODE[each].level == "error"} <= tried.leaves
