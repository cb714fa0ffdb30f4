from hypothesis import given
from hypothesis import strategies as st

from operator_strategies import operators
from ortrim.compiling.translation_units import Provided, UnitIndex, providers, select_units
from ortrim.models.operators import EMPTY, OperatorId, RequiredOperators, required_operators
from unit_samples import (
    ADD,
    ADD_OLD,
    GEMM,
    INTERFACE,
    KERNELS,
    NAMES,
    PROVIDER,
    SESSION,
    SGEMM,
    indices,
    kernel,
    sample_index,
)

BASE = {INTERFACE, SESSION, PROVIDER}
EVERYTHING = required_operators((), no_operators_means_all=True)


def required(*names: str, domain: str = "ai.onnx") -> RequiredOperators:
    """Return a requirement of operators at some opset."""
    return required_operators(OperatorId(domain=domain, opset=3, name=name) for name in names)


def test_roots_alone_give_what_every_library_has() -> None:
    """Without operators, what the interface leads to is selected, and no kernel."""
    assert set(select_units(sample_index(), EMPTY)) == BASE


def test_operator_brings_its_kernels_and_what_they_need() -> None:
    """Kernels of every opset count; what a kernel needs comes along, down to the last."""
    index = sample_index()
    assert set(select_units(index, required("Add"))) == BASE | {ADD}
    assert set(select_units(index, required("Gemm"))) == BASE | {GEMM, SGEMM, ADD}
    assert set(select_units(index, required("FusedGemm", domain="com.microsoft"))) == BASE | {GEMM, SGEMM, ADD}
    assert set(select_units(index, EVERYTHING)) == BASE | {GEMM, SGEMM, ADD}


def test_unknown_operator_adds_nothing() -> None:
    """An operator of another domain or another name is left for the link to ask for."""
    index = sample_index()
    assert set(select_units(index, required("Softmax", "ad", "Add_", "", ":"))) == BASE
    assert set(select_units(index, required("Add", domain="com.microsoft"))) == BASE


def test_missing_symbol_leads_to_its_units() -> None:
    """What a link did not find comes with all that it needs."""
    assert providers(sample_index(), ["sgemm"]) == Provided(units=(SGEMM,), unknown=())
    assert set(providers(sample_index(), ["make_provider"]).units) == {PROVIDER, SESSION}


def test_missing_kernel_is_found_by_its_operator() -> None:
    """Also one of an opset or type that the index never saw."""
    unseen = kernel("kCpuExecutionProvider_Gemm_kOnnxDomain_ver99_Float8")
    assert set(providers(sample_index(), [ADD_OLD]).units) == {ADD, SESSION, PROVIDER}
    assert set(providers(sample_index(), [unseen]).units) == {GEMM, SGEMM, ADD, SESSION, PROVIDER}


def test_symbols_that_nobody_provides_are_told() -> None:
    """The caller learns which symbols remain missing, sorted, each once."""
    unseen = kernel("kCpuExecutionProvider_Softmax_kOnnxDomain_ver13_float")
    found = providers(sample_index(), iter(["sgemm", "zlib", "malloc", "malloc", unseen]))
    assert found == Provided(units=(SGEMM,), unknown=tuple(sorted(["malloc", "zlib", unseen])))
    assert providers(sample_index(), []) == Provided(units=(), unknown=())


@given(indices, operators, operators)
def test_more_operators_never_select_less(
    index: UnitIndex, some: frozenset[OperatorId], more: frozenset[OperatorId]
) -> None:
    """The selection grows with the operators, up to that of all operators, and stays inside the index."""
    fewer = set(select_units(index, required_operators(some)))
    greater = set(select_units(index, required_operators(some | more)))
    assert set(select_units(index, EMPTY)) <= fewer <= greater <= set(select_units(index, EVERYTHING))
    assert greater <= {unit.path for unit in index.units}


@given(indices, st.lists(st.sampled_from((*NAMES, *KERNELS, "nobody"))))
def test_providers_are_units_of_the_index(index: UnitIndex, missing: list[str]) -> None:
    """Every symbol is provided or told; the units are sorted, each once, and all in the index."""
    found = providers(index, missing)
    assert list(found.units) == sorted(set(found.units) & {unit.path for unit in index.units})
    assert set(found.unknown) <= set(missing)
    assert bool(found.units) or set(found.unknown) == set(missing)
