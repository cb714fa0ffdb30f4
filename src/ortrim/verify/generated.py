"""Inputs made from a seed: the same on every machine, and each independent of the others."""

import hashlib
from typing import Any, Final, NoReturn

import numpy as np

from ortrim.core.model_spec import InputSpec
from ortrim.core.models import TensorInfo
from ortrim.core.spec_words import Scalar
from ortrim.errors import SpecError
from ortrim.verify.arrays import BFLOAT16, FLOATS, STRING, Array, narrowed, numpy_type

WORDS: Final = ("", "a", "the", "runtime", "model", "Zürich", "東京", "two words", "42", "-1")


def generated_array(
    info: TensorInfo, spec: InputSpec, shape: tuple[int, ...], *, seed: int, key: str, where: str
) -> Array:
    """Return the values of one input: filled with `spec.value`, else random between its bounds.

    The random stream depends on `seed` and `key` alone, so that a further input changes no other. Raises
    `SpecError` (`wrong-value`, `empty-range`).
    """
    if spec.value is not None:
        return _filled(info, spec.value, shape, where)
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *_words(key)])))
    if info.element_type == STRING:
        return _random_texts(shape, generator)
    if info.element_type in FLOATS:
        return _random_floats(info, spec, shape, generator, where)
    return _random_integers(info, spec, shape, generator, where)


def _random_texts(shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    texts = np.empty(shape, dtype=object)
    texts.reshape(-1)[:] = [WORDS[number] for number in generator.integers(0, len(WORDS), texts.size)]
    return texts


def _words(key: str) -> list[int]:
    digest = hashlib.sha256(key.encode("utf-8", errors="surrogatepass")).digest()
    return [int.from_bytes(digest[at : at + 4], "little") for at in range(0, 32, 4)]


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
