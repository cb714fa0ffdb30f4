"""Strip: what no runtime reads."""

from copy import deepcopy

from ortrim.buildspec.step_specs import Strip
from ortrim.steps.remove import strip
from stepped_models import feeds_for, same_outputs, with_branch


def test_traces_of_the_exporter_go_wherever_they_are() -> None:
    """Properties and doc strings of nodes in a branch, of values, of the graph and of the model are removed."""
    model = with_branch()
    model.producer_name = "pytorch"
    model.metadata_props.add(key="labels", value="a,b")
    model.metadata_props.add(key="trace", value="/home/a/b.py")
    model.graph.doc_string = "doc"
    model.graph.input[0].doc_string = "doc"
    inner = model.graph.node[1].attribute[0].g.node[0]
    inner.doc_string = "File /home/a/b.py"
    inner.metadata_props.add(key="pkg.torch.onnx.stack_trace", value="File /home/a/b.py")
    before = deepcopy(model)
    done = strip(model, Strip(use="strip", keep=("labels",)))
    assert b"/home/a" not in model.SerializeToString()
    assert [entry.key for entry in model.metadata_props] == ["labels"]
    assert done.notes == ("removed 2 metadata entries", "removed 3 doc strings", "removed 1 texts about the producer")
    assert same_outputs(before, done.model, feeds_for(before))


def test_what_is_not_asked_for_stays() -> None:
    """Names of nodes and shapes of values inside stay by default; a bare model is left as it is."""
    model = with_branch()
    model.graph.value_info.append(model.graph.output[0])
    before = model.SerializeToString()
    assert strip(model, Strip(use="strip")).notes == ()
    assert model.SerializeToString() == before
    strip(model, Strip(use="strip", shapes=True, node_names=True))
    assert not model.graph.value_info
    assert [node.name for node in model.graph.node] == ["", ""]
    assert model.graph.node[1].attribute[0].g.node[0].name == ""
