"""The peak of activations by their lifetimes."""

from collections.abc import Sequence
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ortrim.analysis.cost.counting import Counting
from ortrim.analysis.cost.memory import (
    RULES,
    LivenessInterval,
    LiveTensor,
    Peak,
    peak_of,
    planned_peak,
    running_order,
    workspace_of,
)
from ortrim.models.shapes import Shape


def interval(
    node: str, reads: Sequence[str], makes: str, *, view: bool = False, in_place: str = ""
) -> LivenessInterval:
    return LivenessInterval(node=node, reads=tuple(reads), makes=tuple(makes), view=view, in_place=tuple(in_place))


NAMES = st.sampled_from("abcdef")
INTERVALS = st.lists(
    st.builds(
        LivenessInterval,
        node=st.just("n"),
        reads=st.lists(NAMES, max_size=3).map(tuple),
        makes=st.lists(NAMES, max_size=2).map(tuple),
        view=st.booleans(),
        in_place=st.lists(NAMES, max_size=2).map(tuple),
    ),
    max_size=8,
)
SIZES = st.dictionaries(NAMES, st.integers(0, 1000))


def test_a_tensor_lives_from_its_making_to_its_last_reader() -> None:
    """The skipped connection is what costs: `a` is still there when `c` is made from `b`."""
    intervals = (interval("1", "x", "a"), interval("2", "a", "b"), interval("3", "b", "c"), interval("4", "ac", "y"))
    peak = peak_of(intervals, {"x": 1, "a": 10, "b": 20, "c": 30, "y": 5}, inputs="x", outputs="y")
    assert (peak.size_bytes, peak.node) == (1 + 10 + 20 + 30, "3")
    assert [each.name for each in peak.tensors] == ["c", "b", "a", "x"]


def test_the_timeline_tells_what_is_alive_while_each_node_runs() -> None:
    """In the order of running; its highest point is the peak, and nodes inside stand on what is alive outside."""
    intervals = (interval("1", "x", "a"), interval("2", "a", "b"), interval("3", "b", "y"))
    sizes = {"x": 1, "a": 10, "b": 20, "y": 5}
    peak = peak_of(intervals, sizes, inputs="x", outputs="y")
    assert peak.timeline == (("1", 11), ("2", 31), ("3", 26))
    inner = LivenessInterval(node="if", reads=("x",), makes=("y",), inside=peak)
    assert peak_of((inner,), sizes, inputs="x", outputs="y").timeline == (("1", 17), ("2", 37), ("3", 32))


def test_inputs_and_outputs_outlive_the_run() -> None:
    intervals = (interval("1", "x", "y"), interval("2", "x", "a"), interval("3", "a", "z"))
    assert peak_of(intervals, {"x": 1, "y": 2, "a": 4, "z": 8}, inputs="x", outputs="yz").size_bytes == 15


def test_a_node_that_makes_nothing_takes_nothing() -> None:
    intervals = (interval("1", "x", ""), interval("2", "x", "y"))
    assert peak_of(intervals, {"x": 1, "": 10, "y": 2}, inputs="x", outputs="y").size_bytes == 3


def test_a_view_takes_no_memory_and_keeps_its_source() -> None:
    """`a` is read under the name `v` when `b` is made."""
    intervals = (interval("1", "x", "a"), interval("2", "a", "v", view=True), interval("3", "v", "b"))
    assert peak_of(intervals, {"x": 1, "a": 10, "v": 10, "b": 5}, inputs="x", outputs="b").size_bytes == 16


def test_what_is_read_for_the_last_time_is_written_over() -> None:
    """In place only then, only for equal sizes, and never what the caller owns."""
    sizes = {"x": 10, "a": 10, "b": 10, "y": 10}
    chain = (interval("1", "x", "a", in_place="x"), interval("2", "a", "b", in_place="a"), interval("3", "b", "y"))
    assert peak_of(chain, sizes, inputs="x", outputs="y").size_bytes == 30
    again = (*chain[:2], interval("3", "ba", "y"))
    assert peak_of(again, sizes, inputs="x", outputs="y").size_bytes == 40
    assert peak_of(chain[:2], {**sizes, "b": 11}, inputs="x", outputs="b").size_bytes == 31


def test_the_peak_inside_a_node_comes_on_top() -> None:
    inside = Peak(size_bytes=100, node="if/conv", tensors=(LiveTensor(name="t", size_bytes=100),))
    intervals = (interval("1", "x", "a"), LivenessInterval(node="if", reads=("a",), makes=("y",), inside=inside))
    peak = peak_of(intervals, {"x": 1, "a": 10, "y": 2}, inputs="x", outputs="y")
    assert (peak.size_bytes, peak.node) == (113, "if/conv")
    assert peak.tensors[-1].name == "t"


def test_nothing_takes_nothing() -> None:
    assert peak_of((), {}, inputs=(), outputs=()) == Peak(size_bytes=0, node="", tensors=())
    assert peak_of((interval("1", "q", "r", view=True),), {}, inputs="q", outputs="r").size_bytes == 0


@given(INTERVALS, SIZES)
def test_any_order_of_nodes_has_a_peak(intervals: list[LivenessInterval], sizes: dict[str, int]) -> None:
    """Even one that no model can have; it is never more than all tensors together, nor less than the inputs."""
    peak = peak_of(intervals, sizes, inputs="a", outputs="f")
    assert sizes.get("a", 0) <= peak.size_bytes <= sum(sizes.values())
    assert sum(each.size_bytes for each in peak.tensors) == peak.size_bytes


def test_a_free_buffer_is_kept_for_a_later_tensor_of_its_shape() -> None:
    """`a` is read for the last time by node 2, but its buffer is there for `d`: while `c` is made, too."""
    intervals = (
        interval("1", "x", "a"), interval("2", "a", "b"), interval("3", "b", "c"), interval("4", "c", "d"),
        interval("5", "d", "y"),
    )  # fmt: skip
    sizes = {"x": 1, "a": 10, "b": 5, "c": 100, "d": 10, "y": 1}
    kept = planned_peak(intervals, sizes, dict.fromkeys("ad", "same"), inputs="x", outputs="y")
    assert (kept.size_bytes, kept.node) == (1 + 10 + 5 + 100, "3")
    given_back = planned_peak(intervals, sizes, {"a": "one", "d": "other"}, inputs="x", outputs="y")
    assert given_back.size_bytes == 1 + 100 + 10
    unknown = planned_peak(intervals, sizes, {}, inputs="x", outputs="y")
    assert unknown == given_back


def test_a_kernel_may_write_over_what_nothing_else_reads() -> None:
    chain = (interval("1", "x", "a"), interval("2", "a", "b", in_place="a"), interval("3", "b", "y"))
    sizes = dict.fromkeys("xaby", 10)
    kinds = dict.fromkeys("xaby", "same")
    assert planned_peak(chain, sizes, kinds, inputs="x", outputs="y").size_bytes == 30
    assert planned_peak(chain, sizes, {}, inputs="x", outputs="y").size_bytes == 30
    read_again = (*chain[:2], interval("3", "ba", "y"))
    assert planned_peak(read_again, sizes, kinds, inputs="x", outputs="y").size_bytes == 40
    of_the_caller = (interval("1", "x", "a", in_place="x"), interval("2", "a", "y", in_place="a"))
    assert planned_peak(of_the_caller, sizes, kinds, inputs="x", outputs="y").size_bytes == 30


def test_a_view_lies_in_its_source_unless_it_is_an_output() -> None:
    """An output has a buffer of its own, into which a Reshape copies."""
    intervals = (interval("1", "x", "a"), interval("2", "a", "v", view=True), interval("3", "v", "b"))
    sizes = {"x": 1, "a": 10, "v": 10, "b": 5}
    assert planned_peak(intervals, sizes, {}, inputs="x", outputs="b").size_bytes == 16
    assert planned_peak(intervals[:2], sizes, {}, inputs="x", outputs="v").size_bytes == 21


def test_a_view_of_what_the_model_fixes_takes_nothing() -> None:
    intervals = (interval("1", "w", "v", view=True), interval("2", "xv", "y"))
    assert planned_peak(intervals, {"x": 1, "v": 10, "y": 2}, {}, inputs="x", outputs="y").size_bytes == 3


def test_kernels_count_with_what_they_take_themselves() -> None:
    intervals = (interval("1", "x", "a"), LivenessInterval(node="2", reads=("a",), makes=("y",), workspace=50))
    peak = planned_peak(intervals, {"x": 1, "a": 10, "y": 2}, {}, inputs="x", outputs="y")
    assert (peak.size_bytes, peak.node) == (63, "2")
    assert peak.tensors[-1] == LiveTensor(name="(the kernel's own)", size_bytes=50)


def test_nodes_run_depth_first_from_the_results() -> None:
    """Not in the order of the file: of a node's inputs, the one whose maker stands last in the file is made first."""
    intervals = (
        interval("left", "x", "a"), interval("right", "x", "b"), interval("right again", "b", "c"),
        interval("both", "ac", "y"),
    )  # fmt: skip
    assert [intervals[number].node for number in running_order(intervals)] == ["right", "right again", "left", "both"]
    assert running_order(()) == ()


def test_nodes_in_a_circle_come_last() -> None:
    intervals = (interval("1", "b", "a"), interval("2", "a", "b"), interval("3", "x", "y"))
    assert running_order(intervals) == (2, 0, 1)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(INTERVALS, SIZES, st.dictionaries(NAMES, st.sampled_from(("one", "other"))))
def test_any_order_of_nodes_has_a_planned_peak(
    intervals: list[LivenessInterval], sizes: dict[str, int], kinds: dict[str, str]
) -> None:
    """Even one that no model can have; it is never more than all tensors together, nor less than the inputs."""
    peak: Peak = planned_peak(intervals, sizes, kinds, inputs="a", outputs="f")
    assert sizes.get("a", 0) <= peak.size_bytes <= sum(sizes.values())
    assert sum(each.size_bytes for each in peak.tensors) == peak.size_bytes
    assert sorted(running_order(intervals)) == list(range(len(intervals)))


def node(operator: str, inputs: tuple[Shape | None, ...], output: Shape | None, **attributes: Any) -> Counting:
    return Counting(operator=operator, inputs=inputs, outputs=(output,), attributes=attributes)


IMAGE: Final = (2, 8, 4, 4)
CASES: Final = (
    ("more filters than places", node("Conv", (IMAGE, (64, 8, 3, 3)), (2, 64, 2, 2)), 4 * 8 * 9 * 4),
    ("fewer filters", node("Conv", (IMAGE, (16, 8, 3, 3)), (2, 16, 4, 4), pads=(1, 1, 1, 1)), 0),
    ("few filters of a group", node("Conv", (IMAGE, (64, 1, 3, 3)), (2, 64, 4, 4), pads=(1, 1, 1, 1), group=8), 0),
    ("one place", node("Conv", (IMAGE, (64, 8, 1, 1)), (2, 64, 4, 4)), 0),
    ("one place, with strides", node("Conv", (IMAGE, (64, 8, 1, 1)), (2, 64, 2, 2), strides=(2, 2)), 4 * 8 * 4),
    ("columns", node("ConvTranspose", (IMAGE, (8, 5, 2, 2)), (2, 5, 8, 8)), 16 * 5 * 4 * 4),
    ("last axis", node("Softmax", (IMAGE,), IMAGE), 0),
    ("last axis by number", node("Softmax", (IMAGE,), IMAGE, axis=3), 0),
    ("another axis", node("Softmax", (IMAGE,), IMAGE, axis=1), 2 * 256 * 4),
    ("squares", node("LRN", (IMAGE,), IMAGE, size=5), (256 + 12 * 16) * 4),
    ("gates", node("LSTM", ((7, 2, 3), (1, 20, 3), (1, 20, 5)), (7, 1, 2, 5)), 7 * 2 * 20 * 4),
    (
        "both ways",
        node("GRU", ((7, 2, 3), (2, 15, 3), (2, 15, 5)), (7, 2, 2, 5), direction="bidirectional"),
        7 * 2 * (30 + 3 + 5) * 4,
    ),
    ("bytes", node("ConvInteger", (IMAGE, (4, 8, 3, 3)), (2, 4, 2, 2)), 4 * 72),
    ("bytes of one place", node("ConvInteger", (IMAGE, (4, 8, 1, 1)), (2, 4, 4, 4)), 0),
    (
        "heads",
        node("com.microsoft:Attention", ((1, 6, 8), (8, 24)), (1, 6, 8), num_heads=2),
        (6 * 24 + 2 * 36 + 6 * 8) * 4,
    ),
    ("sums", node("QLinearMatMul", ((3, 4),), (3, 5)), 60),
    ("quantized", node("com.microsoft:DynamicQuantizeMatMul", ((3, 4), (4, 5)), (3, 5)), 12),
    ("no rule", node("Relu", (IMAGE,), IMAGE), 0),
)


@pytest.mark.parametrize(("counting", "size"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_kernels_take_what_their_sources_say(counting: Counting, size: int) -> None:
    assert workspace_of(counting, 17) == size


def test_before_opset_13_softmax_turns_nothing() -> None:
    assert workspace_of(node("Softmax", (IMAGE,), IMAGE, axis=1), 12) == 0


@pytest.mark.parametrize("operator", RULES)
def test_what_is_not_known_takes_nothing(operator: str) -> None:
    shapes: tuple[Shape | None, ...] = (None, (), (0,), (1, 2, 3, 4, 5, 6))
    assert all(workspace_of(node(operator, (shape,) * 3, shape), 17) >= 0 for shape in shapes)
    assert workspace_of(node(operator, (), None), 17) == 0
