"""MLAS's table of kernels, read out of sources in upstream's manner."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_tables import SOURCES
from ortrim.compiling.dead_kernels import CONSTRUCTORS, DECLARATIONS, kernel_table

TABLE = kernel_table(SOURCES)


@pytest.mark.parametrize(
    ("kernel", "users"),
    [
        ("FloatKernelSse", {"sgemm.cpp"}),
        ("FloatKernelAvx", {"sgemm.cpp"}),
        ("PoolKernel", {"snchwc.cpp"}),
        ("QuantDispatchDefault", {"qgemm.h", "qgemm.cpp", "qgemm_avx2.cpp"}),
        ("QuantDispatchAvx2", {"qgemm.h", "qgemm.cpp", "qgemm_avx2.cpp"}),
        ("_Z9DepthwiseIahEvPKT_", {"qdwconv.cpp"}),
        ("ExpKernel", {"platform.cpp", "compute.cpp"}),
    ],
)
def test_a_kernel_is_used_by_the_sources_that_use_its_entries(kernel: str, users: set[str]) -> None:
    """Entries that are arrays, that have defaults, that headers use for their includers; mangled templates, too."""
    assert TABLE.users(kernel) == frozenset(users)


def test_functions_that_are_called_for_an_entry_are_known() -> None:
    """MLAS asks one of them for its products of 4 bits: an address without code ended the first inference on ARM64."""
    assert TABLE.called == {"ChosenDispatch"}
    assert TABLE.is_called("_Z14ChosenDispatchi")
    assert not TABLE.is_called("QuantDispatchAvx2")


def test_functions_that_return_an_entry_without_kernels_are_known() -> None:
    """And those that only ask the processor, whichever way the preprocessor decides; not those that do more."""
    assert TABLE.getters == {"MlasBlockSize", "MlasHalfSupported"}
    assert TABLE.only_gets("_Z13MlasBlockSizev")
    assert TABLE.only_gets("_ZNK13MLAS_CPUIDINFO7HasHalfEv")
    assert not TABLE.only_gets("MlasPool")


@pytest.mark.parametrize("symbol", ["_Z13MlasBlockSizei", "_Z4CallIXadL_Z13MlasBlockSizevEEEiv", "13MlasBlockSize"])
def test_a_function_with_a_getters_name_inside_is_another(symbol: str) -> None:
    """It may be one of the same name that takes something and uses an entry, or one that the getter is given to."""
    assert not TABLE.only_gets(symbol)


def test_a_number_is_no_kernel() -> None:
    """As one, it would be found in every mangled name that has a part of 18 letters; nor is one that has a name."""
    assert TABLE.entries.keys().isdisjoint({"8", "BLOCK_OF_TWO"})
    assert TABLE.users("_Z18_InternalSerialize") is None


@pytest.mark.parametrize(
    "symbol", ["getauxval", "memcpy", "_ZdlPv", "FloatKernel", "_Z11FloatKernelv", "", "_Z9Depthwis"]
)
def test_what_the_constructor_merely_calls_is_no_kernel(symbol: str) -> None:
    """Nothing is known of it, so that it stays."""
    assert TABLE.users(symbol) is None


def test_comparing_entries_is_no_use_of_a_kernel() -> None:
    """The constructor's source asks whether two entries are the same; the kernels need not be there for that."""
    assert "platform.cpp" not in (TABLE.users("QuantDispatchAvx2") or ())


def test_comparing_an_entry_with_a_kernel_is_no_use_of_either() -> None:
    """Upstream chooses another way for what one kernel is chosen for; an address of its own is enough for that."""
    assert "route.cpp" not in (TABLE.users("FloatKernelAvx") or ())
    assert "route.cpp" not in (TABLE.users("CastKernel") or ())
    assert TABLE.only_compares("route.cpp", "FloatKernelAvx")
    assert not TABLE.only_compares("route.cpp", "FloatKernelSse")
    assert not TABLE.only_compares("sgemm.cpp", "FloatKernelAvx")


@pytest.mark.parametrize(
    "use",
    [
        "GetMlasPlatform().FloatRoutine == FloatKernelAvx(1)",
        "GetMlasPlatform().FloatRoutine == FloatKernelAvx; FloatKernelAvx(1);",
        "FloatKernelAvx == Chosen(GetMlasPlatform().FloatRoutine)",
        "FloatKernelAvx(1) == GetMlasPlatform().FloatRoutine(1)",
        "1 == GetMlasPlatform().FloatRoutine(1)",
        "GetMlasPlatform().FloatRoutine(1) == FloatKernelAvx(1)",
    ],
)
def test_a_call_beside_a_comparison_is_a_use(use: str) -> None:
    """Also of what is compared elsewhere in the same source."""
    table = kernel_table(SOURCES | {"route.cpp": SOURCES["route.cpp"] + f"int Other() {{ return {use}; }}"})
    named = not table.only_compares("route.cpp", "FloatKernelAvx")
    assert named or "route.cpp" in (table.users("FloatKernelAvx") or ())


@pytest.mark.parametrize("absent", [CONSTRUCTORS[0], DECLARATIONS])
def test_without_its_sources_there_is_no_table(absent: str) -> None:
    """Then nothing is left out."""
    assert (
        kernel_table({name: text for name, text in SOURCES.items() if name != absent}).users("FloatKernelSse") is None
    )


@given(text=st.text(alphabet='structMLAS_PLATFORM {};=this->&x[]()\n"#include', max_size=200))
def test_any_text_is_read(text: str) -> None:
    """Another version's sources may look like anything."""
    assert kernel_table({CONSTRUCTORS[0]: text, DECLARATIONS: f"struct MLAS_PLATFORM {{\n{text}\n}};"}) is not None
