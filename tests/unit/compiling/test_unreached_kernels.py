"""Which kernels of the table a library can reach."""

from dataclasses import replace

import pytest

from kernel_tables import SOURCES
from ortrim.compiling.dead_kernels import LinkedObject, kernel_table, reached_kernels, table_kernels

TABLE = kernel_table(SOURCES)
DEPTHWISE = "_Z9DepthwiseIahEvPKT_"
KERNELS = frozenset({"FloatKernelSse", "QuantDispatchAvx2", "QuantDispatchDefault", "PoolKernel", DEPTHWISE})


def linked(
    source: str, *, defined: str = "", undefined: str = "", own: str = "", functions: str = "", live: bool = True
) -> LinkedObject:
    """Return an object with these symbols; without functions, those in the library are not told apart."""
    names = (frozenset(text.split()) for text in (defined, undefined, own, functions))
    here, there, inside, kept = names
    return LinkedObject(
        source=source, defined=here, undefined=there, live=live, functions=kept if functions else None, own=inside
    )


CONSTRUCTOR = linked("platform.cpp", undefined=f"getauxval {' '.join(KERNELS)}")


def test_the_kernels_are_those_that_the_constructor_names() -> None:
    """What else it needs is none, and neither is what others need."""
    assert table_kernels(TABLE, (CONSTRUCTOR, linked("sgemm.cpp", undefined="FloatKernelAvx"))) == KERNELS


def test_nothing_is_reached_by_the_constructor_alone() -> None:
    """It names every kernel, which is why they are all there."""
    assert reached_kernels(KERNELS, TABLE, (CONSTRUCTOR,)) == frozenset()


@pytest.mark.parametrize(
    ("source", "reached"),
    [
        ("sgemm.cpp", {"FloatKernelSse"}),
        ("snchwc.cpp", {"PoolKernel"}),
        ("qdwconv.cpp", {DEPTHWISE}),
        ("qgemm.cpp", {"QuantDispatchAvx2", "QuantDispatchDefault"}),
        ("activate.cpp", set[str]()),
    ],
)
def test_code_that_uses_an_entry_reaches_its_kernels(source: str, reached: set[str]) -> None:
    """Code that the link dropped reaches none."""
    assert reached_kernels(KERNELS, TABLE, (CONSTRUCTOR, linked(source))) == reached
    assert reached_kernels(KERNELS, TABLE, (CONSTRUCTOR, linked(source, live=False))) == frozenset()


def test_a_kernel_that_is_named_without_the_table_is_reached() -> None:
    """By another source, or in its own object, whose words the linker's script leads elsewhere, too."""
    assert reached_kernels(KERNELS, TABLE, (linked("other.cpp", undefined="PoolKernel"),)) == {"PoolKernel"}
    naming = linked("other.cpp", defined="PoolKernel", own="PoolKernel")
    assert reached_kernels(KERNELS, TABLE, (naming,)) == {"PoolKernel"}
    assert not reached_kernels(KERNELS, TABLE, (replace(naming, live=False),))


def test_a_kernel_that_data_name_is_reached() -> None:
    """Upstream has tables of kernels in objects of which no code need be in the library."""
    table = replace(linked("fixed.cpp", undefined="PoolKernel", own="FloatKernelSse", live=False), data=True)
    assert reached_kernels(KERNELS, TABLE, (CONSTRUCTOR, table)) == {"PoolKernel", "FloatKernelSse"}
    assert not reached_kernels(KERNELS, TABLE, (replace(CONSTRUCTOR, data=True),))


def test_data_use_no_entries() -> None:
    """An entry is used by code; constants for kernels in assembly lie in sources that use entries."""
    assert not reached_kernels(KERNELS, TABLE, (CONSTRUCTOR, replace(linked("sgemm.cpp", live=False), data=True)))


def test_a_kernel_beside_code_that_does_not_name_it_is_not_reached() -> None:
    """Upstream has kernels for casts in one object with those for products of 4 bits."""
    assert not reached_kernels(KERNELS, TABLE, (linked("other.cpp", defined="PoolKernel FloatKernelSse"),))


@pytest.mark.parametrize(("functions", "reached"), [
    ("MlasBlockSize", set[str]()),
    ("_Z13MlasBlockSizev", set[str]()),
    ("MlasBlockSize MlasPool", {"PoolKernel"}),
    ("MlasPool", {"PoolKernel"}),
    ("", {"PoolKernel"}),
])  # fmt: skip
def test_returning_an_entry_that_is_no_kernel_reaches_none(functions: str, reached: set[str]) -> None:
    """Upstream's kernels for blocks of channels hung on a function that says how large a block is."""
    snchwc = linked("snchwc.cpp", undefined="PoolKernel", functions=functions)
    assert reached_kernels(KERNELS, TABLE, (CONSTRUCTOR, snchwc)) == reached


@pytest.mark.parametrize(("functions", "undefined", "reached"), [
    ("startup _ZNSt3__113unordered_mapIiED2Ev", "", set[str]()),
    ("startup MlasPool", "", {"PoolKernel"}),
    ("startup _Z7StartupSt6vector", "", {"PoolKernel"}),
    ("startup", "FloatKernelSse", {"FloatKernelSse"}),
])  # fmt: skip
def test_making_globals_uses_no_entry(functions: str, undefined: str, reached: set[str]) -> None:
    """Products of 4 bits have a map of settings, which hung on their kernels; what it names counts."""
    snchwc = linked("snchwc.cpp", undefined=undefined, functions=functions)
    assert reached_kernels(KERNELS, TABLE, (CONSTRUCTOR, snchwc)) == reached


def test_a_kernel_that_is_compared_is_not_reached() -> None:
    """The object names it, but nothing calls it; whoever also calls it reaches it."""
    kernels = KERNELS | {"FloatKernelAvx"}
    assert not reached_kernels(kernels, TABLE, (CONSTRUCTOR, linked("route.cpp", undefined="FloatKernelAvx")))
    assert reached_kernels(kernels, TABLE, (linked("other.cpp", undefined="FloatKernelAvx"),)) == {"FloatKernelAvx"}


def test_only_what_was_left_out_is_asked_about() -> None:
    """The rest is in the library already."""
    assert reached_kernels(frozenset(), TABLE, (CONSTRUCTOR, linked("sgemm.cpp"))) == frozenset()
