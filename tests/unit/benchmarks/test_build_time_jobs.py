"""The jobs that are measured: upstream's recipe, and other operators."""

from dataclasses import replace

import pytest
from build_time.jobs import (
    ADDITIONS,
    library_of,
    operator_types,
    read_operators,
    recipe_digest,
    upstream_arguments,
    upstream_job,
    with_more_operators,
    with_operators,
)

from ortrim.build.plan import BuildJob, digest
from ortrim.errors import OperatorsError
from ortrim.models.operators import OperatorId, OperatorTypes, parse_config
from sample_plans import sample_plan
from workshop import LIBRARY


def names(job: BuildJob) -> list[str]:
    """Return the names of a job's operators."""
    return [operator.name for operator in parse_config(job.operator_config).operators]


def test_upstreams_recipe_makes_everything_and_knows_nothing_of_ortrim(job: BuildJob) -> None:
    """No target, no hook, no precompiled header, and flatc as upstream's CMake files want it."""
    arguments = upstream_job(job).arguments
    assert arguments[:2] == ("--update", "--build")
    assert "--target" not in arguments
    assert "onnxruntime" not in arguments
    assert not [word for word in arguments if "ORTRIM" in word or "FLATC" in word or "hooks" in word]


def test_upstreams_recipe_keeps_what_says_which_library_it_is(job: BuildJob) -> None:
    """The same operators and sources with the profile's flags; only the order of the phases is set."""
    arguments = upstream_job(job).arguments
    planned = sample_plan(profile="upstream").targets[0].job.arguments
    places = "CMAKE_PROJECT_onnxruntime_INCLUDE=${sources}/dependencies.cmake"
    assert set(arguments) - {"--update", "--build", places} < set(planned)
    for word in ("--minimal_build", "--disable_exceptions", "${config}", "--enable_reduced_operator_type_support"):
        assert word in arguments
    for start in ("CMAKE_SHARED_LINKER_FLAGS=", places, "onnxruntime_BUILD_UNIT_TESTS=OFF"):
        assert any(word.startswith(start) for word in arguments)
    dropped = [word for word in planned if word not in arguments]
    assert all(word.startswith(("ORTRIM", "CMAKE_PROJECT", "FLATB", "--target", "onnxruntime")) for word in dropped)


def test_upstreams_recipe_and_given_operators_have_all_types() -> None:
    """What ortrim leaves out because its models do not have it is part of what is measured."""
    job = sample_plan(unused_types=("float8", "sparsetensor")).targets[0].job
    assert "--disable_types" in job.arguments
    assert "--disable_types" not in upstream_job(job).arguments
    assert "--disable_types" not in with_operators(job, ()).arguments


def test_the_phases_stand_once_whether_the_plan_has_them_or_not() -> None:
    """A plan may leave the phase to the executor or name it."""
    assert upstream_arguments(("--x", "--build", "--update")) == ("--update", "--build", "--x")
    assert upstream_arguments(("--x",)) == ("--update", "--build", "--x")


def test_a_target_at_the_end_goes_with_its_name() -> None:
    """The option's value is no argument of its own."""
    assert upstream_arguments(("--x", "--target", "onnxruntime")) == ("--update", "--build", "--x")


def test_the_job_of_upstreams_recipe_leaves_its_library_where_upstream_does(job: BuildJob) -> None:
    """It is stripped at the link, so that nobody takes it apart."""
    changed = upstream_job(job)
    assert str(library_of(changed)) == LIBRARY
    assert changed.operator_config == job.operator_config
    assert changed == upstream_job(sample_plan(profile="upstream").targets[0].job)


def test_the_digest_of_upstreams_recipe_does_not_see_ortrims_hooks(job: BuildJob) -> None:
    """A change of ortrim's own CMake files leaves upstream's measurements valid, one of the operators does not."""
    plan = sample_plan(profile="upstream").targets[0].job
    hooked = replace(job, hooks_sha256="f" * 64)
    assert digest(hooked) != digest(job)
    assert recipe_digest(hooked) == recipe_digest(job)
    assert recipe_digest(with_more_operators(job, 1)) != recipe_digest(job)
    assert recipe_digest(plan) == recipe_digest(job)


@pytest.mark.parametrize("count", [1, 3])
def test_a_changed_model_has_so_many_operators_more(job: BuildJob, count: int) -> None:
    """The old ones stay as they are, types included."""
    changed = with_more_operators(job, count)
    assert operator_types(changed) == operator_types(job) + count
    assert set(names(job)) < set(names(changed))
    before, after = parse_config(job.operator_config), parse_config(changed.operator_config)
    assert set(before.types) <= set(after.types)


def test_the_added_operators_have_the_types_of_a_converted_model(job: BuildJob) -> None:
    """An operator without type reduction would keep more than a model needs."""
    changed = parse_config(with_more_operators(job, 3).operator_config)
    assert changed.types_of("ai.onnx", "Softmax") == OperatorTypes(inputs=((0, ("float",)),))
    assert {"Softmax", "Clip", "LayerNormalization"} <= {operator.name for operator in changed.operators}


def test_what_the_job_has_is_not_added_again_at_another_opset(job: BuildJob) -> None:
    """One more means one more kernel, not a second version of a kernel that is there."""
    has_softmax = with_operators(job, [OperatorId(domain="ai.onnx", opset=11, name="Softmax")])
    assert names(with_more_operators(has_softmax, 1)) == ["Softmax", "Clip"]


def test_more_operators_than_there_are_is_refused(job: BuildJob) -> None:
    """Better than a case that measures something else."""
    with pytest.raises(ValueError, match="99 operators are wanted"):
        with_more_operators(job, 99)


def test_the_additions_are_lines_of_a_configuration() -> None:
    """Each names one operator, and none twice."""
    operators = [parse_config(line).operators for line in ADDITIONS.splitlines()]
    assert all(len(each) == 1 for each in operators)
    assert len({each[0].name for each in operators}) == len(operators)


def test_a_job_with_given_operators_has_no_others(job: BuildJob) -> None:
    """Their types are not limited."""
    wanted = [OperatorId(domain="ai.onnx", opset=14, name="Add"), OperatorId(domain="ai.onnx", opset=22, name="Conv")]
    changed = with_operators(job, wanted)
    assert changed.operator_config == "ai.onnx;14;Add\nai.onnx;22;Conv\n"
    assert operator_types(changed) == 2


def test_an_operator_at_two_opsets_is_one_type(job: BuildJob) -> None:
    """The graph counts kinds of operators."""
    twice = [OperatorId(domain="ai.onnx", opset=opset, name="Add") for opset in (7, 14)]
    assert operator_types(with_operators(job, twice)) == 1


def test_a_list_of_operators_keeps_its_order() -> None:
    """The order decides which operators the first points of the graph have."""
    listed = read_operators("# a comment\n\nai.onnx;14;Mul\nai.onnx;14;Add\n")
    assert [operator.name for operator in listed] == ["Mul", "Add"]


@pytest.mark.parametrize("text", ["Add", "ai.onnx;x;Add", "ai.onnx;14;Add,,"])
def test_a_line_that_is_no_operator_is_refused(text: str) -> None:
    """The list is read as configurations are."""
    with pytest.raises(OperatorsError):
        read_operators(text)
