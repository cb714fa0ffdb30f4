from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.compiling.translation_units import ObjectSymbols, Unit, UnitIndex, kernel_key, make_index, select_units
from ortrim.errors import ExitCode, SourcesError
from ortrim.models.operators import required_operators
from unit_samples import (
    ADD,
    GEMM,
    INTERFACE,
    OBJECTS,
    PROVIDER,
    SESSION,
    SGEMM,
    VARIANT,
    kernel,
    object_lists,
    sample_index,
    symbols,
)

EVERYTHING = required_operators((), no_operators_means_all=True)


def unit_of(index: UnitIndex, path: str) -> Unit:
    """Return the entry of one unit."""
    return next(unit for unit in index.units if unit.path == path)


def needed_by(index: UnitIndex, path: str) -> set[str]:
    """Return the paths of what one unit needs."""
    return {index.units[number].path for number in unit_of(index, path).needs}


def refused(objects: tuple[ObjectSymbols, ...], roots: tuple[str, ...]) -> SourcesError:
    """Make an index that must be refused."""
    with pytest.raises(SourcesError) as caught:
        make_index(VARIANT, objects, roots)
    assert (caught.value.code, caught.value.exit_code) == ("bad-unit-index", ExitCode.SOURCES)
    return caught.value


def test_index_says_who_needs_whom() -> None:
    """A unit needs those that define what it does not; it offers only what another needs."""
    index = sample_index()
    assert needed_by(index, INTERFACE) == {SESSION}
    assert needed_by(index, GEMM) == {SGEMM, ADD}
    assert unit_of(index, SESSION).provides == ("OrtGetApiBase", "_ZTV3Log")
    assert [index.units[number].path for number in index.roots] == [INTERFACE]


def test_kernels_are_needed_by_operators_alone() -> None:
    """The registration file needs no kernel; each operator has the units of all its opsets and types."""
    index = sample_index()
    assert needed_by(index, PROVIDER) == {SESSION}
    kernels = {key: [index.units[number].path for number in numbers] for key, numbers in index.kernels}
    assert kernels == {"ai.onnx:Add": [ADD], "ai.onnx:Gemm": [GEMM], "com.microsoft:FusedGemm": [GEMM]}
    assert not any(kernel_key(symbol) for unit in index.units for symbol in unit.provides)


def test_kernel_that_cannot_be_told_is_always_compiled() -> None:
    """A kernel of an operator that no configuration can name is an ordinary need of the registration file."""
    strange = kernel("kCpuExecutionProvider_Odd_kSomeNewDomain_ver1")
    objects = (symbols(INTERFACE, (), (strange,)), symbols(ADD, (strange,)))
    index = make_index(VARIANT, objects, [INTERFACE])
    assert needed_by(index, INTERFACE) == {ADD}
    assert unit_of(index, ADD).provides == (strange,)


def test_all_definers_of_a_symbol_are_needed() -> None:
    """Of a weak symbol in several objects the linker may take any, so all are compiled."""
    objects = (symbols(INTERFACE, (), ("weak",)), symbols(ADD, ("weak",)), symbols(GEMM, ("weak",)))
    assert needed_by(make_index(VARIANT, objects, [INTERFACE]), INTERFACE) == {ADD, GEMM}


def test_unit_compiled_twice_is_one_unit() -> None:
    """Files of protobuf are in two libraries: what either object needs and defines is the unit's."""
    objects = (
        symbols(INTERFACE, (), ("one", "two")),
        symbols(ADD, ("one",), ("two", "other")),
        symbols(ADD, ("two",), ()),
        symbols(GEMM, ("other",)),
    )
    index = make_index(VARIANT, objects, [INTERFACE])
    assert needed_by(index, ADD) == {GEMM}
    assert unit_of(index, ADD).provides == ("one", "two")


def test_root_that_was_not_compiled_is_refused() -> None:
    """An index whose root is missing would select nothing, so none is made; nor one without roots."""
    assert SGEMM in refused(OBJECTS[:2], (INTERFACE, SGEMM)).why
    assert "no roots" in refused(OBJECTS, ()).why
    assert INTERFACE in refused((), (INTERFACE,)).why


@pytest.mark.parametrize("path", ["${sources}/a;b.cc", "/elsewhere/a.cc", "${sources}/a b.cc", ""])
def test_name_that_an_index_cannot_hold_is_refused(path: str) -> None:
    """A folder with a strange name does not get into an index."""
    assert "path" in refused((symbols(INTERFACE), symbols(path)), (INTERFACE,)).why


@given(object_lists, st.randoms(use_true_random=False))
def test_order_of_the_objects_does_not_matter(objects: list[ObjectSymbols], random: Random) -> None:
    """The same objects give the same index."""
    shuffled = sorted(objects, key=lambda _: random.random())
    assert make_index(VARIANT, shuffled, [INTERFACE, INTERFACE]) == make_index(VARIANT, objects, [INTERFACE])


@given(object_lists, st.booleans())
def test_selection_leaves_nothing_undefined(objects: list[ObjectSymbols], everything: bool) -> None:  # noqa: FBT001
    """Whatever a selected unit needs, kernels aside, every unit that defines it is selected as well."""
    index = make_index(VARIANT, objects, [INTERFACE])
    selected = set(select_units(index, EVERYTHING if everything else required_operators(())))
    defined = {symbol for entry in objects if entry.unit in selected for symbol in entry.defined}
    needed = {symbol for entry in objects if entry.unit in selected for symbol in entry.undefined} - defined
    left = {symbol for entry in objects for symbol in entry.defined} & needed
    assert all(kernel_key(symbol) for symbol in left)
    assert not (everything and left)
