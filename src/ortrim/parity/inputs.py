"""Test cases: the inputs with which both runtimes are run, written where the runner finds them.

They are made from a seed, the same on every machine and each independent of the others, or were recorded.
"""

import dataclasses
import hashlib
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from ortrim.base.archives import TooLarge, bounded_zip
from ortrim.base.cache import cached_folder
from ortrim.base.console import counted
from ortrim.base.files import code_digest, sha256_of, storage_errors
from ortrim.base.json import to_canonical_json
from ortrim.buildspec.buildspec import CaseSpec, InputSpec, ModelSpec
from ortrim.buildspec.problems import Scalar, toml_string
from ortrim.errors import SpecError, VerifyError
from ortrim.models import states
from ortrim.models.models import ModelFacts, PreparedModel, TensorInfo
from ortrim.models.refusals import CRASH_HINT

if TYPE_CHECKING:
    from ortrim.parity.reference import SavedOutputs

Array = NDArray[Any]

STRING: Final = "string"
BFLOAT16: Final = "bfloat16"
FLOATS: Final = frozenset({"float16", BFLOAT16, "float32", "float64"})


def numpy_type(element_type: str) -> np.dtype[Any]:
    """Return the type in which elements are held: `uint16` for bfloat16, `object` for strings."""
    return np.dtype({STRING: "object", BFLOAT16: "uint16"}.get(element_type, element_type))


def save_array(folder: Path, stem: str, array: Array) -> Path:
    """Write `folder/stem.npy`, or `folder/stem.strings` for an array of objects; return the file."""
    if array.dtype == np.dtype(object):
        path = folder / f"{stem}.strings"
        path.write_bytes(_encoded(array))
        return path
    path = folder / f"{stem}.npy"
    # Not ascontiguousarray, which makes a vector of a scalar.
    np.save(path, np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C"), allow_pickle=False)
    return path


def load_array(path: Path) -> Array:
    """Read what `save_array` or the runner wrote.

    Raises `VerifyError` (`bad-output`) when the file is missing, truncated or not such a file.
    """
    try:
        if path.suffix == ".strings":
            return _decoded(path.read_bytes())
        return np.asarray(np.load(path, allow_pickle=False))
    except (OSError, ValueError, EOFError, struct.error, MemoryError) as error:
        why = f"{type(error).__name__}: {error}"
        raise VerifyError("bad-output", "a saved tensor cannot be read", where=str(path), why=why) from error


def widened(bits: Array) -> Array:
    """Return bfloat16 bits as float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def narrowed(values: Array) -> Array:
    """Return float32 values as bfloat16 bits, rounded to nearest even; values are finite."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def _encoded(array: Array) -> bytes:
    head = struct.pack(f"<{1 + array.ndim}Q", array.ndim, *array.shape)
    texts = [str(element).encode("utf-8", errors="surrogateescape") for element in array.reshape(-1)]
    return head + b"".join(struct.pack("<Q", len(text)) + text for text in texts)


def _decoded(data: bytes) -> Array:
    (rank,) = struct.unpack_from("<Q", data)
    if rank > 32:
        raise ValueError(f"{rank} dimensions")
    shape = struct.unpack_from(f"<{rank}Q", data, 8)
    at = 8 * (1 + rank)
    count = math.prod(shape)
    if count * 8 > len(data) - at:
        raise ValueError(f"{count} elements cannot be in {len(data)} bytes")
    elements = np.empty(count, dtype=object)
    for index in range(count):
        (length,) = struct.unpack_from("<Q", data, at)
        at += 8 + length
        elements[index] = data[at - length : at].decode("utf-8", errors="surrogateescape")
    if at != len(data):
        raise ValueError("the data is truncated or too long")
    return elements.reshape(shape)


WORDS: Final = ("", "a", "the", "runtime", "model", "Zürich", "東京", "two words", "42", "-1")


def generated_array(
    info: TensorInfo, spec: InputSpec, shape: tuple[int, ...], *, seed: int, key: str, where: str
) -> Array:
    """Return the values of one input: filled with `spec.value`, of `spec.choices`, else random between its bounds.

    The random stream depends on `seed` and `key` alone, so that a further input changes no other.
    """
    if spec.value is not None:
        return _filled(info, spec.value, shape, where)
    if isinstance(spec.count_from, int):
        return _counting(info, spec.count_from, shape, where)
    generator = _generator(seed, key)
    if spec.choices is not None:
        return _chosen(info, spec.choices, shape, where, dealt_from=seed, generator=generator)
    if info.element_type == STRING:
        texts = np.empty(shape, dtype=object)
        texts.reshape(-1)[:] = [WORDS[number] for number in generator.integers(0, len(WORDS), texts.size)]
        return texts
    if info.element_type in FLOATS:
        return _random_floats(info, spec, shape, generator, where)
    return _random_integers(info, spec, shape, generator, where)


def _generator(seed: int, key: str) -> np.random.Generator:
    digest = hashlib.sha256(key.encode("utf-8", errors="surrogatepass")).digest()
    words = struct.unpack("<8I", digest)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *words])))


def _chosen(
    info: TensorInfo,
    choices: tuple[Scalar | tuple[Scalar, ...], ...],
    shape: tuple[int, ...],
    where: str,
    *,
    dealt_from: int,
    generator: np.random.Generator,
) -> Array:
    """Return an array whose elements are choices: of the whole tensor, or of each position of the last axis."""
    columns = [each for each in choices if isinstance(each, tuple)]
    if columns and (not shape or shape[-1] != len(columns)):
        what = f"there are choices for {counted(len(columns), 'position')} of the last axis"
        raise SpecError("shape-mismatch", what, where=where, why=f"the input has the shape {list(shape)}")
    array = np.empty(shape, dtype=numpy_type(info.element_type))
    whole = tuple(each for each in choices if not isinstance(each, tuple))
    parts = [(array[..., at], own) for at, own in enumerate(columns)] or [(array[...], whole)]
    for at, (part, own) in enumerate(parts):
        plain = (math.nan if info.element_type in FLOATS and each == "nan" else each for each in own)
        values = np.concatenate([_filled(info, each, (1,), where) for each in plain])
        # The first are dealt, in an order that depends on the input alone: the next seed's go on from there.
        order = _generator(0, f"{info.name}/{at}").permutation(len(values))
        dealt = order[(dealt_from * part.size + np.arange(min(part.size, len(values)))) % len(values)]
        drawn = generator.integers(0, len(values), part.size - len(dealt))
        part[...] = values[np.concatenate([dealt, drawn])].reshape(part.shape)
    return array


def _filled(info: TensorInfo, value: Scalar, shape: tuple[int, ...], where: str) -> Array:
    """Return an array of one value, which has to be of the element type without any rounding of integers."""
    kind = info.element_type
    right = {STRING: str, "bool": bool}.get(kind, (int, float) if kind in FLOATS else int)
    if not isinstance(value, right) or (kind != "bool" and isinstance(value, bool)):
        _refuse_value(value, kind, where)
    if kind == BFLOAT16:
        return narrowed(np.full(shape, value, dtype=np.float32))
    try:
        return np.full(shape, value, dtype=numpy_type(kind))
    except (OverflowError, ValueError):
        _refuse_value(value, kind, where)


def _counting(info: TensorInfo, first: int, shape: tuple[int, ...], where: str) -> Array:
    if info.element_type in {STRING, "bool", BFLOAT16}:
        raise SpecError("wrong-value", f"'count_from' makes no values of type {info.element_type}", where=where)
    last = first + (shape or (1,))[-1] - 1
    _filled(info, max(first, last), (), where)  # refuses what the type has no room for
    numbers = np.arange(first, last + 1, dtype=numpy_type(info.element_type))
    return np.array(np.broadcast_to(numbers, shape or (1,))).reshape(shape)


def _refuse_value(value: Scalar, kind: str, where: str) -> NoReturn:
    raise SpecError("wrong-value", f"the value {value!r} is not one of type {kind}", where=where)


def _random_floats(
    info: TensorInfo, spec: InputSpec, shape: tuple[int, ...], generator: np.random.Generator, where: str
) -> Array:
    low, high = _bounds(spec, -1.0, 1.0, where)
    values = generator.uniform(low, high, shape)
    if info.element_type == BFLOAT16:
        return narrowed(np.asarray(values, dtype=np.float32))
    return np.asarray(values, dtype=numpy_type(info.element_type))


def _random_integers(
    info: TensorInfo, spec: InputSpec, shape: tuple[int, ...], generator: np.random.Generator, where: str
) -> Array:
    kind: np.dtype[Any] = numpy_type(info.element_type)
    low, high = _bounds(spec, 0, 1 if info.element_type == "bool" else 9, where)
    limits = (0, 1) if info.element_type == "bool" else (int(np.iinfo(kind).min), int(np.iinfo(kind).max))
    if low != int(low) or high != int(high) or low < limits[0] or high > limits[1]:
        what = f"the bounds {low:g} and {high:g} are not both values of type {info.element_type}"
        raise SpecError("wrong-value", what, where=where)
    return np.asarray(generator.integers(int(low), int(high), shape, dtype=kind, endpoint=True), dtype=kind)


def _bounds(spec: InputSpec, low: float, high: float, where: str) -> tuple[float, float]:
    chosen = (low if spec.low is None else spec.low, high if spec.high is None else spec.high)
    if not (np.isfinite(chosen).all() and chosen[0] <= chosen[1]):
        what = f"there is no value between {chosen[0]:g} and {chosen[1]:g}"
        raise SpecError("empty-range", what, where=where, hint="give both 'low' and 'high'")
    return chosen


LARGEST_RECORDING_BYTES: Final = 2 << 30


def recorded_files(data: Path) -> tuple[Path, ...]:
    """Return the files that hold the recorded inputs, in order. Raises `VerifyError` (`data-missing`)."""
    files = tuple(sorted(data.glob("input_*.pb"))) if data.is_dir() else (data,) if data.is_file() else ()
    if not files:
        what = "there are no recorded inputs: neither an .npz file nor a folder with input_0.pb"
        raise VerifyError("data-missing", what, where=str(data))
    return files


def recorded_inputs(data: Path, inputs: tuple[TensorInfo, ...]) -> tuple[Array, ...]:
    """Return the recorded arrays in the order of the model's inputs."""
    found = _from_folder(data, inputs) if data.is_dir() else _from_npz(data)
    known = {info.name for info in inputs}
    for name in found:
        if name not in known:
            _refuse("unknown-input", f"the model has no input '{name}'", data, f"it has: {', '.join(sorted(known))}")
    return tuple(_checked(info, found, data) for info in inputs)


def _from_npz(data: Path) -> dict[str, Array]:
    recorded_files(data)
    try:
        with bounded_zip(data) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > LARGEST_RECORDING_BYTES:
            _refuse("bad-npz", "the file is too large", data, f"unpacked it has {size:,} bytes")
        with np.load(data, allow_pickle=False) as arrays:
            return {name: np.asarray(arrays[name]) for name in arrays.files}
    except (
        OSError, ValueError, EOFError, KeyError, TypeError, SyntaxError, NotImplementedError, RuntimeError,
        zipfile.BadZipFile, zlib.error, MemoryError, TooLarge,
    ) as error:  # fmt: skip
        why = f"{type(error).__name__}: {error}"
        what = "the file is not an .npz of plain arrays"
        raise VerifyError("bad-npz", what, where=str(data), why=why, hint="write it with numpy.savez") from error


def _from_folder(data: Path, inputs: tuple[TensorInfo, ...]) -> dict[str, Array]:
    """Read `input_0.pb`, `input_1.pb`, ..., which stand in the order of the model's inputs."""
    found = {}
    for path in recorded_files(data):
        number = path.stem.removeprefix("input_")
        if not (number.isascii() and number.isdecimal()) or int(number) >= len(inputs):
            _refuse("unknown-input", f"the model has {counted(len(inputs), 'input')}, numbered from 0", path)
        found[inputs[int(number)].name] = _from_protobuf(path)
    return found


def _from_protobuf(path: Path) -> Array:
    import onnx  # noqa: PLC0415 - heavy, and seldom needed
    from google.protobuf.message import DecodeError  # noqa: PLC0415
    from onnx import numpy_helper  # noqa: PLC0415

    try:
        tensor = onnx.load_tensor(path)
        array = np.asarray(numpy_helper.to_array(tensor))
    except (DecodeError, ValueError, TypeError, OSError, onnx.checker.ValidationError) as error:
        why = f"{type(error).__name__}: {error}"
        raise VerifyError("bad-test-data", "the file does not hold a tensor", where=str(path), why=why) from error
    if array.dtype.name == BFLOAT16:
        return array.view(np.uint16)
    if array.dtype == np.dtype(object):
        return _texts(array)
    return array


def _checked(info: TensorInfo, found: dict[str, Array], data: Path) -> Array:
    if info.name not in found:
        _refuse("missing-input", f"there is no array for input '{info.name}'", data, f"there is: {', '.join(found)}")
    array = _texts(found[info.name]) if found[info.name].dtype.kind in "US" else found[info.name]
    if array.dtype.newbyteorder("=") != numpy_type(info.element_type):
        why = f"recorded {found[info.name].dtype}; the model takes {info.element_type}"
        _refuse("wrong-type", f"the array for input '{info.name}' has another element type", data, why)
    if not _accepts(info.shape, array.shape):
        why = f"recorded {list(array.shape)}; the model takes {['?' if s is None else s for s in info.shape or ()]}"
        _refuse("shape-mismatch", f"the array for input '{info.name}' has another shape", data, why)
    return array


def _texts(array: Array) -> Array:
    """Return an array of Python strings, whatever form strings came in."""
    texts = np.empty(array.shape, dtype=object)
    for index in np.ndindex(array.shape):
        element: Any = array[index]
        texts[index] = element.decode("utf-8", errors="surrogateescape") if isinstance(element, bytes) else str(element)
    return texts


def _refuse(code: str, what: str, data: Path, why: str = "") -> NoReturn:
    raise VerifyError(code, what, where=str(data), why=why)


BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
BEYOND: Final = re.compile(
    r"out of (?:data )?bounds|out of range|out-of-bound|within the inclusive range|index.{0,40}(?:range|bound)",
    re.IGNORECASE,
)
"""What kernels say of an index that is too large: Gather, GatherElements, GatherND, ScatterElements, OneHot, Slice."""
RANGE: Final = re.compile(r"inclusive range \[-?\d+, ?(\d+)\]")
SHOWN_NAMES: Final = 4
ONES: Final = "dimensions are 1 where the case does not say what the model was made for, such as"
RECORDED: Final = "; or give recorded inputs by 'data'"


def toml_key(name: str) -> str:
    """Write a name of the model's as a key of TOML."""
    return name if BARE_KEY.fullmatch(name) else toml_string(name)


def advice(facts: ModelFacts, words: str) -> str:
    """Return a hint for a model that the full runtime refused to run in `words`."""
    numbers = [info for info in facts.inputs if info.element_type.startswith(("int", "uint"))]
    if numbers and BEYOND.search(words):
        found = RANGE.search(words)
        example = _bounded(numbers, f"high = {found[1] if found else 4}")
        return f"random integers go from 0 to 9; set their range in the case: {example}"
    sizes = (size for info in facts.inputs for size in info.shape or ())
    if named := list(dict.fromkeys(size for size in sizes if isinstance(size, str))):
        example = ", ".join(f"{toml_key(name)} = 160" for name in named[:SHOWN_NAMES])
        return f"{ONES}: dimensions = {{ {example} }}{RECORDED}"
    if free := [info for info in facts.inputs if info.shape is None or None in info.shape]:
        shape = ", ".join("160" if size is None else str(size) for size in free[0].shape or (1, None))
        return f"{ONES}: inputs = {{ {toml_key(free[0].name)} = {{ shape = [{shape}] }} }}{RECORDED}"
    return f"the case may not fit the model, whose inputs invoke inspect shows{RECORDED}"


def crash_advice(facts: ModelFacts, ending: str) -> str:
    """Return a hint for a model on which the full runtime ended so: "crashed (SIGFPE)"."""
    numbers = [info for info in facts.inputs if info.element_type.startswith(("int", "uint"))]
    if numbers and "SIGFPE" in ending:
        return "a division by 0; set their range in the case: " + _bounded(numbers, "low = 1")
    return CRASH_HINT


def _bounded(numbers: list[TensorInfo], bound: str) -> str:
    shown = ", ".join(f"{toml_key(info.name)} = {{ {bound} }}" for info in numbers[:SHOWN_NAMES])
    return f"inputs = {{ {shown} }}"


LARGEST_CASE_BYTES: Final = 1 << 30
"""All inputs of a case together: they are in memory at once, here and in both runtimes."""
TEXT_BYTES: Final = 100
"""About what a text takes while it is made."""
MOST_DIMENSIONS: Final = 32
"""The runner's `MAX_RANK`."""
DEFAULT_CASES: Final = (CaseSpec(name="default"),)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """One set of inputs: `folder` holds `input_000.npy` (or `.strings`) and so on, in the order of the model's inputs.

    `digest` stands for all that the inputs depend on.
    """

    name: str
    folder: Path
    digest: str


def input_shapes(model: ModelFacts, case: Case) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of a case's inputs, in the order of the model's. Raises as `load_array` does."""
    files = sorted(case.folder.glob("input_*"))[: len(model.inputs)]
    return tuple(tuple(load_array(file).shape) for file in files)


Run = Callable[[Case], "SavedOutputs"]
"""Runs one case in the full runtime."""


def make_cases(
    model: PreparedModel, spec: ModelSpec, base: Path, folder: Path, run: Run | None = None
) -> tuple[Case, ...]:
    """Write the inputs of every case into folders below `folder` and return the cases.

    A case that comes after another has as inputs what the full runtime gives for that, by `run`: every library gets the
    same inputs, so that a difference does not grow from case to case, and each case can be run alone. Paths of recorded
    inputs are relative to `base`. What is there already is not written again.
    """
    named = {case.name: case for case in spec.cases or DEFAULT_CASES}
    made: dict[str, Case] = {}

    def make(case: CaseSpec) -> Case:
        if case.name not in made:
            before = None
            if case.after is not None:
                assert run is not None
                before = run(make(named[case.after]))
            located = dataclasses.replace(case, data=base / case.data if case.data else None)
            made[case.name] = _make_case(model, located, f"model '{spec.name}', case '{case.name}'", folder, before)
        return made[case.name]

    return tuple(map(make, named.values()))


def _make_case(model: PreparedModel, case: CaseSpec, where: str, folder: Path, before: "SavedOutputs | None") -> Case:
    _check_names(model, case, where)
    # Numbers of the full runtime differ in the last places from processor to processor; digests must not.
    digest = _digest(model, case, before.folder.name if before else "")
    destination = folder / f"{case.name}-{digest[:16]}"

    def fill(temporary: Path) -> None:
        fed = _fed(model.facts, case, before, where) if before else {}
        with storage_errors(destination):
            for index, array in enumerate(_arrays(model.facts.inputs, case, fed, where)):
                save_array(temporary, f"input_{index:03}", array)

    try:
        cached_folder(destination, fill)
    except MemoryError as error:
        what, hint = "there is not enough memory for the inputs", "choose smaller dimensions, or free some memory"
        raise VerifyError("out-of-memory", what, where=where, why=str(error), hint=hint) from error
    return Case(name=case.name, folder=destination, digest=digest)


def _digest(model: PreparedModel, case: CaseSpec, before: str) -> str:
    files = [] if case.data is None else [f"{path.name} {sha256_of(path)}" for path in recorded_files(case.data)]
    written = to_canonical_json(dataclasses.replace(case, data=None))
    # What an older ortrim made of the same case is not taken for what this one would make.
    text = "\n".join(
        [model.facts.sha256, written, *files, before, code_digest([Path(__file__), Path(states.__file__)])]
    )
    return hashlib.sha256(text.encode()).hexdigest()


def _fed(model: ModelFacts, case: CaseSpec, before: "SavedOutputs", where: str) -> dict[str, Array]:
    """Return the inputs that are outputs of the case before, but for those that the case itself gives."""
    (ran,) = before.cases
    outputs = {each.name: each for each in ran.outputs}
    pairs = {**states.fed_by(model.inputs, model.outputs), **case.states}
    fed = {}
    for info in (each for each in model.inputs if each.name in pairs and each.name not in case.inputs):
        output = outputs[pairs[info.name]]
        shape = info.shape and tuple(
            case.dimensions.get(size, size) if isinstance(size, str) else size for size in info.shape
        )
        if output.file is None or output.element_type != info.element_type or not _accepts(shape, output.shape):
            what = f"output '{output.name}' of case '{ran.name}' does not fit the input '{info.name}' that it feeds"
            taken = "any shape" if shape is None else shape_text(shape)
            why = f"it is {output.element_type} {list(output.shape)}; the input takes {info.element_type} {taken}"
            own = f"inputs = {{ {toml_key(info.name)} = {{ value = 0 }} }}"
            hint = f"change 'dimensions', or let the case give the input itself: {own}"
            raise SpecError("state-mismatch", what, where=where, why=why, hint=hint)
        fed[info.name] = load_array(before.folder / ran.name / output.file)
    if not fed:
        what = f"no output of case '{ran.name}' feeds an input of this one"
        own = f"; the case itself gives {', '.join(pairs)}" if pairs else ""
        why = f"states are known by their names, such as past_key_values.0.key and present.0.key{own}"
        hint = "say which: states = { input = 'output' }; or leave 'after' out"
        raise SpecError("nothing-fed", what, where=where, why=why, hint=hint)
    return fed


def _accepts(shape: tuple[int | str | None, ...] | None, given: tuple[int, ...]) -> bool:
    """Whether a model takes this shape; names, and what it leaves open, are any size."""
    return shape is None or (
        len(shape) == len(given)
        and all(size == own for size, own in zip(shape, given, strict=True) if isinstance(size, int))
    )


def _arrays(inputs: tuple[TensorInfo, ...], case: CaseSpec, fed: Mapping[str, Array], where: str) -> tuple[Array, ...]:
    if case.data is not None:
        return recorded_inputs(case.data, inputs)
    own = tuple(info for info in inputs if info.name not in fed)
    case = dataclasses.replace(case, dimensions={**_sizes_of(inputs, fed), **case.dimensions})
    shapes = tuple(
        _shape(info, case.inputs.get(info.name, InputSpec()), case, f"{where}, input '{info.name}'") for info in own
    )
    _check_sizes(own, shapes, where)
    made = {}
    for info, shape in zip(own, shapes, strict=True):
        key, spec = f"{case.name}/{info.name}", case.inputs.get(info.name, InputSpec())
        if isinstance(spec.count_from, str):
            spec = dataclasses.replace(spec, count_from=case.dimensions.get(spec.count_from, 1))
        place = f"{where}, input '{info.name}'"
        made[info.name] = generated_array(info, spec, shape, seed=case.seed, key=key, where=place)
    return tuple({**made, **fed}[info.name] for info in inputs)


def _sizes_of(inputs: tuple[TensorInfo, ...], fed: Mapping[str, Array]) -> dict[str, int]:
    """Return the sizes that arrays give to the model's dynamic dimensions."""
    return {
        size: given
        for info in inputs
        if info.name in fed
        for size, given in zip(info.shape or (), fed[info.name].shape, strict=False)
        if isinstance(size, str)
    }


def _check_sizes(inputs: tuple[TensorInfo, ...], shapes: tuple[tuple[int, ...], ...], where: str) -> None:
    """Refuse what would take too much memory, also in a shape that a 0 makes empty: NumPy multiplies the others."""
    total, hint = 0, "choose smaller dimensions"
    for info, shape in zip(inputs, shapes, strict=True):
        bytes_each = TEXT_BYTES if info.element_type == STRING else numpy_type(info.element_type).itemsize
        if len(shape) > MOST_DIMENSIONS:
            what = f"an input of {len(shape)} dimensions cannot be made; {MOST_DIMENSIONS} is the most"
            raise SpecError("input-too-large", what, where=f"{where}, input '{info.name}'")
        size = math.prod(filter(None, shape)) * bytes_each
        if size > LARGEST_CASE_BYTES:
            what = f"an input of shape {list(shape)} would have {size:,} bytes; {LARGEST_CASE_BYTES:,} is the most"
            raise SpecError("input-too-large", what, where=f"{where}, input '{info.name}'", hint=hint)
        total += size
    if total > LARGEST_CASE_BYTES:
        what = f"its {len(inputs)} inputs would have {total:,} bytes; {LARGEST_CASE_BYTES:,} is the most"
        raise SpecError("input-too-large", what, where=where, hint=hint)


def _shape(info: TensorInfo, spec: InputSpec, case: CaseSpec, where: str) -> tuple[int, ...]:
    """Return the shape: as given, else the model's with `dimensions` put in, 1 where nothing says how many."""
    if info.shape is None:
        if spec.shape is None:
            what = "the model does not say how many dimensions this input has"
            hint = f"give its shape in the case: inputs = {{ {toml_key(info.name)} = {{ shape = [1, 3] }} }}"
            raise SpecError("unknown-rank", what, where=where, hint=hint)
        return spec.shape
    known = tuple(case.dimensions.get(size) if isinstance(size, str) else size for size in info.shape)
    if spec.shape is None:
        return tuple(1 if size is None else size for size in known)
    if not _accepts(known, spec.shape):
        why = f"given {list(spec.shape)}; the model takes {shape_text(info.shape)}"
        raise SpecError("shape-mismatch", "the model does not accept this shape", where=where, why=why)
    return spec.shape


def shape_text(shape: tuple[int | str | None, ...]) -> str:
    """Write a model's shape: `[batch, 3, ?]`."""
    return "[" + ", ".join("?" if size is None else str(size) for size in shape) + "]"


def _check_names(model: PreparedModel, case: CaseSpec, where: str) -> None:
    inputs = [info.name for info in model.facts.inputs]
    dimensions = [size for info in model.facts.inputs for size in info.shape or () if isinstance(size, str)]
    _check_known("input", case.inputs, inputs, where)
    counted_from = (spec.count_from for spec in case.inputs.values() if isinstance(spec.count_from, str))
    _check_known("dimension", (*case.dimensions, *counted_from), list(dict.fromkeys(dimensions)), where)
    _check_known("input", case.states, inputs, where)
    _check_known("output", case.states.values(), [info.name for info in model.facts.outputs], where)


def _check_known(kind: str, given: Iterable[str], known: list[str], where: str) -> None:
    for name in given:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"the model has: {', '.join(known) or 'none'}"
            raise SpecError(f"unknown-{kind}", f"the model has no {kind} '{name}'", where=where, hint=hint)
