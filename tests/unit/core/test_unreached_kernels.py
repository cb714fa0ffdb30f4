"""Which kernels of the table a library can reach."""

import pytest

from kernel_tables import SOURCES
from ortrim.core.kernel_table import kernel_table
from ortrim.core.unreached_kernels import LinkedObject, reached_kernels, table_kernels

TABLE = kernel_table(SOURCES)
DEPTHWISE = "_Z9DepthwiseIahEvPKT_"
KERNELS = frozenset({"FloatKernelSse", "QuantDispatchAvx2", "QuantDispatchDefault", "PoolKernel", DEPTHWISE})


def linked(source: str, *, defined: str = "", undefined: str = "", live: bool = True) -> LinkedObject:
    """Return an object with these symbols."""
    return LinkedObject(
        source=source, defined=frozenset(defined.split()), undefined=frozenset(undefined.split()), live=live
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
    """By another source, or by code beside it in its own object, which may call it without a word of the linker's."""
    assert reached_kernels(KERNELS, TABLE, (linked("other.cpp", undefined="PoolKernel"),)) == {"PoolKernel"}
    assert reached_kernels(KERNELS, TABLE, (linked("other.cpp", defined="PoolKernel"),)) == {"PoolKernel"}
    assert not reached_kernels(KERNELS, TABLE, (linked("other.cpp", defined="PoolKernel", live=False),))


def test_only_what_was_left_out_is_asked_about() -> None:
    """The rest is in the library already."""
    assert reached_kernels(frozenset(), TABLE, (CONSTRUCTOR, linked("sgemm.cpp"))) == frozenset()
