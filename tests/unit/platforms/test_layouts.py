"""Models that are written for one kind of processor."""

from dataclasses import replace

import pytest

from ortrim.buildspec.buildspec import TargetSpec
from ortrim.compiling.plan import PlannedModel
from ortrim.compiling.upstream_arguments import laid_out_sources
from ortrim.errors import ExitCode, PlanError
from ortrim.planning.planner import require_layouts
from sample_plans import MODELS, sample_plan


def laid_out(layout: str, name: str = "tiny") -> PlannedModel:
    return replace(MODELS[0], name=name, level="all", layout=layout)


EIGHT, SIXTEEN = laid_out("nchwc8"), laid_out("nchwc16")
AVX512 = (TargetSpec(id="linux-x64", cpu="x86-64-v4"),)


def refused(*models: PlannedModel, target: str = "linux-x64", selected: tuple[TargetSpec, ...] = ()) -> PlanError:
    with pytest.raises(PlanError) as caught:
        sample_plan(target, models=models, selected=selected)
    assert (caught.value.where, caught.value.exit_code) == (target, ExitCode.PLAN)
    return caught.value


def test_a_model_for_x64_is_planned_for_x64() -> None:
    """Every x64 processor runs it, so that no baseline is asked for, and nothing is added to the library."""
    plan = sample_plan("linux-x64", models=(EIGHT,))
    assert plan.models == (EIGHT,)
    assert plan.targets[0].job.nchwc_block_size == 8
    assert not any("avx512_nchwc.cc" in argument for argument in plan.targets[0].job.arguments)


@pytest.mark.parametrize(
    ("model", "target"),
    [(EIGHT, "linux-riscv64"), (EIGHT, "android-x86"), (SIXTEEN, "linux-arm64"), (SIXTEEN, "linux-riscv64")],
)
def test_a_model_in_nchwc_layout_is_refused_elsewhere(target: str, model: PlannedModel) -> None:
    """No kernel of another processor knows the layout."""
    assert refused(model, target=target).code == "layout-elsewhere"


@pytest.mark.parametrize("target", ["linux-arm64", "linux-arm64-musl", "android-arm64-v8a", "ios-arm64", "macos-arm64"])
def test_a_model_for_x64_runs_on_arm64_by_kernels_of_our_own(target: str) -> None:
    """Whatever the profile and the version: MLAS has none there, unless it is asked for them."""
    model = replace(EIGHT, name="tiny")
    for profile in ("balanced", "upstream"):
        (planned,) = sample_plan(target, models=(model,), profile=profile).targets
        job = replace(planned.job, operator_config="com.microsoft.nchwc;1;Conv\n")
        assert (job.nchwc_block_size, laid_out_sources(job)) == (8, ("neon_convolutions.cc",))
        assert laid_out_sources(replace(job, tiled=True)) == ("neon_convolutions.cc", "winograd_filters.h")
        swish = replace(job, operator_config=f"{job.operator_config}ai.onnx;13;HardSigmoid,Mul\n")
        assert laid_out_sources(swish) == ("neon_convolutions.cc", "hard_swish.h")
        assert laid_out_sources(replace(swish, nchwc_block_size=0, tiled=True)) == ()
        require_layouts(replace(job, ort_version="1.25.0"), (model,))


@pytest.mark.parametrize(
    ("target", "config", "taken"),
    [
        ("linux-arm64", "com.microsoft;1;MatMulNBits\n", ("four_bits.h",)),
        ("linux-arm64", "!no_ops_specified_means_all_ops_are_required\n", ("four_bits.h",)),
        ("linux-arm64", "ai.onnx;13;MatMul\n", ()),
        ("linux-x64", "com.microsoft;1;MatMulNBits\n", ()),
    ],
)
def test_products_with_weights_of_few_bits_have_a_kernel_of_our_own_on_arm64(
    target: str, config: str, taken: tuple[str, ...]
) -> None:
    """A library without such products does not stop at it, should another version have another header."""
    job = replace(sample_plan(target).targets[0].job, operator_config=config)
    assert laid_out_sources(job) == taken


def test_kernels_for_one_filter_a_channel_are_there_when_asked_for_but_in_upstreams_own_library() -> None:
    job = replace(sample_plan("linux-arm64").targets[0].job, depthwise=True)
    assert laid_out_sources(job) == ("depthwise_convolutions.h",)
    assert laid_out_sources(replace(job, profile="upstream")) == ()


def test_a_model_for_avx512_brings_its_kernels_along() -> None:
    """Whatever the profile: without them a minimal build would take the weights for blocks of 8."""
    for profile in ("balanced", "upstream"):
        (target,) = sample_plan(models=(SIXTEEN,), selected=AVX512, profile=profile).targets
        assert target.job.nchwc_block_size == 16
        assert any("avx512_nchwc.cc" in argument for argument in target.job.arguments)


@pytest.mark.parametrize("cpu", [None, "x86-64-v3"])
def test_a_model_for_avx512_needs_a_baseline_that_has_it(cpu: str | None) -> None:
    """Else a processor without it would not run the kernels."""
    error = refused(SIXTEEN, selected=(TargetSpec(id="linux-x64", cpu=cpu),))
    assert error.code == "layout-elsewhere"
    assert "x86-64-v4" in error.hint


@pytest.mark.parametrize("target", ["android-x86_64", "macos-x86_64"])
def test_a_baseline_is_asked_for_only_where_one_can_be_given(target: str) -> None:
    """A buildspec takes no processor there."""
    error = refused(SIXTEEN, target=target)
    assert (error.code, error.hint) == ("layout-elsewhere", "take layout = 'nchwc8'")


def test_one_library_has_one_width() -> None:
    """The models' weights are in blocks of the one or the other; both are named."""
    error = refused(EIGHT, laid_out("nchwc16", "wide"), selected=AVX512)
    assert error.code == "layouts-mixed"
    assert {"tiny", "wide", "'nchwc8'", "'nchwc16'"} <= set(error.what.split())


def test_signed_operators_run_everywhere() -> None:
    """They are only slower where the processor multiplies unsigned numbers faster."""
    signed = tuple(replace(model, layout="s8s8") for model in MODELS)
    assert sample_plan("linux-x64", models=signed).models == signed
