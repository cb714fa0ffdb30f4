"""Each rule shows what it is about, and leaves alone what is well."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from linted_models import facts
from onnx_samples import branching, model_of, relu, value, weighted
from ortrim.analysis.lint import rules
from ortrim.models.graph_facts import dynamic_dimensions
from quantized_nodes import quantized_convolution, quantized_resize

FLOAT, DOUBLE, INT64, BOOL = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.BOOL
Sample = Callable[[], rules.LintFacts]


def _named(source: str, result: str) -> rules.LintFacts:
    return facts(model_of([helper.make_node("Relu", [source], [result])], [value(source)], [value(result)]))


def _opset(number: int, ir_version: int = 8) -> rules.LintFacts:
    return facts(model_of([helper.make_node("Relu", ["x"], ["y"])], opsets=[("", number)], ir_version=ir_version))


def _float4(ir_version: int) -> rules.LintFacts:
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT4E2M1)
    return facts(model_of([node], ir_version=ir_version))


def _sized(external_bytes: int) -> rules.LintFacts:
    known = facts(relu())
    return replace(known, graph=replace(known.graph, external_bytes=external_bytes))


def _shaped(*shape: int | str | None) -> onnx.ModelProto:
    node = helper.make_node("Relu", ["x"], ["y"])
    return model_of([node], [value("x", shape=shape)], [value("y", shape=shape)])


def _ran(*trials: tuple[rules.Sizes, str]) -> rules.LintFacts:
    run = rules.RunFacts(trials=trials)
    return facts(_shaped("n", 4) if any(sizes for sizes, _ in trials) else relu(), run=run)


def _at(*sizes: int, worked: tuple[int, ...]) -> rules.LintFacts:
    return _ran(*(((("n", size),), "" if size in worked else "bad shape") for size in sizes))


def _einsum(equation: str) -> rules.LintFacts:
    weights = numpy_helper.from_array(np.ones((4, 8), np.float32), "w")
    node = helper.make_node("Einsum", ["x", "w"], ["y"], equation=equation)
    ends = [value("x", shape=(1, "n", 4))], [value("y", shape=None)]
    return facts(model_of([node], *ends, initializers=[weights]))


def _between(order: tuple[int, ...]) -> rules.LintFacts:
    weights = numpy_helper.from_array(np.ones((4, 8), np.float32), "w")
    nodes = [
        helper.make_node("Transpose", ["x"], ["a"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["a", "w"], ["b"], name="product"),
        helper.make_node("Transpose", ["b"], ["y"], perm=order or None),
    ]
    ends = [value("x", shape=(1, 4, "n"))], [value("y", shape=None)]
    return facts(model_of(nodes, *ends, initializers=[weights]))


def _reshaped(*shape: int) -> rules.LintFacts:
    sizes = numpy_helper.from_array(np.array(shape, np.int64), "sizes")
    node = helper.make_node("Reshape", ["x", "sizes"], ["y"])
    return facts(model_of([node], [value("x", shape=("n", 4))], [value("y", shape=None)], initializers=[sizes]))


def _added(element_type: int, count: int) -> rules.LintFacts:
    node = helper.make_node("Add", ["x", "x"], ["y"])
    ends = [value("x", element_type, (count,))], [value("y", element_type, (count,))]
    return facts(model_of([node], *ends))


def _multiplied(element_type: int) -> rules.LintFacts:
    node = helper.make_node("MatMul", ["x", "x"], ["y"])
    return facts(model_of([node], *([value(name, element_type, (2, 2))] for name in "xy")))


def _provider(supported: int, partitions: int) -> rules.LintFacts:
    counts = {"supported": supported, "partitions": partitions, "unsupported": ("Sin",)}
    fixed = {"fixed_supported": supported, "fixed_partitions": partitions}
    return facts(relu(), providers=(rules.ProviderFacts(name="NNAPI", nodes=10, **counts, **fixed),))  # type: ignore[arg-type]


def _drawn(operator: str, **attributes: Any) -> rules.LintFacts:
    node = helper.make_node(operator, [] if operator == "RandomNormal" else ["x"], ["y"], **attributes)
    return facts(model_of([node]))


def _dropout(*, training: bool) -> rules.LintFacts:
    flags = [
        numpy_helper.from_array(np.array(0.5, np.float32), "ratio"),
        numpy_helper.from_array(np.array(training), "flag"),
    ]
    return facts(model_of([helper.make_node("Dropout", ["x", "ratio", "flag"], ["y"])], initializers=flags))


def _weights(*sizes: int, same: bool = False) -> rules.LintFacts:
    arrays = [np.full(size, 1 if same else number, np.float32) for number, size in enumerate(sizes)]
    tensors = [numpy_helper.from_array(array, f"w{number}") for number, array in enumerate(arrays)]
    return facts(model_of([helper.make_node("Relu", ["x"], ["y"])], initializers=tensors))


def _small(kind: str, version: str) -> rules.LintFacts:
    weights = helper.make_tensor("w", getattr(TensorProto, kind), [4], [1.0] * 4)
    known = facts(model_of([helper.make_node("Relu", ["x"], ["y"])], initializers=[weights]))
    return replace(known, version=version)


def _wrapped(operator: str) -> rules.LintFacts:
    nodes = [helper.make_node(operator, ["x"], ["a"]), helper.make_node("OptionalGetElement", ["a"], ["y"])]
    return facts(model_of(nodes, opsets=[("", 18)]))


def _documented(words: str, name: str = "/conv/Relu") -> rules.LintFacts:
    return facts(model_of([helper.make_node("Relu", ["x"], ["y"], name=name, doc_string=words)]))


def _kernels(**more: object) -> rules.LintFacts:
    return facts(relu(), kernels=rules.KernelFacts(**more))  # type: ignore[arg-type]


RELU = ("ai.onnx", "Relu")
FAILED = rules.RunFacts(load_failure="no kernel")
REFUSALS = {
    "locale-missing": "Failed to construct locale with name:xx_XX",
    "upsample-shrinks": "ScalesValidation Scale value should be greater than or equal to 1.",
    "quantize-16-bits": "'tensor(int16)' of input parameter (z) of operator (QuantizeLinear) in node () is invalid",
    "sparse-operand": "'tensor(float)' of input parameter (w) of operator (SparseToDenseMatMul) in node () is invalid",
    "weights-exceed-memory": "Load model from m.onnx failed:std::bad_alloc",
    "values-exceed-memory": "Exception during initialization: std::bad_alloc",
    "external-shape": "Cannot parse data from external tensors.",
}


def _refused(words: str) -> tuple[Sample, Sample]:
    return lambda: facts(relu(), run=rules.RunFacts(load_failure=words)), lambda: facts(relu(), run=FAILED)


def _normalized(locale: str) -> rules.LintFacts:
    node = helper.make_node("StringNormalizer", ["x"], ["y"], locale=locale)
    ends = [value("x", TensorProto.STRING)], [value("y", TensorProto.STRING)]
    return facts(model_of([node], *ends))


def _trees(version: int) -> rules.LintFacts:
    operator = "TreeEnsemble" if version >= 5 else "TreeEnsembleRegressor"
    return facts(model_of([helper.make_node(operator, ["x"], ["y"], domain="ai.onnx.ml")]))


def _normalization(opset: int, outputs: int, **mode: Any) -> rules.LintFacts:
    names = [f"y{number}" for number in range(outputs)]
    node = helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], names, **mode)
    inputs = [value(name, shape=(1, 2)) if name == "x" else value(name, shape=(2,)) for name in node.input]
    return facts(model_of([node], inputs, [value("y0", shape=(1, 2))], opsets=[("", opset)]))


SAMPLES: dict[str, tuple[Sample, Sample]] = {
    "does-not-load": (
        lambda: facts(relu(), run=rules.RunFacts(load_failure="type mismatch")),
        lambda: facts(relu(), run=FAILED, kernels=rules.KernelFacts(missing=(RELU, ""))),
    ),
    **{code: _refused(words) for code, words in REFUSALS.items()},
    "crashes-runtime": (lambda: facts(relu(), run=rules.RunFacts(crash="crashed (SIGSEGV)")), lambda: _ran(((), ""))),
    "does-not-run": (lambda: _ran(((), "bad shape")), lambda: _ran(((), ""))),
    "dynamic-size-baked-in": (lambda: _at(1, 2, 3, 8, worked=(1,)), lambda: _at(1, 2, 3, 8, worked=(2, 8))),
    "dynamic-size-limited": (lambda: _at(1, 2, 3, 8, worked=(2, 8)), lambda: _at(1, 2, 3, 8, worked=(1, 2, 3, 8))),
    "no-size-runs": (lambda: _at(1, 2, 3, worked=()), lambda: _at(1, 2, 3, worked=(3,))),
    "unsupported-opset": (lambda: _opset(23), lambda: _opset(22)),
    "unsupported-ir-version": (lambda: _float4(11), lambda: _opset(17, 11)),
    "bias-of-another-scale": (
        lambda: facts(quantized_convolution(0.5)),
        lambda: replace(facts(quantized_convolution(0.5)), version="1.27.0"),
    ),
    "resize-of-integers": (
        lambda: facts(quantized_resize("linear")),
        lambda: replace(facts(quantized_resize("linear")), version="1.27.0"),
    ),
    "weights-below-8-bits": (lambda: _small("INT4", "1.28.0"), lambda: _small("INT4", "1.27.0")),
    "optional-values": (lambda: _wrapped("Optional"), lambda: _wrapped("Identity")),
    "model-too-large": (lambda: _sized(2**31), lambda: _sized(2**31 - 10_000)),
    "near-2-gb": (lambda: _sized(2**31 - 10_000), lambda: _sized(2**30)),
    "external-data": (lambda: facts(weighted("weights.bin")), lambda: _weights(4)),
    "no-kernel": (
        lambda: _kernels(missing=(RELU, "")),
        lambda: _kernels(missing=(RELU, ""), without=(RELU,)),
    ),
    "not-in-minimal-builds": (lambda: _trees(5), lambda: _trees(3)),
    "other-provider-only": (lambda: _kernels(without=(RELU,)), lambda: _kernels(without=(RELU,), unheard=(RELU,))),
    "unknown-operator": (lambda: _kernels(without=(RELU,), unheard=(RELU,)), lambda: _kernels(without=(RELU,))),
    "unnamed-value": (lambda: _named("", "y"), lambda: _named("x", "y")),
    "machine-named-value": (lambda: _named("input.1", "y"), lambda: _named("input_ids", "logits")),
    "unnamed-dimension": (lambda: facts(_shaped(None, 4)), lambda: facts(_shaped("batch", 4))),
    "einsum": (lambda: _einsum("bnc,cd->bnd"), lambda: _between((0, 2, 1))),
    "matmul-between-transposes": (lambda: _between((0, 2, 1)), lambda: _between((1, 0, 2))),
    "fixed-reshape": (lambda: _reshaped(2, 2), lambda: _reshaped(-1, 2)),
    "float64": (lambda: _multiplied(DOUBLE), lambda: _multiplied(FLOAT)),
    "int64": (lambda: _added(INT64, 5000), lambda: _added(INT64, 5)),
    "mobile-partitions": (lambda: _provider(9, 2), lambda: _provider(9, 1)),
    "control-flow": (lambda: facts(branching()), lambda: facts(relu())),
    "costly-operator": (
        lambda: facts(relu(), library=(("Relu", 31_744),)),
        lambda: facts(relu(), library=(("Relu", 900), ("Resize", 31_744))),
    ),
    "random-output": (lambda: _drawn("RandomNormal", shape=[1]), lambda: facts(relu())),
    "device-locale": (lambda: _normalized("en_US.UTF-8"), lambda: _normalized("C")),
    "training-mode": (lambda: _dropout(training=True), lambda: _dropout(training=False)),
    "dominant-weight": (lambda: _weights(300_000, 10), lambda: _weights(300_000, 300_001, 300_002)),
    "duplicate-weights": (lambda: _weights(300, 300, same=True), lambda: _weights(300, 301, same=True)),
    "source-path": (lambda: _documented('File "/home/ada/net.py", line 7'), lambda: _documented("a layer / a head")),
}


def shown(reference: str, sample: Sample) -> list[rules.Shown]:
    return list(rules.BY_CODE[reference].check(sample()))


@pytest.mark.parametrize(
    ("opset", "outputs", "mode", "trains"),
    [(13, 1, {}, False), (13, 5, {}, True), (15, 1, {"training_mode": 0}, False), (15, 3, {"training_mode": 1}, True)],
)
def test_normalization_that_trains_is_known(opset: int, outputs: int, mode: dict[str, int], trains: bool) -> None:  # noqa: FBT001
    assert bool(shown("not-in-minimal-builds", lambda: _normalization(opset, outputs, **mode))) is trains


@pytest.mark.parametrize("reference", ["unsupported-opset", "unsupported-ir-version"])
def test_another_runtime_is_an_option_of_lint(reference: str) -> None:
    assert rules.BY_CODE[reference].fix.endswith("or choose another ONNX Runtime (--ort-version)")


def test_what_is_too_new_says_which_version_takes_it() -> None:
    assert [each[1] for each in shown("unsupported-opset", lambda: _opset(24))] == [
        "opset 24 of ai.onnx; ONNX Runtime 1.21.0 takes 7 to 22; opset 24 of ai.onnx needs ONNX Runtime 1.24.4 or later"
    ]
    assert shown("unsupported-opset", lambda: _opset(6))[0][1].endswith("takes 7 to 22")
    assert shown("unsupported-ir-version", lambda: _float4(11))[0][1].endswith("needs ONNX Runtime 1.23.2 or later")


def test_every_rule_has_its_two_models() -> None:
    assert list(SAMPLES) == [rule.code for rule in rules.RULES]
    assert len(rules.BY_CODE) == len(rules.RULES)


@pytest.mark.parametrize("reference", SAMPLES)
def test_a_rule_shows_its_model_and_leaves_the_other_alone(reference: str) -> None:
    showing, clean = SAMPLES[reference]
    found = shown(reference, showing)
    assert found
    assert all(each[0] and each[1] for each in found)
    assert shown(reference, clean) == []


@pytest.mark.parametrize(
    "name",
    ["1234", "input.1", "input_1", "onnx::MatMul_12", "x.3", "serving_default_x:0", "StatefulPartitionedCall:0", "x:0"],
)
def test_names_of_machines(name: str) -> None:
    assert len(shown("machine-named-value", lambda: _named(name, "y"))) == 1
    assert len(shown("machine-named-value", lambda: _named("x", name + "1" if name.isdecimal() else name))) == 1


@pytest.mark.parametrize("name", ["x", "input", "input_ids", "h0", "state2", "logits", "wav16k", "sr", "last_hidden"])
def test_names_of_people(name: str) -> None:
    assert shown("machine-named-value", lambda: _named(name, "y")) == []


@pytest.mark.parametrize(
    ("equation", "convolution"),
    [
        ("bnc,cd->bnd", True),
        ("btc , cd -> btd", True),
        ("bnc,dc->bnd", True),
        ("bnc,nd->bcd", True),
        ("bnc,nc->bnc", False),
        ("bnc,cd->bn", False),
        ("ij->ji", False),
        ("", False),
        ("->,", False),
    ],
)
def test_which_einsum_is_a_convolution(equation: str, convolution: bool) -> None:  # noqa: FBT001
    """One axis is summed over with a weight matrix, and another takes its place."""
    (found,) = shown("einsum", lambda: _einsum(equation))
    assert ("a convolution of length 1" in found[1]) is convolution


@pytest.mark.parametrize("order", [(), (0,), (0, 2, 1, 3), (5, 2, 1), (-1, 2, 1)])
def test_odd_transpositions_are_left_alone(order: tuple[int, ...]) -> None:
    assert shown("matmul-between-transposes", lambda: _between(order)) == []


def test_a_product_with_a_bias_is_one() -> None:
    weights = {name: numpy_helper.from_array(np.ones((8, 8), np.float32), name) for name in ("w", "bias")}
    nodes = [
        helper.make_node("Transpose", ["x"], ["a"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["a", "w"], ["b"], name="product"),
        helper.make_node("Add", ["bias", "b"], ["c"]),
        helper.make_node("Transpose", ["c"], ["y"], perm=[0, 2, 1]),
    ]
    ends = [value("x", shape=(1, 8, "n"))], [value("y", shape=None)]
    known = facts(model_of(nodes, *ends, initializers=list(weights.values())))
    assert [each[0] for each in rules.BY_CODE["matmul-between-transposes"].check(known)] == ["product"]
    nodes[2] = helper.make_node("Add", ["b", "a"], ["c"])
    known = facts(model_of(nodes, *ends, initializers=[weights["w"]]))
    assert list(rules.BY_CODE["matmul-between-transposes"].check(known)) == []


def test_a_question_mark_names_no_dimension() -> None:
    """Paddle's exporter writes it for every size that it does not know; two of them need not be equal."""
    known = facts(_shaped("?", "?"))
    assert dynamic_dimensions(known.graph.model.inputs) == ("x[0]", "x[1]")
    assert len(list(rules.BY_CODE["unnamed-dimension"].check(known))) == 2


def test_what_the_header_says_is_not_told_twice() -> None:
    """The runtime refuses an opset of tomorrow; the rule for opsets says how to mend that."""
    known = replace(_opset(23), run=rules.RunFacts(load_failure="opset 23 is under development"))
    assert list(rules.BY_CODE["does-not-load"].check(known)) == []


@pytest.mark.parametrize(
    "words",
    [
        "/home/ada/train.py",
        r"C:\Users\ada\net.py",
        "/Users/ada/model",
        "traced at model.py:31",
        "layers/net.py(12): forward",
    ],
)
def test_paths_are_found(words: str) -> None:
    (found,) = shown("source-path", lambda: _documented(f"made by {words}"))
    assert found[0] == "doc_string of node '/conv/Relu'"
    assert found[1].startswith(f"the {found[0]} shows '")


@pytest.mark.parametrize(
    "name",
    [
        "/data/conv/Relu",
        "/content/content.0/Relu_1",
        "/conv/Relu",
        "/encoder/layers.0/Add",
        "a/b:0",
        "and/or",
        "https://onnx.ai/docs",
    ],
)
def test_names_of_modules_are_no_paths(name: str) -> None:
    assert shown("source-path", lambda: _documented("", name)) == []


def test_coupled_dimensions_are_not_called_baked_in() -> None:
    both = [((("a", size), ("b", size)), "") for size in (1, 2, 3, 8)]
    alone = [((("a", size), ("b", 1)), "differs") for size in (2, 3, 8)]
    run = rules.RunFacts(trials=(*both, *alone))
    model = model_of([helper.make_node("Add", ["x", "z"], ["y"])], [value("x", shape=("a",)), value("z", shape=("b",))])
    known = facts(model, run=run)
    assert [rule.code for rule in rules.RULES if rule.code.startswith("dynamic") and list(rule.check(known))] == []


def test_code_that_another_model_needs_is_not_saved() -> None:
    known = facts(relu(), library=(("Relu", 31_744),))
    rule = rules.BY_CODE["costly-operator"]
    assert [each[1] for each in rule.check(known)] == ["removing Relu (1 node) saves 31 KiB of the library"]
    assert list(rule.check(replace(known, elsewhere=frozenset({RELU})))) == []


def test_a_kernel_that_is_missing_is_reported_with_types() -> None:
    (found,) = shown("no-kernel", lambda: _kernels(missing=(RELU, "")))
    assert found[1] == "no CPU kernel of ai.onnx Relu for float32"


def test_what_was_not_looked_at_shows_nothing() -> None:
    """Without a run, kernels, providers and a build, their rules are silent."""
    assert [rule.code for rule in rules.RULES if list(rule.check(facts(relu())))] == []


@pytest.mark.parametrize("words", ["Unsupported tensor data type: 22", "SystemError : 2"])
def test_words_that_tell_a_cause_of_converted_models_alone_are_not_lost(words: str) -> None:
    """A model that is refused as it is has a finding, whatever the words would mean after conversion."""
    assert shown("does-not-load", lambda: facts(relu(), run=rules.RunFacts(load_failure=words)))
    assert shown("does-not-run", lambda: _ran(((), words)))


def test_a_cause_is_found_once_however_many_sizes_met_it() -> None:
    words = REFUSALS["upsample-shrinks"]
    assert len(shown("upsample-shrinks", lambda: _ran(((("n", 1),), words), ((("n", 2),), words)))) == 1
