"""The memory of a run by ONNX Runtime's plan of buffers."""

from collections.abc import Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ortrim.analysis.cost.memory import LivenessInterval, LiveTensor, Peak, planned_peak, running_order


def moment(node: str, reads: Sequence[str], makes: str, *, view: bool = False, in_place: str = "") -> LivenessInterval:
    return LivenessInterval(node=node, reads=tuple(reads), makes=tuple(makes), view=view, in_place=tuple(in_place))


def test_a_free_buffer_is_kept_for_a_later_tensor_of_its_shape() -> None:
    """`a` is read for the last time by node 2, but its buffer is there for `d`: while `c` is made, too."""
    moments = (
        moment("1", "x", "a"), moment("2", "a", "b"), moment("3", "b", "c"), moment("4", "c", "d"),
        moment("5", "d", "y"),
    )  # fmt: skip
    sizes = {"x": 1, "a": 10, "b": 5, "c": 100, "d": 10, "y": 1}
    kept = planned_peak(moments, sizes, dict.fromkeys("ad", "same"), inputs="x", outputs="y")
    assert (kept.size_bytes, kept.node) == (1 + 10 + 5 + 100, "3")
    given_back = planned_peak(moments, sizes, {"a": "one", "d": "other"}, inputs="x", outputs="y")
    assert given_back.size_bytes == 1 + 100 + 10
    unknown = planned_peak(moments, sizes, {}, inputs="x", outputs="y")
    assert unknown == given_back


def test_a_kernel_may_write_over_what_nothing_else_reads() -> None:
    chain = (moment("1", "x", "a"), moment("2", "a", "b", in_place="a"), moment("3", "b", "y"))
    sizes = dict.fromkeys("xaby", 10)
    kinds = dict.fromkeys("xaby", "same")
    assert planned_peak(chain, sizes, kinds, inputs="x", outputs="y").size_bytes == 30
    assert planned_peak(chain, sizes, {}, inputs="x", outputs="y").size_bytes == 30
    read_again = (*chain[:2], moment("3", "ba", "y"))
    assert planned_peak(read_again, sizes, kinds, inputs="x", outputs="y").size_bytes == 40
    of_the_caller = (moment("1", "x", "a", in_place="x"), moment("2", "a", "y", in_place="a"))
    assert planned_peak(of_the_caller, sizes, kinds, inputs="x", outputs="y").size_bytes == 30


def test_a_view_lies_in_its_source_unless_it_is_an_output() -> None:
    """An output has a buffer of its own, into which a Reshape copies."""
    moments = (moment("1", "x", "a"), moment("2", "a", "v", view=True), moment("3", "v", "b"))
    sizes = {"x": 1, "a": 10, "v": 10, "b": 5}
    assert planned_peak(moments, sizes, {}, inputs="x", outputs="b").size_bytes == 16
    assert planned_peak(moments[:2], sizes, {}, inputs="x", outputs="v").size_bytes == 21


def test_a_view_of_what_the_model_fixes_takes_nothing() -> None:
    moments = (moment("1", "w", "v", view=True), moment("2", "xv", "y"))
    assert planned_peak(moments, {"x": 1, "v": 10, "y": 2}, {}, inputs="x", outputs="y").size_bytes == 3


def test_kernels_count_with_what_they_take_themselves() -> None:
    moments = (moment("1", "x", "a"), LivenessInterval(node="2", reads=("a",), makes=("y",), workspace=50))
    peak = planned_peak(moments, {"x": 1, "a": 10, "y": 2}, {}, inputs="x", outputs="y")
    assert (peak.size_bytes, peak.node) == (63, "2")
    assert peak.tensors[-1] == LiveTensor(name="(the kernel's own)", size_bytes=50)


def test_nodes_run_depth_first_from_the_results() -> None:
    """Not in the order of the file: of a node's inputs, the one whose maker stands last in the file is made first."""
    moments = (
        moment("left", "x", "a"), moment("right", "x", "b"), moment("right again", "b", "c"), moment("both", "ac", "y"),
    )  # fmt: skip
    assert [moments[number].node for number in running_order(moments)] == ["right", "right again", "left", "both"]
    assert running_order(()) == ()


def test_nodes_in_a_circle_come_last() -> None:
    moments = (moment("1", "b", "a"), moment("2", "a", "b"), moment("3", "x", "y"))
    assert running_order(moments) == (2, 0, 1)


NAMES = st.sampled_from("abcdef")


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.builds(
            LivenessInterval,
            node=st.just("n"),
            reads=st.lists(NAMES, max_size=3).map(tuple),
            makes=st.lists(NAMES, max_size=2).map(tuple),
            view=st.booleans(),
            in_place=st.lists(NAMES, max_size=2).map(tuple),
        ),
        max_size=8,
    ),
    st.dictionaries(NAMES, st.integers(0, 1000)),
    st.dictionaries(NAMES, st.sampled_from(("one", "other"))),
)
def test_any_order_of_nodes_has_a_peak(
    moments: list[LivenessInterval], sizes: dict[str, int], kinds: dict[str, str]
) -> None:
    """Even one that no model can have; it is never more than all tensors together, nor less than the inputs."""
    peak: Peak = planned_peak(moments, sizes, kinds, inputs="a", outputs="f")
    assert sizes.get("a", 0) <= peak.size_bytes <= sum(sizes.values())
    assert sum(each.size_bytes for each in peak.tensors) == peak.size_bytes
    assert sorted(running_order(moments)) == list(range(len(moments)))
