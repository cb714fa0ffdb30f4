"""What to try: sizes for each dimension that a model leaves open and values for each input, likely ones first."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Final, Literal

import onnx

from ortrim.buildspec.problems import Scalar
from ortrim.models.graph_facts import NAMELESS
from ortrim.models.models import ModelFacts, TensorInfo
from ortrim.models.states import ENCODED, STATE, fed_by
from ortrim.parity.cases.graph import Graph, Traits, told_sizes
from ortrim.parity.cases.lookups import COMPARISONS, MOST_KEYS

Kind = Literal["batch", "channels", "side", "samples", "frames", "sequence", "size"]


@dataclass(frozen=True, kw_only=True)
class Filling:
    """One way to fill an input, in the words of a case's input; `size_of` names a dimension whose size is the value.

    `count_from` names one from whose size numbers count up.

    `needed` is how many elements it takes to show all that the model tells apart; 0 where nothing is known.
    """

    value: Scalar | None = None
    choices: tuple[Scalar | tuple[Scalar, ...], ...] | None = None
    low: float | None = None
    high: float | None = None
    size_of: str | None = None
    count_from: str | None = None
    needed: int = 0
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class OpenDimension:
    """A dimension that the model leaves open: `sizes` in the order of trying, the only one if the graph fixes it.

    `usual` are sizes that the model was made for, as far as it says so; `typical` is one at which its latency means
    something, 0 where none is known. `stride` is that of its first convolution.
    """

    name: str
    kind: Kind
    sizes: tuple[int, ...]
    usual: tuple[int, ...] = ()
    typical: int = 0
    stride: int = 1
    why: str


@dataclass(frozen=True, kw_only=True)
class GuessedInput:
    """An input: its shape of sizes and names of open dimensions, and ways to fill it.

    `selects` is whether branches compare with the values. `fed_by` names the output that is the next run's input.
    """

    name: str
    element_type: str
    shape: tuple[int | str, ...]
    fillings: tuple[Filling, ...]
    selects: bool = False
    fed_by: str = ""


@dataclass(frozen=True, kw_only=True)
class Guess:
    """All that is to be tried. A dimension of `sums` is the sum of others and of numbers.

    `tokens` are dimensions that count what a run reads in whole numbers, such as words.
    """

    inputs: tuple[GuessedInput, ...]
    dimensions: tuple[OpenDimension, ...]
    sums: Mapping[str, tuple[int | str, ...]]
    tokens: tuple[str, ...]


KINDS: Final[tuple[tuple[Kind, str], ...]] = (
    ("batch", r"^(n|b|bs|m)$|batch"),
    ("channels", r"^c$|channel"),
    ("side", r"^(h|w)$|height|width|imgsz|img_?size|image_?size|rows$|cols$"),
    ("samples", r"sample|audio|wav|pcm|signal"),
    ("frames", r"^t$|frame|time|mel|chunk"),
    ("sequence", r"seq|tok|len|text|phon|src|tgt|word|char|past|total|num_"),
)
SIZES: Final[Mapping[Kind, tuple[int, ...]]] = {
    "batch": (1, 2, 4, 8, 16),
    "channels": (3, 1, 4, 2, 16, 64),
    "side": (64, 96, 128, 48, 32, 160, 224, 256, 320, 192, 384, 416, 448, 512, 640, 100, 28, 800),
    "samples": (512, 1024, 1600, 16000, 8000, 320, 160, 4000, 32000, 48000, 96000, 160000),
    "frames": (32, 100, 64, 16, 200, 8, 300, 400, 80, 128, 256, 500, 1000, 3000, 1),
    "sequence": (16, 32, 8, 64, 4, 128, 256, 512, 2, 1, 77, 1024),
    "size": (16, 32, 8, 4, 2, 3, 64, 1, 10, 20, 40, 80, 100, 128, 256, 512, 1024, 1600, 16000),
}
SOUND: Final = re.compile(r"audio|wav|pcm|sound|signal|speech|sample", re.IGNORECASE)
MEANINGLESS: Final = re.compile(r"^(unk__\d+|p2o\.DynamicDimension\.\d+|s\d+|dim_?\d+|d\d+|None|.*_dim_\d+|)$")
RANKS: Final = (2, 3, 4, 1, 0)
SUM: Final = re.compile(r"^\s*[\w.]+(\s*\+\s*[\w.]+)+\s*$")


def guess(model: onnx.ModelProto, facts: ModelFacts) -> Iterator[Guess]:
    """Yield what to try: once, or for several ranks when the model leaves even these open."""
    graph = Graph(model)
    unknown = [info.name for info in facts.inputs if info.shape is None]
    ranks = dict.fromkeys((*filter(None, map(graph.rank, unknown)), *RANKS)) if unknown else RANKS[:1]
    for rank in ranks:
        inputs = tuple(replace(info, shape=(None,) * rank) if info.shape is None else info for info in facts.inputs)
        traits = {info.name: graph.traits(info.name, len(info.shape or ())) for info in inputs}
        whole = _guess(inputs, facts.outputs, traits, told_sizes(model))
        if totals := _totals(whole, {each.name: each for each in facts.outputs}):
            left = tuple(each for each in whole.dimensions if each.name not in totals)
            yield replace(whole, dimensions=left, sums={**whole.sums, **totals})
        yield whole


def _growing(dimensions: Iterable[OpenDimension]) -> set[int | str | None]:
    """Return those that may be another size in each run."""
    return {each.name for each in dimensions if each.kind != "batch" and len(each.sizes) > 1}


def _totals(guessed: Guess, outputs: Mapping[str, TensorInfo]) -> dict[str, tuple[int | str, ...]]:
    """Return the dimensions that should be what a cache holds and the new tokens: a mask's, or the cache's after a run.

    No runtime refuses others everywhere: com.microsoft.GroupQueryAttention then takes no token from the cache.
    """
    sizes = _growing(guessed.dimensions)
    states = [each for each in guessed.inputs if each.fed_by]
    masks = [each for each in guessed.inputs if MASK.search(each.name) and each.shape]
    others = [each for each in guessed.inputs if each not in states and each not in masks]
    plain = {size for each in others for size in each.shape}
    past = [size for each in states for size in each.shape if size in sizes - plain]
    read = [each.shape for each in others if not ENCODED.search(each.name)]
    tokens = [shape[1] for rank in (2, 3) for shape in read if len(shape) == rank]
    after = {size for each in states for size in outputs[each.fed_by].shape or () if size in sizes}
    totals = (after | {each.shape[-1] for each in masks}) & sizes - plain - set(past)
    return dict.fromkeys(sorted(map(str, totals)), (past[0], tokens[0])) if past and tokens else {}


def _guess(
    inputs: tuple[TensorInfo, ...],
    outputs: tuple[TensorInfo, ...],
    traits: Mapping[str, Traits],
    told: Mapping[str, tuple[int, ...]],
) -> Guess:
    found: dict[str, OpenDimension] = {}
    sums: dict[str, tuple[int | str, ...]] = {}
    for info in inputs:
        for axis, size in enumerate(info.shape or ()):
            name = variable(info, axis)
            if isinstance(size, str) and SUM.match(size):
                sums[name] = tuple(int(term) if term.isdecimal() else term for term in re.split(r"\s*\+\s*", size))
            elif name:
                other = _dimension(name, info, axis, traits[info.name], told)
                kept = found.get(name)
                if kept is None or len(other.sizes) == 1 or (kept.kind == "size" and len(kept.sizes) > 1):
                    found[name] = other
    for name, terms in tuple(sums.items()):
        if any(isinstance(term, str) and term not in found for term in terms):
            del sums[name]
            found[name] = OpenDimension(name=name, kind="sequence", sizes=SIZES["sequence"], why="by its name")
    feeding = fed_by(inputs, outputs)
    shapes = {
        info.name: tuple(variable(info, axis) or int(size or 0) for axis, size in enumerate(info.shape or ()))
        for info in inputs
    }
    images = {name for shape in shapes.values() if len(shape) > 2 for name in shape}
    found |= _with_typical_sides([each for each in found.values() if each.name in images], outputs, told)
    counted = {info.name: _counted_size(info, shapes, found) for info in inputs}
    plain = {size for name, shape in shapes.items() if name not in feeding for size in shape}
    past = [size for name in feeding for size in shapes[name] if size in _growing(found.values()) - plain]
    places = {name: str(past[0]) for name in shapes if past and POSITIONS.search(name) and name not in feeding}
    return Guess(
        inputs=tuple(
            GuessedInput(
                name=info.name,
                element_type=info.element_type,
                shape=shapes[info.name],
                fillings=(Filling(count_from=places[info.name], why=f"positions after {places[info.name]}"),)
                if info.name in places
                else tuple(_fillings(info, traits[info.name], feeding.get(info.name, ""), counted[info.name])),
                selects=_selects(info, traits[info.name]),
                fed_by=feeding.get(info.name, ""),
            )
            for info in inputs
        ),
        dimensions=tuple(found.values()),
        sums=sums,
        tokens=_tokens(inputs, feeding, shapes, _growing(found.values())),
    )


def _tokens(
    inputs: tuple[TensorInfo, ...],
    feeding: Mapping[str, str],
    shapes: Mapping[str, tuple[int | str, ...]],
    growing: Collection[int | str | None],
) -> tuple[str, ...]:
    read = (
        info.name
        for info in inputs
        if info.element_type in {"int64", "int32"} and not MASK.search(info.name) and info.name not in feeding
    )
    return tuple(dict.fromkeys(str(size) for name in read for size in shapes[name] if size in growing))


CLASSIFIED: Final = 224
DETECTED: Final = 640
LINE: Final = 320
"""Sides of the images that classifiers, and detectors and segmenters, are mostly made for; widths of lines of text."""


def _with_typical_sides(
    of_images: Sequence[OpenDimension], outputs: tuple[TensorInfo, ...], told: Mapping[str, tuple[int, ...]]
) -> dict[str, OpenDimension]:
    """Return the sides of images with their typical size: the one in the metadata, or by what the model gives."""
    sides = [each for each in of_images if each.kind == "side" and len(each.sizes) > 1]
    classes = all(each.shape is not None and len(each.shape) <= 2 for each in outputs)
    guessed = LINE if len(sides) == 1 else CLASSIFIED if classes else DETECTED
    size = next((told[key][-1] for key in ("imgsz", "image_size", "input_size") if told.get(key)), guessed)
    return {each.name: replace(each, typical=-(-size // each.stride) * each.stride) for each in sides}


def variable(info: TensorInfo, axis: int) -> str:
    """Return the name under which a size is sought: the model's own, or `input[axis]`; empty for a fixed one."""
    size = (info.shape or ())[axis]
    if isinstance(size, int):
        return ""
    return size if size and size not in NAMELESS else f"{info.name}[{axis}]"


def _dimension(
    name: str, info: TensorInfo, axis: int, traits: Traits, told: Mapping[str, tuple[int, ...]]
) -> OpenDimension:
    if axis in traits.sizes:
        size, operator = traits.sizes[axis]
        return OpenDimension(name=name, kind="size", sizes=(size,), why=f"weights of {operator}")
    kind, why = _kind(name, info, axis, traits)
    stride = traits.stride if kind in {"side", "samples", "frames"} else 1
    sizes = tuple(-(-size // stride) * stride for size in SIZES[kind])
    usual: tuple[int, ...] = ()
    if kind == "side" and told.get("imgsz"):
        sides = told["imgsz"]
        usual = sides[-1:]
        sizes, why = (2 * max((*told.get("stride", ()), 32)), *usual, *sizes), f"{why} and metadata 'imgsz'"
    sizes = tuple(dict.fromkeys(sizes))
    return OpenDimension(name=name, kind=kind, sizes=sizes, usual=usual, stride=stride, why=why)


def _kind(name: str, info: TensorInfo, axis: int, traits: Traits) -> tuple[Kind, str]:
    """Tell what a dimension counts by its name, else by where it stands."""
    rank, floats = len(info.shape or ()), info.element_type.startswith("float")
    if not MEANINGLESS.match(name) and "[" not in name:
        kind = next((kind for kind, pattern in KINDS if re.search(pattern, name, re.IGNORECASE)), None)
        if kind == "sequence" and floats and rank <= 2 and axis == rank - 1:
            kind = "samples"  # such as Silero's `sequence`, which counts samples of sound
        if kind is not None:
            return kind, "by its name"
    if axis in traits.steps | traits.batches:
        return ("frames" if axis in traits.steps else "batch"), "as a recurrent operator takes it"
    why = f"axis {axis} of {rank}"
    is_state = floats and bool(STATE.search(info.name))
    if is_state or (axis == 0 and rank > 1):
        grows = any(not isinstance(size, int) for size in (info.shape or ())[:axis])
        return ("sequence" if grows else "batch"), why
    if rank == 4 and (floats or info.element_type == "uint8"):
        last = (info.shape or ())[-1] in {1, 3, 4} or 3 in traits.sizes
        return ("side" if axis > 1 or last else "channels"), why
    if floats and (SOUND.search(info.name) or (rank <= 2 and traits.convolved)):
        return "samples", why
    return ("sequence" if info.element_type in {"int64", "int32"} and rank == 2 else "size"), why


def _counted_size(
    info: TensorInfo, shapes: Mapping[str, tuple[int | str, ...]], found: Mapping[str, OpenDimension]
) -> int | str | None:
    """Return the size, or the dimension, that an input gives as a value: a length, or the sides of an image."""
    shape = shapes[info.name]
    if LENGTHS.search(info.name) and len(shape) <= 1:
        sizes = (size for sizes in shapes.values() for size in sizes)
        dimensions = [found[size] for size in sizes if isinstance(size, str) and size in found]
        return next((each.name for each in sorted(dimensions, key=lambda each: COUNTED.index(each.kind))), None)
    if SIDES.search(info.name) and shape[-1:] == (2,):
        images = [sizes for sizes in shapes.values() if len(sizes) == 4]
        return images[0][2] if images else None
    return None


COUNTED: Final[tuple[Kind, ...]] = ("sequence", "frames", "samples", "size", "side", "channels", "batch")
"""Which kinds of dimensions a length counts, likely ones first."""
LENGTHS: Final = re.compile(r"len(gth)?s?$|_len|lengths?|num_(frames|tokens|samples)", re.IGNORECASE)
POSITIONS: Final = re.compile(r"(^|_)pos(ition)?(_?ids|s)?$", re.IGNORECASE)
MASK: Final = re.compile(r"mask", re.IGNORECASE)
SEGMENTS: Final = re.compile(r"token_type|segment", re.IGNORECASE)
RATE: Final = re.compile(r"^sr$|sample_?rate|sampling_?rate", re.IGNORECASE)
SIDES: Final = re.compile(r"(im|img|image|orig\w*|target|input)_?(shape|size)s?$", re.IGNORECASE)
UNIT: Final = re.compile(r"speed|scale|temperature|ratio", re.IGNORECASE)
THRESHOLD: Final = re.compile(r"thres|conf|iou|score", re.IGNORECASE)


def _fillings(info: TensorInfo, traits: Traits, fed_by: str, counted: int | str | None) -> Iterator[Filling]:
    """Yield ways to fill an input; the first is the likeliest, others follow when outputs show nothing."""
    kind, rank = info.element_type, len(info.shape or ())
    if fed_by:
        yield Filling(value=0.0 if "float" in kind else 0, why=f"a state: '{fed_by}' is its next value")
    elif isinstance(counted, str):
        yield Filling(size_of=counted, why=f"the size of {counted}")
    elif counted is not None:
        yield Filling(value=counted, why="the size of the image")
    elif kind == "bool":
        yield Filling(value=True, why="a mask" if rank else "a condition")
        yield Filling(value=False) if rank == 0 else Filling()
    elif kind == "string":
        if traits.vocabulary is not None:
            yield _rows(info, traits.vocabulary, traits.cells or traits.vocabulary)
        yield from _chosen(info, traits)
        yield Filling()
    elif kind.startswith(("int", "uint")):
        yield from _whole_numbers(info, traits)
    else:
        yield from _floats(info, traits)


def _chosen(info: TensorInfo, traits: Traits) -> Iterator[Filling]:
    """Yield the values that the model tells apart, if there are any."""
    last = len(info.shape or ()) - 1
    size = (info.shape or (1,))[last] if last >= 0 else 1
    width = size if isinstance(size, int) else traits.sizes.get(last, (None, ""))[0]
    if choices := traits.values.choices(info.element_type, width):
        nodes = " and ".join(traits.values.nodes)
        why = f"values that {nodes} {'tell' if len(traits.values.nodes) > 1 else 'tells'} apart"
        yield Filling(choices=choices, needed=traits.values.needed(choices, width or 1), why=why)


SMALL_TABLE: Final = 16
LARGE_TABLE: Final = 2048
"""Rows up to which each is chosen, and up to which there is room for all of them to be drawn."""


def _rows(info: TensorInfo, count: int, cells: int) -> Filling:
    """Return the filling with indices into a table of so many rows, which lead to so many cells."""
    why = f"rows of the table of {count:,} that it indexes"
    drawn = round(cells * (log(cells) + 4)) * (1 if cells == count else 2) if cells <= LARGE_TABLE else 0
    if count <= SMALL_TABLE or info.element_type == "string":
        rows = range(min(count, MOST_KEYS))
        choices: tuple[Scalar, ...] = tuple(str(row) if info.element_type == "string" else row for row in rows)
        return Filling(choices=choices, needed=count if cells == count else drawn, why=why)
    return Filling(high=count - 1, needed=min(2 * LARGE_TABLE, drawn), why=why)


def _whole_numbers(info: TensorInfo, traits: Traits) -> Iterator[Filling]:
    if traits.vocabulary is not None:
        yield _rows(info, traits.vocabulary, traits.cells or traits.vocabulary)
    elif _selects(info, traits):
        numbers = traits.compared or [16000]
        why = f"compared with {', '.join(f'{number:g}' for number in traits.compared)}" if traits.compared else ""
        sides = (max(numbers) + 1, min(numbers) - 1)
        others = (8000 if 16000 in numbers else 16000,) if RATE.search(info.name) else sides
        least = 0 if info.element_type.startswith("uint") else min(others)
        for number in dict.fromkeys((*numbers, *others)):
            if number >= least:
                yield Filling(value=int(number), why=why or "a sample rate")
    elif _is_mask(info, traits):
        yield Filling(value=1, why="a mask")
    elif choices := tuple(_chosen(info, traits)):
        yield from choices
        yield Filling()
    elif SEGMENTS.search(info.name):
        yield Filling(value=0, why="one segment")
    elif info.element_type == "uint8":
        yield Filling(low=0, high=255, why="bytes")
    else:
        yield Filling()
        yield Filling(low=1)
        yield Filling(high=1)
    yield Filling(value=1) if traits.vocabulary is None else Filling(high=min(traits.vocabulary - 1, 9))


def _floats(info: TensorInfo, traits: Traits) -> Iterator[Filling]:
    shape = info.shape or ()
    few = len(shape) <= 1 or (len(shape) == 2 and shape[1] in {1, 2, 3, 4})
    if _is_mask(info, traits):
        yield Filling(value=1.0, why="a mask")
    elif choices := tuple(_chosen(info, traits)):
        yield from choices
    elif _selects(info, traits):
        yield from (Filling(value=float(number), why="branches compare with it") for number in traits.compared)
        for number in (max(traits.compared) + 1, min(traits.compared) - 1) if traits.compared else (0.0,):
            yield Filling(value=float(number))
    elif THRESHOLD.search(info.name) and few:
        yield Filling(value=0.1, why="a threshold")
    elif UNIT.search(info.name) and few:
        yield Filling(value=1.0, why="a factor")
    elif RATE.search(info.name) and not shape:
        yield Filling(value=16000.0, why="a sample rate")
    elif len(shape) == 4 and ({1, 3} & {shape[1], shape[3]} or traits.sizes.get(1, (0, ""))[0] in {1, 3}):
        yield Filling(low=0.0, high=1.0, why="an image")
    yield Filling(why="")
    yield Filling(low=0.0, high=255.0)
    yield Filling(low=-8000.0, high=8000.0)


def _is_mask(info: TensorInfo, traits: Traits) -> bool:
    return bool(MASK.search(info.name)) and set(traits.values.nodes) <= COMPARISONS


def _selects(info: TensorInfo, traits: Traits) -> bool:
    """Whether a single number or condition decides which way a model goes."""
    alone = all(size == 1 for size in info.shape or ())
    return alone and (bool(traits.compared) or (traits.decides and info.element_type == "bool"))
