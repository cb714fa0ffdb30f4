"""Test cases: the inputs with which both runtimes are run, written where the runner finds them."""

import dataclasses
import hashlib
import math
from difflib import get_close_matches
from pathlib import Path
from typing import Final, NoReturn

from ortrim.core.model_spec import CaseSpec, InputSpec, ModelSpec
from ortrim.core.models import PreparedModel, TensorInfo
from ortrim.core.serialization import to_canonical_json
from ortrim.errors import SpecError, VerifyError
from ortrim.storage.files import sha256_of, storage_errors
from ortrim.storage.records import cached_folder
from ortrim.verify.advice import toml_key
from ortrim.verify.arrays import STRING, Array, numpy_type, save_array
from ortrim.verify.generated import generated_array
from ortrim.verify.recorded import recorded_files, recorded_inputs

LARGEST_CASE_BYTES: Final = 1 << 30
"""All inputs of a case together: they are in memory at once, here and in both runtimes."""
TEXT_BYTES: Final = 100
"""About what a text takes while it is made."""
MOST_DIMENSIONS: Final = 32
"""The runner's `MAX_RANK`."""
DEFAULT_CASES: Final = (CaseSpec(name="default"),)
CODE: Final = ("arrays.py", "cases.py", "generated.py", "recorded.py")
"""Our own modules that the inputs depend on; what an older ortrim made of the same case is not taken for them."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """One set of inputs: `folder` holds `input_000.npy` (or `.strings`) and so on, in the order of the model's inputs.

    `digest` stands for all that the inputs depend on.
    """

    name: str
    folder: Path
    digest: str


def make_cases(model: PreparedModel, spec: ModelSpec, base: Path, folder: Path) -> tuple[Case, ...]:
    """Write the inputs of every case into folders below `folder` and return the cases.

    Paths of recorded inputs are relative to `base`. What is there already is not written again. Raises
    `SpecError` for a case that does not fit the model (`unknown-input`, `unknown-dimension`, `unknown-rank`,
    `shape-mismatch`, `wrong-value`, `empty-range`, `input-too-large`) and `VerifyError` for recorded inputs
    that do not (`bad-npz`, `bad-test-data`, `data-missing`, `missing-input`, `unknown-input`, `shape-mismatch`,
    `wrong-type`; `out-of-memory`).
    """
    return tuple(_make_case(model, spec, case, base, folder) for case in spec.cases or DEFAULT_CASES)


def _make_case(model: PreparedModel, spec: ModelSpec, case: CaseSpec, base: Path, folder: Path) -> Case:
    where = f"model '{spec.name}', case '{case.name}'"
    _check_names(model, case, where)
    data = base / case.data if case.data else None
    digest = _digest(model, case, data)
    destination = folder / f"{case.name}-{digest[:16]}"

    def fill(temporary: Path) -> None:
        with storage_errors(destination):
            for index, array in enumerate(_arrays(model.facts.inputs, case, data, where)):
                save_array(temporary, f"input_{index:03}", array)

    try:
        cached_folder(destination, fill)
    except MemoryError as error:
        what, hint = "there is not enough memory for the inputs", "choose smaller dimensions, or free some memory"
        raise VerifyError("out-of-memory", what, where=where, why=str(error), hint=hint) from error
    return Case(name=case.name, folder=destination, digest=digest)


def _digest(model: PreparedModel, case: CaseSpec, data: Path | None) -> str:
    files = [] if data is None else [f"{path.name} {sha256_of(path)}" for path in recorded_files(data)]
    written = to_canonical_json(dataclasses.replace(case, data=None))
    code = [sha256_of(Path(__file__).with_name(name)) for name in CODE]
    text = "\n".join([model.facts.sha256, written, *files, *code])
    return hashlib.sha256(text.encode()).hexdigest()


def _arrays(inputs: tuple[TensorInfo, ...], case: CaseSpec, data: Path | None, where: str) -> tuple[Array, ...]:
    if data is not None:
        return recorded_inputs(data, inputs)
    shapes = tuple(_shape(info, _input_spec(info, case), case, _place(where, info)) for info in inputs)
    _check_sizes(inputs, shapes, where)
    return tuple(_generated(info, shape, case, _place(where, info)) for info, shape in zip(inputs, shapes, strict=True))


def _input_spec(info: TensorInfo, case: CaseSpec) -> InputSpec:
    return case.inputs.get(info.name, InputSpec())


def _place(where: str, info: TensorInfo) -> str:
    return f"{where}, input '{info.name}'"


def _check_sizes(inputs: tuple[TensorInfo, ...], shapes: tuple[tuple[int, ...], ...], where: str) -> None:
    """Refuse what would take too much memory, also in a shape that a 0 makes empty: NumPy multiplies the others."""
    total, hint = 0, "choose smaller dimensions"
    for info, shape in zip(inputs, shapes, strict=True):
        bytes_each = TEXT_BYTES if info.element_type == STRING else numpy_type(info.element_type).itemsize
        if len(shape) > MOST_DIMENSIONS:
            what = f"an input of {len(shape)} dimensions cannot be made; {MOST_DIMENSIONS} is the most"
            raise SpecError("input-too-large", what, where=_place(where, info))
        size = math.prod(filter(None, shape)) * bytes_each
        if size > LARGEST_CASE_BYTES:
            what = f"an input of shape {list(shape)} would have {size:,} bytes; {LARGEST_CASE_BYTES:,} is the most"
            raise SpecError("input-too-large", what, where=_place(where, info), hint=hint)
        total += size
    if total > LARGEST_CASE_BYTES:
        what = f"its {len(inputs)} inputs would have {total:,} bytes; {LARGEST_CASE_BYTES:,} is the most"
        raise SpecError("input-too-large", what, where=where, hint=hint)


def _generated(info: TensorInfo, shape: tuple[int, ...], case: CaseSpec, where: str) -> Array:
    key = f"{case.name}/{info.name}"
    return generated_array(info, _input_spec(info, case), shape, seed=case.seed, key=key, where=where)


def _shape(info: TensorInfo, spec: InputSpec, case: CaseSpec, where: str) -> tuple[int, ...]:
    """Return the shape: as given, else the model's with `dimensions` put in, 1 where nothing says how many."""
    if info.shape is None:
        return spec.shape if spec.shape is not None else _refuse_unknown_rank(info.name, where)
    known = tuple(case.dimensions.get(size) if isinstance(size, str) else size for size in info.shape)
    if spec.shape is None:
        return tuple(1 if size is None else size for size in known)
    fits = len(spec.shape) == len(known) and all(
        size in {None, given} for size, given in zip(known, spec.shape, strict=True)
    )
    if not fits:
        why = f"given {list(spec.shape)}; the model takes {shape_text(info.shape)}"
        raise SpecError("shape-mismatch", "the shape is not one that the model takes", where=where, why=why)
    return spec.shape


def _refuse_unknown_rank(name: str, where: str) -> NoReturn:
    what = "the model does not say how many dimensions this input has"
    hint = f"give its shape in the case: inputs = {{ {toml_key(name)} = {{ shape = [1, 3] }} }}"
    raise SpecError("unknown-rank", what, where=where, hint=hint)


def shape_text(shape: tuple[int | str | None, ...]) -> str:
    """Write a model's shape: `[batch, 3, ?]`."""
    return "[" + ", ".join("?" if size is None else str(size) for size in shape) + "]"


def _check_names(model: PreparedModel, case: CaseSpec, where: str) -> None:
    inputs = [info.name for info in model.facts.inputs]
    dimensions = [size for info in model.facts.inputs for size in info.shape or () if isinstance(size, str)]
    _check_known("input", case.inputs, inputs, where)
    _check_known("dimension", case.dimensions, list(dict.fromkeys(dimensions)), where)


def _check_known(kind: str, given: dict[str, InputSpec] | dict[str, int], known: list[str], where: str) -> None:
    for name in given:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"the model has: {', '.join(known) or 'none'}"
            raise SpecError(f"unknown-{kind}", f"the model has no {kind} '{name}'", where=where, hint=hint)
