"""Small models of each operator that looks something up, and mutants of them with another table."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import onnx
import onnx.parser
from onnx import TensorProto, helper, numpy_helper

from onnx_samples import model_of, value

ML: Final = "ai.onnx.ml"
FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A model of one operator, or of several that follow each other."""

    name: str
    model: onnx.ModelProto


EQUIVALENT: Final[tuple[tuple[str, str, str], ...]] = (
    ("CategoryMapper, strings", r"default_string", "the default of the other direction"),
    ("CategoryMapper, int64s", r"default_int64", "the default of the other direction"),
    ("LabelEncoder, behind StringConcat", r"(keys_strings|values_int64s): \[2\] to", "no text begins and ends so"),
    ("OneHotEncoder, which refuses", r"zeros", "what it refuses ends a run, and no case may do that"),
    ("StringNormalizer", r"stopwords: .* swapped", "stopwords are a set"),
    ("TfIdfVectorizer", r"is_case_sensitive", "it is about stopwords, of which there are none"),
    ("LinearClassifier", r"multi_class", "ONNX Runtime does not read it"),
    ("SVM", r"kernel_params: \[(1|2)\]", "RBF has no such parameter"),
    ("TreeEnsemble", r"nodes_(featureids|values|missing_value_tracks_true): \[[3-6]\] to", "a leaf compares nothing"),
    ("TreeEnsembleRegressor, behind a Scaler", r"(offset|scale): \[1\] to", "no tree reads the feature"),
    ("TreeEnsemble", r"aggregate_function", "the sum of one tree is its mean"),
    ("TreeEnsemble", r"membership_values: (\[2\]|.* swapped)", "the end of a set, and the order in it"),
    ("TreeEnsemble", r"nodes_splits: \[1\]", "a node that asks for members has no threshold"),
)
"""Mutants that no input tells from the model: how the subject's name begins, what is changed, and why."""


def mutants(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Yield a model's mutants with what each changes: another value, swapped neighbours, another choice."""
    for at, node in enumerate(model.graph.node):
        for number, attribute in enumerate(node.attribute):
            for what, changed in _changed(attribute.name, helper.get_attribute_value(attribute)):
                copy = onnx.ModelProto.FromString(model.SerializeToString())
                made = helper.make_attribute(attribute.name, changed)
                copy.graph.node[at].attribute[number].CopyFrom(made)
                yield f"{attribute.name}: {what}", copy
    for number, tensor in enumerate(model.graph.initializer):
        if tensor.name in STRUCTURE:
            continue
        array = numpy_helper.to_array(tensor)
        for what, changed in _changed_list(tensor.name, array.reshape(-1).tolist()):
            copy = onnx.ModelProto.FromString(model.SerializeToString())
            other = numpy_helper.from_array(np.array(changed, array.dtype).reshape(array.shape), tensor.name)
            copy.graph.initializer[number].CopyFrom(other)
            yield f"{tensor.name}: {what}", copy


CHOICES: Final = {
    "case_change_action": (b"LOWER", b"UPPER", b"NONE"),
    "mode": (b"TF", b"IDF", b"TFIDF"),
    "norm": (b"MAX", b"L1", b"L2"),
    "post_transform": (b"NONE", b"SOFTMAX", b"LOGISTIC"),
    "aggregate_function": (b"SUM", b"AVERAGE", b"MIN", b"MAX"),
    "kernel_type": (b"LINEAR", b"RBF", b"SIGMOID"),
}
MODES: Final = {
    b"BRANCH_LEQ": b"BRANCH_GT",
    b"BRANCH_LT": b"BRANCH_LEQ",
    b"BRANCH_GTE": b"BRANCH_GT",
    b"BRANCH_GT": b"BRANCH_GTE",
    b"BRANCH_EQ": b"BRANCH_NEQ",
    b"BRANCH_NEQ": b"BRANCH_EQ",
}
STRUCTURE: Final = frozenset({
    "nodes_treeids", "nodes_nodeids", "class_treeids", "class_nodeids", "target_treeids", "target_nodeids", "axis",
    "tree_roots", "n_targets", "nodes_hitrates", "ngram_counts", "min_gram_length", "max_gram_length", "locale", "to",
    "keepdims", "vectors_per_class", "perm", "max_skip_count", "nodes_trueleafs", "nodes_falseleafs",
    "nodes_falsenodeids", "nodes_truenodeids", "leaf_targetids", "sorted", "separators", "mark", "pad_value",
    "mincharnum", "directions", "delimiter", "least", "most", "divisor",
})  # fmt: skip
"""What shapes a model rather than being a table of it."""


def _changed(name: str, given: Any) -> Iterator[tuple[str, Any]]:
    if name in STRUCTURE:
        return
    if name in CHOICES and isinstance(given, bytes):
        yield from ((f"{given.decode()} to {other.decode()}", other) for other in CHOICES[name] if other != given)
    elif name == "nodes_modes" and isinstance(given, list):
        for at, mode in enumerate(given):
            if mode in MODES:
                yield f"{mode.decode()} to {MODES[mode].decode()}", [*given[:at], MODES[mode], *given[at + 1 :]]
    elif isinstance(given, onnx.TensorProto):
        array = numpy_helper.to_array(given)
        for what, changed in _changed_list(name, array.reshape(-1).tolist()):
            yield what, numpy_helper.from_array(np.array(changed, array.dtype).reshape(array.shape), given.name)
    elif isinstance(given, list):
        yield from _changed_list(name, given)
    else:
        yield f"{given!r} to {_other(name, given)!r}", _other(name, given)


def _changed_list(name: str, given: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    for at, each in enumerate(given):
        yield f"[{at}] to {_other(name, each)!r}", [*given[:at], _other(name, each), *given[at + 1 :]]
    for at, (one, other) in enumerate(pairwise(given)):
        if one != other:
            yield f"[{at}] and [{at + 1}] swapped", [*given[:at], other, one, *given[at + 2 :]]


def _other(name: str, given: Any) -> Any:
    """Return another value: a little less for floats, so that thresholds move within their own order."""
    if isinstance(given, bytes | str):
        return "mutant" if isinstance(given, str) else b"mutant"
    if isinstance(given, bool):
        return not given
    if isinstance(given, float):
        return 5.0 if np.isnan(given) else given * 0.95 if given else 0.05
    if name in {"nodes_missing_value_tracks_true", "zeros", "is_case_sensitive"}:
        return 1 - given
    return (
        given + 1000
        if name.startswith(("keys", "cats", "pool", "classlabels", "default", "values"))
        else given + 1
        if given < 1
        else given - 1
    )


WORDS: Final = ["berlin", "lyon", "porto", "riga"]
TYPES: Final[Mapping[str, Any]] = {"strings": WORDS, "int64s": [7, -2, 300, 41], "floats": [0.5, 12.0, -3.0, 7.5]}
DEFAULTS: Final = {
    "strings": ("default_string", "unknown"),
    "int64s": ("default_int64", -9),
    "floats": ("default_float", -9.5),
}


def ml(operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(operator, inputs, outputs, domain=ML, **attributes)


def built(
    nodes: onnx.NodeProto | Sequence[onnx.NodeProto],
    inputs: str | Sequence[onnx.ValueInfoProto],
    outputs: str | Sequence[onnx.ValueInfoProto] = "float[] y",
    *,
    tables: Sequence[onnx.TensorProto] = (),
    opset: int = 3,
    onnx_opset: int = 17,
) -> onnx.ModelProto:
    """Return a model; its inputs and outputs may be in onnx's text format."""
    nodes = [nodes] if isinstance(nodes, onnx.NodeProto) else nodes
    opsets = (("", onnx_opset), (ML, opset), ("com.microsoft", 1))
    read = (onnx.parser.parse_graph(f"g ({each}) => () {{}}").input if isinstance(each, str) else each
            for each in (inputs, outputs))  # fmt: skip
    return model_of(nodes, *read, opsets=opsets, initializers=tables)


def subject(name: str, nodes: onnx.NodeProto | Sequence[onnx.NodeProto], *ends: Any, **options: Any) -> Subject:
    return Subject(name=name, model=built(nodes, *ends, **options))


def table(name: str, array: Any, kind: Any = np.float32) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(array, kind), name)


ONNX_TYPES: Final = {"strings": "string", "int64s": "int64", "floats": "float"}


def encoders() -> Iterator[Subject]:
    """Yield a LabelEncoder of each key and value type, those of tensors too, and of inputs of one element."""
    for keys, known in TYPES.items():
        for values, found in TYPES.items():
            name, default = DEFAULTS[values]
            given = {f"keys_{keys}": known[:3], f"values_{values}": found[1:], name: default}
            ends = f"{ONNX_TYPES[keys]}[n, 1] x", f"{ONNX_TYPES[values]}[] y"
            yield subject(f"LabelEncoder, {keys} to {values}", ml("LabelEncoder", ["x"], ["y"], **given), *ends)
    of_values: Any
    for keys, of_values, ends in (
        ("strings", np.int16, ("string[n] x", "int16[] y")),
        ("floats", np.float64, ("double[n] x", "double[] y")),
    ):
        array: Any = np.array(TYPES[keys][:3], None if keys == "floats" else object)
        tensors: dict[str, Any] = {
            "keys_tensor": numpy_helper.from_array(array, "k"),
            "values_tensor": table("v", [3, 5, 8], of_values),
            "default_tensor": table("d", [-1], of_values),
        }
        node = ml("LabelEncoder", ["x"], ["y"], **tensors)
        yield subject(f"LabelEncoder, tensor of {keys}", node, *ends, opset=4)
    one = {"keys_strings": WORDS[:3], "values_strings": ["de", "fr", "pt"], "default_string": "unknown"}
    yield subject("LabelEncoder, of one element", ml("LabelEncoder", ["x"], ["y"], **one), "string[1] x", "string[] y")


def categories() -> Iterator[Subject]:
    given = {"cats_strings": WORDS, "cats_int64s": [4, 9, 1, 250], "default_int64": -9, "default_string": "none"}
    node = ml("CategoryMapper", ["x"], ["y"], **given)
    yield subject("CategoryMapper, strings to int64s", node, "string[n, 1] x", "int64[] y")
    yield subject("CategoryMapper, int64s to strings", node, "int64[n, 1] x", "string[] y")
    for label, kind, name, cats in (
        ("strings", "string", "cats_strings", WORDS),
        ("int64s", "int64", "cats_int64s", [4, 9, 1]),
        ("int64s of floats", "float", "cats_int64s", [4, 9, 1]),
    ):
        node = ml("OneHotEncoder", ["x"], ["y"], zeros=1, **{name: cats})
        yield subject(f"OneHotEncoder, {label}", node, f"{kind}[n, 1] x")
    node = ml("OneHotEncoder", ["x"], ["y"], zeros=0, cats_strings=WORDS)
    yield subject("OneHotEncoder, which refuses others", node, "string[n, 1] x")


def normalized(source: str, result: str, action: str, *, exact: bool, **more: Any) -> onnx.NodeProto:
    given: dict[str, Any] = {"case_change_action": action, "is_case_sensitive": int(exact), "locale": "C", **more}
    return helper.make_node("StringNormalizer", [source], [result], **given)


def texts() -> Iterator[Subject]:
    for action in ("LOWER", "NONE"):
        node = normalized("x", "y", action, exact=True, stopwords=WORDS[:2])
        yield subject(f"StringNormalizer, {action}", node, "string[n] x", "string[] y")
    grams: dict[str, Any] = {
        "mode": "TFIDF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0, "ngram_counts": [0, 3],
        "ngram_indexes": [0, 1, 2, 3, 4], "weights": [1.5, 0.5, 2.0, 3.0, 0.25],
    }  # fmt: skip
    words = ["new", "york", "city", "new", "york", "york", "city"]
    node = helper.make_node("TfIdfVectorizer", ["x"], ["y"], pool_strings=words, **grams)
    yield subject("TfIdfVectorizer, pool_strings", node, "string[n, words] x")
    node = helper.make_node("TfIdfVectorizer", ["x"], ["y"], pool_int64s=[5, 6, 70, 5, 6, 6, 70], **grams)
    yield subject("TfIdfVectorizer, pool_int64s", node, "int64[n, words] x")
    splitting: dict[str, Any] = {"mark": 0, "mincharnum": 1, "pad_value": "#", "separators": [" "]}
    nodes = [
        normalized("x", "a", "LOWER", exact=False),
        helper.make_node("Tokenizer", ["a"], ["b"], domain="com.microsoft", **splitting),
        helper.make_node("TfIdfVectorizer", ["b"], ["y"], pool_strings=words, **grams),
    ]
    yield subject("TfIdfVectorizer, of a Tokenizer's words", nodes, "string[1] x")


def numbers() -> Iterator[Subject]:
    x = "float[n, 3] x"
    yield subject("Scaler", ml("Scaler", ["x"], ["y"], offset=[40.0, 52_000.0, -0.01], scale=[0.1, 2e-5, 300.0]), x)
    for norm in ("MAX", "L1", "L2"):
        yield subject(f"Normalizer, {norm}", ml("Normalizer", ["x"], ["y"], norm=norm), x)
    for missing in (float("nan"), -999.0):
        node = ml("Imputer", ["x"], ["y"], imputed_value_floats=[1.0, 2.5, -3.0], replaced_value_float=missing)
        yield subject(f"Imputer, of {missing:g}", node, x)
    node = ml("Imputer", ["x"], ["y"], imputed_value_int64s=[4, 5, 6], replaced_value_int64=-1)
    yield subject("Imputer, of int64", node, "int64[n, 3] x", "int64[] y")
    for threshold in (0.5, 1200.0):
        yield subject(f"Binarizer, {threshold:g}", ml("Binarizer", ["x"], ["y"], threshold=threshold), x)
    node = ml("FeatureVectorizer", ["x", "z"], ["y"], inputdimensions=[3, 2])
    yield subject("FeatureVectorizer", node, f"{x}, float[n, 2] z")
    node = ml("ArrayFeatureExtractor", ["x", "columns"], ["y"])
    tables = [table("columns", [2, 0], np.int64)]
    yield subject("ArrayFeatureExtractor, of an input", node, x, tables=tables)
    tables = [table("table", [np.arange(6) ** 2.0])]
    node = ml("ArrayFeatureExtractor", ["table", "x"], ["y"])
    yield subject("ArrayFeatureExtractor, of a table", node, "int64[n] x", tables=tables)


def computed() -> Iterator[Subject]:
    """Yield tables whose index the model computes, of inputs with and without room."""
    random = np.random.default_rng(0)
    rows = table("table", np.cos(np.arange(12)))
    drawn = random.standard_normal((4, 12))
    directions = table("directions", drawn / np.linalg.norm(drawn, axis=0))
    nodes = [
        helper.make_node("MatMul", ["x", "directions"], ["scores"]),
        helper.make_node("ArgMax", ["scores"], ["best"], axis=-1, keepdims=0),
        helper.make_node("Gather", ["table", "best"], ["y"]),
    ]
    for batch in ("n", 1):
        yield Subject(
            name=f"Gather, of the best of 12{'' if batch == 'n' else ', one at a time'}",
            model=built(nodes, [value("x", shape=(batch, 4))], tables=[rows, directions]),
        )
    large = [table("table", np.cos(np.arange(40))), table("divisor", 40, np.int64)]
    nodes = [helper.make_node("Mod", ["x", "divisor"], ["row"]), helper.make_node("Gather", ["table", "row"], ["y"])]
    for shape in (("n",), (4,)):
        yield Subject(
            name=f"Gather, of the remainder by 40{'' if shape == ('n',) else ', four at a time'}",
            model=built(nodes, [value("x", INT64, shape)], tables=large),
        )
    nodes = [
        helper.make_node("Floor", ["x"], ["whole"]),
        helper.make_node("Cast", ["whole"], ["a"], to=INT64),
        helper.make_node("Clip", ["a", "least", "most"], ["row"]),
        helper.make_node("Gather", ["table", "row"], ["y"]),
    ]
    bounds = [table("least", 0, np.int64), table("most", 11, np.int64)]
    yield Subject(
        name="Gather, of what is rounded", model=built(nodes, [value("x", shape=("n",))], tables=[rows, *bounds])
    )


LABELS: Final = {"classlabels_strings": ["red", "green", "blue"]}


def linear() -> Iterator[Subject]:
    """Yield linear models and support vector machines, of features whose scales differ."""
    x = "float[n, 3] x"
    raw = [0.05, -2e-5, 30.0, -0.02, 1e-5, 10.0, 0.01, 3e-5, -25.0]
    classes: dict[str, Any] = {"coefficients": raw, "intercepts": [-2.0, 0.5, 1.0], "multi_class": 0, **LABELS}
    for post in ("SOFTMAX", "LOGISTIC", "NONE"):
        node = ml("LinearClassifier", ["x"], ["label", "y"], post_transform=post, **classes)
        yield subject(f"LinearClassifier, {post}", node, x, "string[] label, float[] y")
    two: dict[str, Any] = {"coefficients": [*(-each for each in raw[:3]), *raw[:3]], "intercepts": [2.0, -2.0]}
    nodes = [
        ml("LinearClassifier", ["x"], ["label", "p"], post_transform="LOGISTIC", classlabels_ints=[0, 1], **two),
        ml("Normalizer", ["p"], ["q"], norm="L1"),
        ml("ZipMap", ["q"], ["y"], classlabels_int64s=[0, 1]),
    ]
    mapping = helper.make_sequence_type_proto(
        helper.make_map_type_proto(INT64, helper.make_tensor_type_proto(FLOAT, []))
    )
    zipped = [value("label", INT64, None), onnx.ValueInfoProto(name="y", type=mapping)]
    yield subject("LinearClassifier, Normalizer and ZipMap", nodes, x, zipped)
    node = ml("LinearRegressor", ["x"], ["y"], coefficients=raw[:6], intercepts=[300.0, -4.0], targets=2)
    yield subject("LinearRegressor", node, x)
    vectors = [30.0, 50_000.0, 0.01, 45.0, 20_000.0, -0.02, 60.0, 70_000.0, 0.03, 20.0, 90_000.0, 0.0]
    scaled = [(each - [40.0, 5e4, 0.0][at % 3]) / [20.0, 3e4, 0.02][at % 3] for at, each in enumerate(vectors)]
    scaler = ml("Scaler", ["x"], ["z"], offset=[40.0, 5e4, 0.0], scale=[1 / 20.0, 1 / 3e4, 1 / 0.02])
    kernel: dict[str, Any] = {"kernel_type": "RBF", "kernel_params": [0.3, 0.0, 3.0], "support_vectors": scaled}
    node = ml("SVMRegressor", ["z"], ["y"], n_supports=4, coefficients=[1.0, -0.5, 0.75, -1.25], rho=[0.4], **kernel)
    yield subject("SVMRegressor", [scaler, node], x)
    kernel |= {"vectors_per_class": [2, 2], "coefficients": [1.0, 0.5, -0.75, -0.75], "rho": [0.1]}
    kernel |= {"prob_a": [-1.5], "prob_b": [0.2], "classlabels_ints": [3, 8]}
    node = ml("SVMClassifier", ["z"], ["label", "y"], **kernel)
    yield subject("SVMClassifier", [scaler, node], x, "int64[] label, float[] y")


def tree(prefix: str, modes: Sequence[str] = ("BRANCH_LEQ", "BRANCH_LEQ", "BRANCH_LEQ")) -> dict[str, Any]:
    """Return the nodes of a tree: three comparisons of two features, and four leaves."""
    return {
        "nodes_treeids": [0] * 7, "nodes_nodeids": [*range(7)], "nodes_featureids": [0, 2, 2, 0, 0, 0, 0],
        "nodes_values": [37.5, 52_000.0, 81_000.0, 0.0, 0.0, 0.0, 0.0], "nodes_modes": [*modes, *["LEAF"] * 4],
        "nodes_truenodeids": [1, 3, 5, 0, 0, 0, 0], "nodes_falsenodeids": [2, 4, 6, 0, 0, 0, 0],
        "nodes_missing_value_tracks_true": [1, 0, 1, 0, 0, 0, 0],
        f"{prefix}_treeids": [0] * 4, f"{prefix}_nodeids": [3, 4, 5, 6],
        f"{prefix}_ids": [0, 1, 1 + (prefix == "class"), 1],
        f"{prefix}_weights": [0.9, 0.7, 0.6, 0.8],
    }  # fmt: skip


def trees() -> Iterator[Subject]:
    """Yield ensembles of trees, alone and behind a Scaler and a Concat."""
    x = "float[n, 3] x"
    for mode in ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"):
        own = tree("target", [mode] * 3)
        node = ml("TreeEnsembleRegressor", ["x"], ["y"], n_targets=2, base_values=[0.25, -0.5], **own)
        yield subject(f"TreeEnsembleRegressor, {mode}", node, x)
    node = ml("TreeEnsembleClassifier", ["x"], ["label", "y"], post_transform="NONE", **tree("class"), **LABELS)
    yield subject("TreeEnsembleClassifier", node, x, "string[] label, float[] y")
    behind = ml("TreeEnsembleRegressor", ["z"], ["y"], n_targets=2, **tree("target"))
    scaler = ml("Scaler", ["x"], ["z"], offset=[-35.0, 0.0, -48_000.0], scale=[0.5, 1.0, 0.7])
    yield subject("TreeEnsembleRegressor, behind a Scaler", [scaler, behind], x)
    joined = helper.make_node("Concat", ["a", "x"], ["z"], axis=1)
    yield subject("TreeEnsembleRegressor, behind a Concat", [joined, behind], "float[?, 1] a, float[?, 2] x")
    given = {
        "nodes_splits": table("s", [37.5, 3.0, 81_000.0]), "nodes_modes": table("m", [0, 6, 0], np.uint8),
        "nodes_featureids": [0, 1, 2], "nodes_truenodeids": [1, 0, 2], "nodes_falsenodeids": [2, 1, 3],
        "nodes_trueleafs": [0, 1, 1], "nodes_falseleafs": [0, 1, 1], "leaf_targetids": [0, 1, 1, 0], "tree_roots": [0],
        "leaf_weights": table("w", [0.9, 0.7, 0.6, 0.8]), "membership_values": table("e", [3.0, 11.0, float("nan")]),
        "n_targets": 2, "aggregate_function": 1, "post_transform": 0,
    }  # fmt: skip
    yield subject("TreeEnsemble", ml("TreeEnsemble", ["x"], ["y"], **given), x, opset=5)


def tables() -> Iterator[Subject]:
    """Yield what takes rows of a constant, and what compares with one."""
    ids = "int64[batch, sequence] x"
    rows = [table("table", np.cos(np.arange(24)).reshape(12, 2))]
    gather = helper.make_node("Gather", ["table", "x"], ["y"])
    yield subject("Gather", gather, ids, tables=rows)
    yield subject("Gather, of 90 rows", gather, ids, tables=[table("table", np.cos(np.arange(90)).reshape(90, 1))])
    node = helper.make_node("Gather", ["table", "token_type_ids"], ["y"])
    few = [table("table", [[1.0, 2.0], [3.0, 4.0]])]
    yield subject("Gather, of segments", node, "int64[batch, sequence] token_type_ids", tables=few)
    node = helper.make_node("GatherElements", ["table", "x"], ["y"], axis=0)
    yield subject("GatherElements", node, "int64[n, 2] x", tables=rows)
    node = helper.make_node("GatherND", ["table", "x"], ["y"])
    for sides in ((3, 3), (4, 5)):
        cells = [table("table", np.cos(np.arange(np.prod(sides))).reshape(sides))]
        yield subject(f"GatherND, {sides[0]} x {sides[1]}", node, "int64[n, 2] x", tables=cells)
    node = helper.make_node("OneHot", ["x", "depth", "pair"], ["y"])
    hot = [table("depth", 5, np.int64), table("pair", [0.25, 1.5])]
    yield subject("OneHot", node, "int64[n] x", tables=hot)
    node, words = helper.make_node("Equal", ["x", "words"], ["y"]), table("words", WORDS, object)
    yield subject("Equal, strings", node, "string[n, 1] x", "bool[] y", tables=[words], onnx_opset=19)
    node, codes = helper.make_node("Equal", ["x", "codes"], ["y"]), table("codes", [17, 4000, -5], np.int64)
    yield subject("Equal, int64s", node, "int64[n, 1] x", "bool[] y", tables=[codes])


def compared() -> Iterator[Subject]:
    """Yield what is compared with numbers far from those that are drawn, and texts that a pattern matches."""
    for operator, kind, number in (
        ("Less", "float", 123_456.0), ("GreaterOrEqual", "int64", -70), ("Equal", "float", 31.5),
    ):  # fmt: skip
        limits = [table("limit", [number], np.float32 if kind == "float" else np.int64)]
        node = helper.make_node(operator, ["x", "limit"], ["y"])
        yield subject(f"{operator}, {number:g}", node, f"{kind}[n] x", "bool[] y", tables=limits)
    node = helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=r"[a-f]{2}-\d+|none")
    yield subject("RegexFullMatch", node, "string[n] x", "bool[] y", onnx_opset=20)


def chains() -> Iterator[Subject]:
    """Yield lookups that an input reaches through other operators."""
    joined = {"keys_strings": ["in berlin!", "in lyon!", "porto"], "values_int64s": [3, 1, 2], "default_int64": 9}
    nodes = [
        helper.make_node("StringConcat", ["front", "x"], ["a"]),
        helper.make_node("StringConcat", ["a", "end"], ["b"]),
        ml("LabelEncoder", ["b"], ["y"], **joined),
    ]
    given = {"tables": [table("front", ["in "], object), table("end", ["!"], object)], "onnx_opset": 20}
    yield subject("LabelEncoder, behind StringConcat", nodes, "string[n] x", "int64[] y", **given)
    keys = {"keys_strings": WORDS, "values_int64s": [3, 1, 2, 0], "default_int64": 9}
    nodes = [
        helper.make_node("Reshape", ["x", "flat"], ["a"]),
        helper.make_node("Concat", ["a", "more"], ["b"], axis=0),
        ml("LabelEncoder", ["b"], ["y"], **keys),
    ]
    constants = [table("more", ["lyon"], object), table("flat", [-1], np.int64)]
    name = "LabelEncoder, behind Reshape and Concat"
    yield subject(name, nodes, "string[n, 2] x", "int64[] y", tables=constants)
    nodes = [
        helper.make_node("Cast", ["x"], ["a"], to=STRING),
        ml("LabelEncoder", ["a"], ["y"], **keys | {"keys_strings": ["3", "-70", "1000", "8"]}),
    ]
    yield subject("LabelEncoder, behind Cast of integers", nodes, "int64[n] x", "int64[] y")
    nodes = [
        normalized("x", "a", "LOWER", exact=False, stopwords=["the"]),
        ml("LabelEncoder", ["a"], ["y"], **keys),
    ]
    yield subject("LabelEncoder, behind StringNormalizer", nodes, "string[n] x", "int64[] y")
    looked_up = helper.make_node("Gather", ["table", "a"], ["y"])
    five = [table("table", np.arange(5) ** 1.5)]
    nodes = [ml("LabelEncoder", ["x"], ["a"], **keys | {"default_int64": 4}), looked_up]
    yield subject("LabelEncoder, then Gather", nodes, "string[n, 1] x", tables=five)
    nodes = [helper.make_node("Cast", ["x"], ["a"], to=INT64), looked_up]
    yield subject("Gather, behind Cast of strings", nodes, "string[n] x", tables=five)
    nodes = [
        ml("ArrayFeatureExtractor", ["x", "first"], ["a"]),
        ml("ArrayFeatureExtractor", ["x", "second"], ["b"]),
        ml("OneHotEncoder", ["a"], ["c"], cats_strings=WORDS),
        ml("OneHotEncoder", ["b"], ["d"], cats_strings=["cat", "dog"]),
        helper.make_node("Concat", ["c", "d"], ["y"], axis=-1),
    ]
    places = [table("first", [0], np.int64), table("second", [1], np.int64)]
    yield subject("OneHotEncoder, of each column", nodes, "string[n, 2] x", tables=places)


FAMILIES: Final[Sequence[Callable[[], Iterator[Subject]]]] = (
    encoders,
    categories,
    texts,
    numbers,
    linear,
    trees,
    tables,
    compared,
    chains,
    computed,
)
SUBJECTS: Final = tuple(subject for family in FAMILIES for subject in family())
