from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.size.accounting import GROUPINGS, Accounting, Leaf, account
from ortrim.size.library import SizeChange, changes, comparable

DATA = Path(__file__).with_name("data")
LEAVES = st.lists(
    st.builds(
        Leaf,
        component=st.sampled_from("abc"),
        section=st.sampled_from([".text", ".data"]),
        file=st.sampled_from(["", "x.a(a.o)", "b.o"]),
        symbol=st.sampled_from(["f", "g", ".rodata"]),
        operator=st.sampled_from(["", "Add", "Mul"]),
        size_bytes=st.integers(min_value=1, max_value=1000),
    )
)


def accounting(leaves: list[Leaf]) -> Accounting:
    size = sum(leaf.size_bytes for leaf in leaves)
    return Accounting(file_bytes=size, zeroed_bytes=0, leaves=tuple(leaves), mapped=True, notes=())


@pytest.fixture
def pair() -> tuple[Accounting, Accounting]:
    before = account(DATA / "fewer.so", DATA / "fewer.map")
    return comparable(before, account(DATA / "folded.so", DATA / "folded.map"))


@given(LEAVES, LEAVES, st.sampled_from(list(GROUPINGS)))
def test_the_changes_sum_to_the_difference_of_the_files(old: list[Leaf], new: list[Leaf], by: str) -> None:
    """Nothing is counted twice or left out, whatever it is grouped by; the largest effect comes first."""
    before, after = accounting(old), accounting(new)
    found = changes(before, after, GROUPINGS[by])
    assert sum(change.difference for change in found) == after.file_bytes - before.file_bytes
    effects = [abs(change.difference) for change in found]
    assert effects == sorted(effects, reverse=True)
    assert all(effects)


def test_what_grew_is_new_or_larger(pair: tuple[Accounting, Accounting]) -> None:
    """The operators of a file that only the second library has are new; the first file loses what all files share."""
    by_operator = {change.name[0]: change for change in changes(*pair, GROUPINGS["operator"])}
    assert by_operator["Add"].kind == by_operator["Mul"].kind == "new"
    assert (by_operator["Relu"].kind, by_operator["Relu"].difference) == ("shrunk", -24)
    by_component = {change.name[0]: change.kind for change in changes(*pair, GROUPINGS["component"])}
    assert by_component["providers"] == "grown"
    back = changes(pair[1], pair[0], GROUPINGS["operator"])
    assert {change.name[0]: change.kind for change in back}["Add"] == "gone"


def test_the_same_code_has_the_same_operator_in_both() -> None:
    """A file that registers a second operator in the newer library is shared in both, not gone in one of them."""
    alone = Leaf(component="providers", section=".text", file="r.o", symbol="sum", size_bytes=9)
    registers = [
        Leaf(
            component="providers",
            section=".text",
            file="r.o",
            symbol=f"BuildKernelCreateInfo<onnxruntime::kCpuExecutionProvider_{name}_kOnnxDomain_ver1>()",
            size_bytes=1,
        )
        for name in ("Max", "Min")
    ]
    before, after = comparable(accounting([alone, registers[0]]), accounting([alone, *registers]))
    assert changes(before, after, GROUPINGS["operator"]) == (SizeChange(name=("Min",), before=0, after=1),)
    assert before.leaves[0].operator == "several in r.o"


def test_one_library_twice_has_no_changes(pair: tuple[Accounting, Accounting]) -> None:
    assert all(changes(pair[0], pair[0], key) == () for key in GROUPINGS.values())
