"""The peak of activations by their lifetimes."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from ortrim.analysis.cost.memory import LivenessInterval, LiveTensor, Peak, peak_of


def interval(
    node: str, reads: Sequence[str], makes: str, *, view: bool = False, in_place: bool = False
) -> LivenessInterval:
    given_up = tuple(reads) if in_place else ()
    return LivenessInterval(node=node, reads=tuple(reads), makes=(makes,), view=view, in_place=given_up)


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
    intervals = (LivenessInterval(node="1", reads=("x",), makes=()), interval("2", "x", "y"))
    assert peak_of(intervals, {"x": 1, "": 10, "y": 2}, inputs="x", outputs="y").size_bytes == 3


def test_a_view_takes_no_memory_and_keeps_its_source() -> None:
    """`a` is read under the name `v` when `b` is made."""
    intervals = (interval("1", "x", "a"), interval("2", "a", "v", view=True), interval("3", "v", "b"))
    assert peak_of(intervals, {"x": 1, "a": 10, "v": 10, "b": 5}, inputs="x", outputs="b").size_bytes == 16


def test_what_is_read_for_the_last_time_is_written_over() -> None:
    """In place only then, only for equal sizes, and never what the caller owns."""
    sizes = {"x": 10, "a": 10, "b": 10, "y": 10}
    chain = (interval("1", "x", "a", in_place=True), interval("2", "a", "b", in_place=True), interval("3", "b", "y"))
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


@given(
    st.lists(
        st.builds(
            LivenessInterval,
            node=st.just("n"),
            reads=st.lists(st.sampled_from("abcdef"), max_size=3).map(tuple),
            makes=st.lists(st.sampled_from("abcdef"), max_size=2).map(tuple),
            view=st.booleans(),
            in_place=st.lists(st.sampled_from("abcdef"), max_size=2).map(tuple),
        ),
        max_size=8,
    ),
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 1000)),
)
def test_any_order_of_nodes_has_a_peak(intervals: list[LivenessInterval], sizes: dict[str, int]) -> None:
    """Even one that no model can have; it is never more than all tensors together, nor less than the inputs."""
    peak = peak_of(intervals, sizes, inputs="a", outputs="f")
    assert sizes.get("a", 0) <= peak.size_bytes <= sum(sizes.values())
    assert sum(each.size_bytes for each in peak.tensors) == peak.size_bytes
