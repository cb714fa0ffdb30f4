"""Values that a model tells apart: keys of its lookups, thresholds of its trees, offsets and scales of its features."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import ceil, floor, isfinite, isnan, log
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from ortrim.buildspec.problems import Scalar
from ortrim.models.onnx_files import array_of

if TYPE_CHECKING:
    from ortrim.parity.cases.graph import Graph

Vector = NDArray[np.float64]
Found = Iterator[tuple[int | None, Iterable[Scalar]]]
"""Values that a node tells apart, at a position of the last axis of its input or, for None, at any."""

KEYS: Final = (
    "keys_strings", "keys_int64s", "keys_floats", "keys_tensor", "classes_strings", "cats_strings", "cats_int64s",
)  # fmt: skip
KEPT: Final = frozenset({"Cast", "CastLike", "Dropout", "Identity", "Imputer"})
"""Operators after which a value is the same, at the same place."""
MOVED: Final = frozenset({
    "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Pad", "Reshape", "Slice", "Split", "Squeeze",
    "StringNormalizer", "StringSplit", "Tile", "Tokenizer", "Transpose", "Unsqueeze", "Where",
})  # fmt: skip
"""Operators after which it is the same, at another place."""
JOINING: Final = frozenset({"Concat", "FeatureVectorizer"})
COMPARISONS: Final = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
AFFINE: Final = frozenset({"Add", "Sub", "Mul", "Div", "Scaler"})
NEAR: Final = 1e-3
"""How far from a threshold values lie, as a share of it."""
SPREAD: Final = (-1.5, -0.5, 0.5, 1.5)
"""Values of a feature about its middle, in units of its scale."""
MOST_VECTORS: Final = 6
UNKNOWN: Final = ("Elsewhere", "Nowhere", "Something else")


@dataclass(frozen=True, kw_only=True)
class View:
    """How a value holds an input: element `first + i` of its last axis is element `i`, or `picked[i]`, of the input's.

    It is multiplied by `scale`, then `shift` is added: numbers, or one of each for every element. Without `placed` its
    elements may be anywhere.
    """

    first: int = 0
    picked: tuple[int, ...] | None = None
    scale: Vector = field(default_factory=lambda: np.ones(1))
    shift: Vector = field(default_factory=lambda: np.zeros(1))
    placed: bool = True
    separator: str | None = None
    """What tokens are split by on the way."""
    folded: bool = False
    """Whether the case of letters is changed on the way."""
    joined: tuple[str, str] = ("", "")
    """What is put in front of a text on the way, and behind it."""

    @property
    def exact(self) -> bool:
        """Whether values are the input's own, without rounding."""
        return bool((self.scale == 1).all() and (self.shift == 0).all())

    def column(self, position: int) -> int | None:
        """Return which element of the input stands at a position; None for one of another input."""
        at = position - self.first
        if self.picked is None:
            return at if at >= 0 else None
        return self.picked[at] if 0 <= at < len(self.picked) else None

    def mapped(self, scale: Any, shift: Any) -> "View | None":
        """Return the view after a product and a sum with constants; None where that cannot be told by element."""
        by, plus = (np.asarray(each, np.float64).reshape(-1) for each in (scale, shift))
        by, plus = (each if each.size == 1 else each[self.first :] for each in (by, plus))
        size = min((each.size for each in (by, plus, self.scale, self.shift) if each.size != 1), default=1)
        if not size or (size > 1 and not self.placed):
            return None
        by, plus, own, moved = (each if each.size == 1 else each[:size] for each in (by, plus, self.scale, self.shift))
        return replace(self, scale=own * by, shift=moved * by + plus)

    def pick(self, positions: Sequence[int]) -> "View | None":
        """Return the view of some elements alone; None if one of them is not this input's."""
        columns = [self.column(position) for position in positions]
        if None in columns or not self.placed:
            return None if None in columns else self.moved()
        places = np.asarray(positions) - self.first
        scale, shift = (each if each.size == 1 else each[places] for each in (self.scale, self.shift))
        return replace(
            self, first=0, picked=tuple(each for each in columns if each is not None), scale=scale, shift=shift
        )

    def moved(self) -> "View | None":
        """Return the view when elements may be at any place; None if each was changed in another way."""
        return replace(self, placed=False) if self.scale.size == self.shift.size == 1 else None

    def back(self, value: Scalar, position: int | None) -> Scalar | None:
        """Return which value of the input is this one here; None if none is."""
        if isinstance(value, str):
            front, end = self.joined
            fits = value.startswith(front) and value[len(front) :].endswith(end)
            return value[len(front) : len(value) - len(end)] if fits else None
        if self.exact:
            return value
        at = 0 if position is None else position - self.first
        scale, shift = (float(each[at if each.size > 1 else 0]) for each in (self.scale, self.shift))
        return (float(value) - shift) / scale if scale else None


def onward(node: onnx.NodeProto, position: int, view: View, graph: "Graph", *, last: bool) -> View | None:
    """Return the view of a node's output; None if the input's values are no more in it.

    `last` says whether the axis that the node names is the last.
    """
    kind = node.op_type
    if kind in KEPT and position == 0:
        return view
    if kind in AFFINE or kind == "StringConcat":
        return (_affine if kind in AFFINE else _joined)(node, position, view, graph)
    if kind in JOINING:
        widths = [graph.width(name) for name in node.input[:position]]
        placed = last and view.placed and None not in widths
        return replace(view, first=view.first + sum(map(int, filter(None, widths)))) if placed else view.moved()
    if kind == "ArrayFeatureExtractor" or (kind == "Gather" and last):
        indices = graph.constant(node.input[1]) if position == 0 else None
        return None if indices is None else view.pick(indices.reshape(-1).tolist())
    return _moved(node, position, view)


def _moved(node: onnx.NodeProto, position: int, view: View) -> View | None:
    kind = node.op_type
    moved = view.moved() if kind in MOVED and (position == 0 or kind == "Where") else None
    if moved and kind in {"Tokenizer", "StringSplit"}:
        separators = attribute(node, "separators") or [attribute(node, "delimiter") or b""]
        return replace(moved, separator=text(separators[0]) or " ")
    folds = kind == "StringNormalizer" and attribute(node, "case_change_action") in {b"LOWER", b"UPPER"}
    return replace(moved, folded=moved.folded or folds) if moved else None


def _joined(node: onnx.NodeProto, position: int, view: View, graph: "Graph") -> View | None:
    other = graph.constant(node.input[1 - position])
    if other is None or other.size != 1:
        return None
    (front, end), (word,) = view.joined, plain(other.reshape(-1).tolist())
    return replace(view, joined=(f"{word}{front}", end) if position else (front, f"{end}{word}"))


def _affine(node: onnx.NodeProto, position: int, view: View, graph: "Graph") -> View | None:
    if node.op_type == "Scaler":
        offset, scale = (
            np.asarray(attribute(node, name) or [default], np.float64)
            for name, default in (("offset", 0), ("scale", 1))
        )
        return view.mapped(scale, -scale * offset)
    other = graph.constant(node.input[1 - position])
    if other is None or other.dtype == object or other.size not in {1, *other.shape[-1:]}:
        return None
    number = other.astype(np.float64)
    if node.op_type == "Div" and not (position == 0 and number.all()):
        return None
    changes: Mapping[str, tuple[Vector | float, Vector | float]] = {
        "Add": (1.0, number),
        "Sub": (1.0, -number) if position == 0 else (-1.0, number),
        "Mul": (number, 0.0),
        "Div": (1.0 / number, 0.0) if node.op_type == "Div" else (1.0, 0.0),
    }
    return view.mapped(*changes[node.op_type])


def told_apart(node: onnx.NodeProto, position: int, view: View, graph: "Graph") -> Found:
    """Yield the values that a node tells apart in an input of its own."""
    if node.op_type in COMPARISONS and len(node.input) == 2:
        constant = graph.constant(node.input[1 - position])
        if constant is not None and constant.dtype.kind in "OUSiuf":
            yield from _compared(node, constant, view)
    elif node.op_type == "GatherND" and position == 1:
        sizes = (graph.dimensions(node.input[0]) or ())[attribute(node, "batch_dims") or 0 :]
        shared = [(None, range(min(sizes, default=0)))]
        yield from enumerate(map(range, sizes)) if view.placed else shared
    elif position == 0 and node.op_type in READERS:
        yield from READERS[node.op_type](node, view)


def _compared(node: onnx.NodeProto, constant: NDArray[Any], view: View) -> Found:
    """Yield what is equal to constants, and values about those that random ones hardly lie on both sides of."""
    floats, equal = constant.dtype.kind == "f", node.op_type == "Equal"
    if not floats and equal:
        yield None, plain(constant.reshape(-1).tolist())
    elif constant.dtype.kind in "iuf":
        low, high = (-1, 1) if floats else (0, 10)
        for at, number in enumerate(constant.reshape(-1).tolist()):
            place = at if 1 < constant.size == constant.shape[-1] else None
            own = view.back(number, place)
            if isinstance(own, int | float) and isfinite(own) and (equal or not low < own < high):
                step = NEAR * abs(number) or NEAR if floats else 1
                around = [number + max(1.0, abs(number)) * share for share in SPREAD]
                yield place, [*around, number - step, *([number] if view.exact else []), number + step]


PLAINLY: Final = (
    (r"(?<!\\)\.", "a"), (r"\\d", "7"), (r"\\w", "a"), (r"\\s", " "), (r"\[([^\]^])[^\]]*\]", r"\1"), (r"\\(.)", r"\1"),
)  # fmt: skip
"""What stands for the parts of a pattern."""
LONGEST_TEXT: Final = 24


def _matched(node: onnx.NodeProto, _: View) -> Found:
    """Yield texts that a pattern matches, of those that its letters, classes and repetitions suggest."""
    pattern = text(attribute(node, "pattern") or b"") or ""
    found = []
    for choice in (pattern, *pattern.split("|"), *re.sub(r"\((?:\?:)?|\)", "", pattern).split("|")):
        plainly = re.sub(r"\((?:\?:)?([^|()]*)[^()]*\)", r"\1", choice).strip("^$")
        for part, letters in PLAINLY:
            plainly = re.sub(part, letters, plainly)
        plainly = re.sub(r"(.)\{(\d)(?:,\d*)?\}", lambda each: each[1] * int(each[2]), plainly)
        found += [re.sub(r"(.)[+*?]", r"\1", plainly), re.sub(r".[*?]", "", plainly)]
    with suppress(re.error):
        short = (word for word in dict.fromkeys(found) if len(word) <= LONGEST_TEXT)
        yield None, [word for word in short if re.fullmatch(pattern, word)]


def _keys(node: onnx.NodeProto, _: View) -> Found:
    for name in KEYS:
        yield None, plain(attribute(node, name) or ())
    yield None, range(len(attribute(node, "classes_strings") or ()))


def _stopwords(node: onnx.NodeProto, _: View) -> Found:
    words = [str(word) for word in plain(attribute(node, "stopwords") or ())]
    yield None, [*words, *(word.swapcase() for word in words)] or ["Word", "word"]


def _split_at(node: onnx.NodeProto, view: View) -> Found:
    """Yield values at the threshold of a Binarizer, and far from it."""
    threshold = attribute(node, "threshold") or 0.0
    wide = max(1.0, abs(threshold)) / 2
    yield None, [threshold - wide, *_at(threshold, exact=view.exact), threshold + wide]


def plain(values: Any) -> list[Scalar]:
    """Return keys as a buildspec has them: texts that are UTF-8, numbers, and `nan`."""
    if isinstance(values, onnx.TensorProto):
        array = array_of(values)
        values = [] if array is None else array.reshape(-1).tolist()
    found = (text(each) if isinstance(each, bytes) else each for each in values)
    return [
        "nan" if isinstance(each, float) and isnan(each) else each
        for each in found
        if each is not None and not (isinstance(each, float) and not isfinite(each) and not isnan(each))
    ]


def text(word: bytes) -> str | None:
    """Return a text of a model's; None for bytes that are none."""
    try:
        return word.decode()
    except UnicodeDecodeError:
        return None


def _grams(node: onnx.NodeProto, view: View) -> Found:
    """Yield the tokens of n-grams, and, where texts are split on the way, each n-gram as a text."""
    pool = plain(attribute(node, "pool_strings") or attribute(node, "pool_int64s") or ())
    yield None, dict.fromkeys(pool)
    starts = [*(attribute(node, "ngram_counts") or ()), len(pool)]
    if view.separator is not None:
        grams = [[pool[0]] * 2] if pool else []
        for size, (first, after) in enumerate(pairwise(starts), start=1):
            grams += [pool[at : at + size] for at in range(first, after, size)]
        yield None, [view.separator.join(map(str, gram)) for gram in grams]


def _at(threshold: float, *, exact: bool) -> list[Scalar]:
    """Return values about a threshold, and on it unless rounding could take either side."""
    step = NEAR * abs(threshold) or NEAR
    return [threshold - step, *([threshold] if exact else []), threshold + step]


def _thresholds(node: onnx.NodeProto, view: View) -> Found:
    """Yield, for each feature, its thresholds in the trees of a node, and what its nodes have as members."""
    splits = attribute(node, "nodes_splits") or attribute(node, "nodes_values_as_tensor")
    values = array_of(splits) if isinstance(splits, onnx.TensorProto) else attribute(node, "nodes_values") or ()
    features: Any = attribute(node, "nodes_featureids") or ()
    modes = attribute(node, "nodes_modes") or ()
    leaves = [mode == b"LEAF" for mode in modes] if isinstance(modes, list) else [False] * len(features)
    found: dict[int, set[float]] = {}
    for feature, value, leaf in zip(features, () if values is None else values, leaves, strict=False):
        if not leaf and isfinite(value):
            found.setdefault(int(feature), set()).add(float(value))
    members = array_of(given) if isinstance(given := attribute(node, "membership_values"), onnx.TensorProto) else None
    missing = ["nan"] if any(attribute(node, "nodes_missing_value_tracks_true") or ()) else []
    for feature, own in found.items():
        yield feature, [*(each for value in sorted(own) for each in _at(value, exact=view.exact)), *missing]
        yield feature, [] if members is None else plain(members[np.isfinite(members)].tolist())


def _normal(node: onnx.NodeProto, _: View) -> Found:
    """Yield, for each feature, values about the offset, or about what takes the place of a missing one."""
    imputed = attribute(node, "imputed_value_floats") or attribute(node, "imputed_value_int64s")
    middles = imputed or attribute(node, "offset") or (0.0,)
    scales = [1.0 / each for each in attribute(node, "scale") or () if each]
    replaced = (attribute(node, name) for name in ("replaced_value_float", "replaced_value_int64"))
    missing = plain([each for each in replaced if each is not None])
    if imputed and not missing:
        missing = [0]
    for at, middle in enumerate(middles):
        scale = abs(scales[at if len(scales) == len(middles) > 1 else 0]) if scales else 1.0
        yield at if len(middles) > 1 else None, [*missing, *(middle + scale * each for each in SPREAD)]


def _weighed(node: onnx.NodeProto, _: View) -> Found:
    """Yield, for each feature of a linear model or a support vector machine, values at which its scores differ."""
    weights = np.asarray(attribute(node, "coefficients") or (), np.float64)
    vectors = np.asarray(attribute(node, "support_vectors") or (), np.float64)
    if vectors.size:
        count = sum(attribute(node, "vectors_per_class") or ()) or attribute(node, "n_supports") or 1
        columns = vectors.reshape(count, -1).T if vectors.size % count == 0 else np.empty((0, 0))
        for at, column in enumerate(columns):
            yield at, np.quantile(column, np.linspace(0, 1, min(MOST_VECTORS, max(count, 2)))).tolist()
        return
    labels = attribute(node, "classlabels_ints") or attribute(node, "classlabels_strings") or ()
    intercepts = np.asarray(attribute(node, "intercepts") or (), np.float64)
    rows = intercepts.size or len(labels) or attribute(node, "targets") or 1
    if not weights.size or weights.size % rows or not np.isfinite(weights).all():
        return
    matrix = weights.reshape(rows, -1)
    middle = -np.linalg.pinv(matrix) @ (intercepts if intercepts.size else np.zeros(rows))
    steepest = np.abs(matrix).max(axis=0) * matrix.shape[1] ** 0.5
    for at, (each, steep) in enumerate(zip(middle.tolist(), steepest.tolist(), strict=True)):
        yield at, [each + 2 * share / (steep or 1.0) for share in SPREAD]


LOOKUPS: Final[Mapping[str, Callable[[onnx.NodeProto, View], Found]]] = {
    **dict.fromkeys(("LabelEncoder", "CategoryMapper", "OneHotEncoder"), _keys),
    "StringNormalizer": _stopwords,
    "TfIdfVectorizer": _grams,
}
READERS: Final = {
    **LOOKUPS,
    **dict.fromkeys(("TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor"), _thresholds),
    **dict.fromkeys(("LinearClassifier", "LinearRegressor", "SVMClassifier", "SVMRegressor"), _weighed),
    **dict.fromkeys(("Imputer", "Scaler"), _normal),
    "Binarizer": _split_at,
    "RegexFullMatch": _matched,
}


def attribute(node: onnx.NodeProto, name: str) -> Any:
    """Return an attribute's value; None when it is absent."""
    found = next((each for each in node.attribute if each.name == name), None)
    return None if found is None else helper.get_attribute_value(found)


MOST_KEYS: Final = 4096
MOST_CHOICES: Final = 1024
MOST_EACH: Final = 64
"""How many keys all cases draw for an input, and values for its features and one; evenly chosen of more."""
WIDEST: Final = 128
"""The most features of which each gets values of its own."""
ROWS: Final = (64, 512)
"""The least and the most rows in which features meet in many ways."""


@dataclass(kw_only=True)
class Values:
    """What is told apart in one input: at any place, and at each position of its last axis.

    `nodes` are the operators that do, `grams` the length of the longest n-gram; `open` are the positions, None for any,
    at which a value that is unknown makes sense; `closed` is whether a node refuses such ones.
    """

    anywhere: dict[Scalar, None] = field(default_factory=dict)
    columns: dict[int, dict[Scalar, None]] = field(default_factory=dict)
    nodes: dict[str, None] = field(default_factory=dict)
    open: set[int | None] = field(default_factory=set)
    closed: bool = False
    grams: int = 1

    def note(self, node: onnx.NodeProto, position: int, view: View, graph: "Graph") -> None:
        """Add what a node that reads the input tells apart in it."""
        for place, values in told_apart(node, position, view, graph):
            found = [value for each in values if (value := view.back(each, place)) is not None]
            if view.folded:
                found += [each.swapcase() for each in found[:1] if isinstance(each, str)]
            for column in self._columns(place, view) if found else ():
                own = self.anywhere if column is None else self.columns.setdefault(column, {})
                own |= dict.fromkeys(found)
                self.nodes |= {node.op_type: None}
                self.open |= {column} if node.op_type in {*LOOKUPS, "Equal", "RegexFullMatch"} else set()
        if node.op_type == "TfIdfVectorizer" and view.separator is None:
            self.grams = max(self.grams, attribute(node, "max_gram_length") or 1)
        self.closed |= node.op_type == "OneHotEncoder" and attribute(node, "zeros") == 0

    @staticmethod
    def _columns(place: int | None, view: View) -> Sequence[int | None]:
        """Return at which positions of the input a node's own position is; None for any."""
        if not view.placed or (place is None and view.picked is None):
            return (None,)
        if place is None:
            return view.picked or ()
        column = view.column(place)
        return () if column is None else (column,)

    def choices(self, element_type: str, width: int | None) -> tuple[Scalar | tuple[Scalar, ...], ...]:
        """Return what to draw from for an input of a type whose last axis has `width` elements; empty for nothing."""
        if self.columns and width and 1 < width <= WIDEST:
            most = max(4, min(MOST_EACH, MOST_CHOICES // width))
            own = [{**self.columns.get(at, {}), **self.anywhere} for at in range(width)]
            return tuple(
                tuple(self._known(values or (0, 1), element_type, most, is_open={at, None} & self.open != set()))
                for at, values in enumerate(own)
            )
        columns = (own for at, own in self.columns.items() if width is None or at < width)
        known = [*self.anywhere, *(value for own in columns for value in own)]
        most = MOST_CHOICES if self.columns else MOST_KEYS
        return tuple(self._known(known, element_type, most, is_open=bool(self.open)))

    def _known(self, values: Iterable[Scalar], element_type: str, most: int, *, is_open: bool) -> list[Scalar]:
        """Return so many of the values, and one that is unknown if that makes sense."""
        known = list(dict.fromkeys(typed for each in values for typed in _typed(each, element_type)))
        unknown = _typed(_unknown(known), element_type) if known and is_open and not self.closed else []
        return [*_thinned(known, most), *unknown]

    def needed(self, choices: Sequence[Scalar | tuple[Scalar, ...]], width: int) -> int:
        """Return how many elements an input has to have, over all cases, to show what is told apart."""
        counts = sorted(len(each) for each in choices if isinstance(each, tuple))
        if counts:
            least, most = ROWS
            return width * min(most, max(least, 4 * counts[-1] * counts[-2]))
        # One column alone may be read, by which each value is to be drawn there.
        together = round(len(choices) * (width * (log(len(choices)) + 4) if width > 1 else 1))
        return min(MOST_KEYS + 1, 4 * len(choices) ** self.grams if self.grams > 1 else together)


def _typed(value: Scalar, element_type: str) -> list[Scalar]:
    """Return a value as an input of a type has it: whole numbers on both sides of a fraction, texts of numbers."""
    if element_type == "string":
        whole = isinstance(value, float) and value.is_integer()
        return [value if isinstance(value, str) else str(int(value) if whole else value)]
    try:
        number = float(value)
    except ValueError:
        return []
    if element_type in {"float16", "float32", "float64"}:
        return ["nan"] if isnan(number) else [float(str(np.dtype(element_type).type(number)))]
    if not isfinite(number) or not element_type.startswith(("int", "uint")):
        return []
    limits = np.iinfo(element_type)
    wholes = [value] if isinstance(value, int) else [floor(number), ceil(number)]
    return [whole for whole in dict.fromkeys(wholes) if limits.min <= whole <= limits.max]


def _thinned(values: Sequence[Scalar], most: int) -> list[Scalar]:
    """Return so many values, numbers in their order and evenly chosen."""
    numbers = all(isinstance(each, int | float) for each in values)
    ordered = sorted(values) if numbers else list(values)
    if len(ordered) <= most:
        return ordered
    return [ordered[at] for at in np.linspace(0, len(ordered) - 1, most).round().astype(int).tolist()]


def _unknown(known: Sequence[Scalar]) -> Scalar:
    """Return a value beside those that are known, of their kind."""
    numbers = [each for each in known if each != "nan"]
    if numbers and all(not isinstance(each, str) or each.removeprefix("-").isdecimal() for each in numbers):
        return max(map(int, numbers)) + 1
    return next((word for word in UNKNOWN if word not in known), "".join(map(str, known)))
