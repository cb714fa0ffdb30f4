"""What the buildspec types do beyond holding values."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Final, get_args

import pytest
from pydantic import ValidationError

from ortrim.buildspec import buildspec
from ortrim.buildspec.buildspec import (
    DIRECTLY,
    IN_PLACE,
    BuildSpec,
    ModelSpec,
    SessionSettings,
    SessionSpec,
    TargetSpec,
    as_the_official,
    merged_budgets,
    session_json,
    session_of,
    settings_of,
)
from ortrim.buildspec.load import load_spec
from ortrim.buildspec.targets import TARGETS, OperatingSystem
from ortrim.buildspec.tolerances import (
    DEFAULT_TOLERANCES,
    EXACT,
    LEVELS,
    QUANTIZED,
    QUANTIZED_ELSEWHERE,
    SAME_GRAPH,
    Bounds,
    ElementType,
    Tolerance,
    bounds_of,
)
from ortrim.planning.planner import select_targets
from ortrim.platforms import target_problems
from ortrim.platforms.android.platform import android_of

MODELS = (buildspec.ModelSpec(name="m", path=Path("m.onnx")),)
COMMON = buildspec.Budgets(library_ratio=0.09, load_ms=20.0)


def test_a_target_without_budgets_has_the_common_ones() -> None:
    spec = buildspec.BuildSpec(name="kws", models=MODELS, budgets=COMMON)
    assert buildspec.merged_budgets(spec, buildspec.TargetSpec(id="linux-x64")) == COMMON


def test_a_targets_budgets_replace_single_keys() -> None:
    spec = buildspec.BuildSpec(name="kws", models=MODELS, budgets=COMMON)
    target = buildspec.TargetSpec(id="linux-arm64", budgets=buildspec.Budgets(load_ms=40.0, p50_ms=1.0))
    assert buildspec.merged_budgets(spec, target) == buildspec.Budgets(library_ratio=0.09, load_ms=40.0, p50_ms=1.0)
    assert buildspec.Budgets(library_ratio=0.09, load_ms=20.0) == spec.budgets


@pytest.mark.parametrize(
    ("file", "path", "resolved"),
    [("specs/kws.toml", "m.onnx", "specs/m.onnx"), ("kws.toml", "m.onnx", "m.onnx"), ("a/kws.toml", "/m", "/m")],
)
def test_paths_are_seen_from_the_buildspec(file: str, path: str, resolved: str) -> None:
    loaded = buildspec.LoadedSpec(name="kws", models=MODELS, file=Path(file))
    assert loaded.resolve(Path(path)) == Path(resolved)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0])
def test_budgets_are_positive_and_finite(value: float) -> None:
    with pytest.raises(ValidationError):
        buildspec.Budgets(load_ms=value)


def test_android_has_defaults_that_the_buildspec_and_then_a_target_replace() -> None:
    """The nearest choice holds, key by key."""
    spec = buildspec.BuildSpec(name="kws", models=MODELS, android=buildspec.AndroidSpec(api=28))
    plain, own = buildspec.TargetSpec(id="android-x86"), buildspec.AndroidSpec(stl="c++_shared")
    assert android_of(buildspec.BuildSpec(name="kws", models=MODELS), plain) == buildspec.AndroidSpec(
        api=24, stl="c++_static", ndk=None, models_as_assets=False
    )
    assert android_of(spec, plain) == buildspec.AndroidSpec(api=28, stl="c++_static", models_as_assets=False)
    assert android_of(spec, buildspec.TargetSpec(id="android-x86", android=own)) == buildspec.AndroidSpec(
        api=28, stl="c++_shared", models_as_assets=False
    )


def test_a_targets_own_providers_replace_the_buildspecs() -> None:
    """An empty list is a choice as well; their order, and one named twice, means nothing."""
    spec = buildspec.BuildSpec(name="kws", models=MODELS, providers=("xnnpack", "coreml", "xnnpack"))
    plain = buildspec.TargetSpec(id="linux-x64")
    assert buildspec.providers_of(spec, plain) == ("coreml", "xnnpack")
    assert buildspec.providers_of(spec, replace(plain, providers=())) == ()
    assert buildspec.providers_of(buildspec.BuildSpec(name="kws", models=MODELS), plain) == ()


@pytest.mark.parametrize("ndk", ["27.2.12479018", "27"])
def test_an_ndk_is_named_by_its_version_or_its_major(ndk: str) -> None:
    """As folders in an SDK are, and as people speak of them."""
    assert buildspec.AndroidSpec(ndk=ndk).ndk == ndk


@pytest.mark.parametrize("ndk", ["2", "270", "r27c", "27.2", "27.2.12479018-beta1", "1.2.12479018", "", "27\n"])
def test_an_ndk_is_named_in_no_other_way(ndk: str) -> None:
    with pytest.raises(ValidationError):
        buildspec.AndroidSpec(ndk=ndk)


CONTRARY = SessionSpec(
    load="bytes", in_place=False, prepacking=False, arena=False, memory_pattern=False, threads=4, inter_op_threads=2,
    spinning=True,
)  # fmt: skip


def chosen(choices: SessionSpec, *, style: str = "fixed", reads_in_place: bool = True) -> SessionSettings:
    return settings_of(choices, style=style, reads_in_place=reads_in_place)


def test_by_default_a_model_is_mapped_and_its_weights_stay_in_place() -> None:
    """One thread that does not spin, with all that shortens runs."""
    assert chosen(SessionSpec()) == SessionSettings(
        load="map", optimization_level="none", configuration=(DIRECTLY, IN_PLACE)
    )


def test_weights_that_cannot_stay_are_copied_unless_the_buildspec_says_otherwise() -> None:
    """ARMv7 faults on crooked ones, and no ONNX Runtime makes sparse ones dense there."""
    assert IN_PLACE not in chosen(SessionSpec(), reads_in_place=False).configuration
    assert IN_PLACE in chosen(SessionSpec(in_place=True), reads_in_place=False).configuration


def test_every_choice_is_heard() -> None:
    assert chosen(CONTRARY) == SessionSettings(
        load="bytes",
        threads=4,
        inter_op_threads=2,
        allow_spinning=True,
        arena=False,
        memory_pattern=False,
        optimization_level="none",
        configuration=(DIRECTLY, ("session.disable_prepacking", "1")),
    )


def test_what_the_runtime_reads_itself_is_never_used_in_place() -> None:
    assert chosen(SessionSpec(load="file")).configuration == ()


def test_a_models_own_choice_replaces_the_buildspecs() -> None:
    model = ModelSpec(name="m", session=SessionSpec(threads=2))
    spec = BuildSpec(name="s", session=SessionSpec(threads=4, arena=False), models=(model, ModelSpec(name="n")))
    assert [session_of(spec, each) for each in spec.models] == [SessionSpec(threads=2, arena=False), spec.session]


@pytest.mark.parametrize("choices", [SessionSpec(threads=4), CONTRARY, SessionSpec(threads=4, spinning=False)])
def test_the_official_library_has_the_same_threads_and_else_its_own_defaults(choices: SessionSpec) -> None:
    """It is what an application has before: its threads spin, whatever ours do."""
    official = as_the_official(chosen(choices))
    assert official == SessionSettings(threads=4, inter_op_threads=choices.inter_op_threads or 1, allow_spinning=True)


def test_the_file_speaks_onnx_runtimes_own_words() -> None:
    """An application applies them literally."""
    document = json.loads(session_json("1.21.0", {"vad": chosen(SessionSpec())}))
    assert document == {
        "schema": "ortrim-session/1",
        "onnxruntime": "1.21.0",
        "models": {
            "vad": {
                "file": "vad.ort",
                "load": "map",
                "intra_op_num_threads": 1,
                "inter_op_num_threads": 1,
                "execution_mode": "ORT_SEQUENTIAL",
                "graph_optimization_level": "ORT_DISABLE_ALL",
                "enable_cpu_mem_arena": True,
                "enable_mem_pattern": True,
                "session_configuration": {
                    "session.intra_op.allow_spinning": "0",
                    "session.inter_op.allow_spinning": "0",
                    "session.use_ort_model_bytes_directly": "1",
                    "session.use_ort_model_bytes_for_initializers": "1",
                },
            }
        },
    }


def test_the_file_names_execution_providers_where_there_are_some() -> None:
    """As the C API calls them, which takes nothing else; the official library has none of them."""
    settings = replace(chosen(SessionSpec()), providers=("XNNPACK",))
    document = json.loads(session_json("1.21.0", {"vad": settings}))
    assert document["models"]["vad"]["execution_providers"] == ["XNNPACK"]
    assert as_the_official(settings).providers == ()


@pytest.mark.parametrize(("inter_op_threads", "mode"), [(1, "ORT_SEQUENTIAL"), (2, "ORT_PARALLEL")])
def test_branches_need_the_parallel_mode(inter_op_threads: int, mode: str) -> None:
    """In the sequential one, threads between operators would idle."""
    settings = chosen(SessionSpec(inter_op_threads=inter_op_threads))
    (model,) = json.loads(session_json("1.21.0", {"vad": settings}))["models"].values()
    assert (model["execution_mode"], model["inter_op_num_threads"]) == (mode, inter_op_threads)


@pytest.mark.parametrize(("style", "level"), [("fixed", "ORT_DISABLE_ALL"), ("runtime", "ORT_ENABLE_ALL")])
def test_saved_optimizations_are_applied_on_the_device(style: str, level: str) -> None:
    (model,) = json.loads(session_json("1.21.0", {"vad": chosen(SessionSpec(), style=style)}))["models"].values()
    assert model["graph_optimization_level"] == level


def test_a_key_that_is_left_out_has_the_default_of_its_type() -> None:
    bounds = bounds_of("float16", {"float16": Tolerance(absolute=0.1)})
    assert bounds == replace(DEFAULT_TOLERANCES["float16"], absolute=0.1)
    assert bounds.relative > DEFAULT_TOLERANCES["float32"].relative


def test_zero_is_a_tolerance() -> None:
    """A bound of nothing at all is not taken for one that was left out."""
    assert bounds_of("float32", {"float32": Tolerance(absolute=0.0)}).absolute == 0.0


def test_tolerances_of_other_types_change_nothing() -> None:
    """Each type stands by itself."""
    assert bounds_of("float32", {"float64": Tolerance(absolute=9.0)}) == DEFAULT_TOLERANCES["float32"]


@pytest.mark.parametrize("kind", sorted({*get_args(ElementType), "absent", "unsupported"} - set(DEFAULT_TOLERANCES)))
def test_what_is_not_a_float_is_exact(kind: str) -> None:
    """Only a buildspec makes integers, booleans and strings differ."""
    assert bounds_of(kind, {}) == EXACT
    assert bounds_of(kind, {kind: Tolerance(absolute=1.0)}) == Bounds(absolute=1.0)


def test_few_values_of_a_quantized_model_have_a_bound_that_binds() -> None:
    """A tenth of the output's largest magnitude in any case, for each value; many may jump by the whole range."""
    assert bounds_of("float32", {}, QUANTIZED, 0.97) == Bounds(absolute=0.1 * 0.97, cosine=0.98)
    assert bounds_of("float32", {}, QUANTIZED) == LEVELS
    for others in (DEFAULT_TOLERANCES, SAME_GRAPH, QUANTIZED_ELSEWHERE):
        assert bounds_of("float32", {}, others, 0.97) == others["float32"]


@pytest.mark.parametrize("few", [None, 0.97])
@pytest.mark.parametrize("key", ["absolute", "relative", "ulps"])
def test_what_a_buildspec_says_of_elements_binds(key: str, few: float | None) -> None:
    """It is not added to a default that allows everything; a scale that the buildspec itself gives is."""
    bounds = bounds_of("float32", {"float32": Tolerance(**{key: 0.01})}, QUANTIZED, few)
    assert (getattr(bounds, key), bounds.scale) == (0.01, 0.0)
    both = bounds_of("float32", {"float32": Tolerance(**{key: 0.01}, scale=0.5)}, QUANTIZED, few)
    assert (getattr(both, key), both.scale) == (0.01, 0.5)
    assert bounds_of("float32", {"float32": Tolerance(rms=0.5)}, QUANTIZED).scale == LEVELS.scale


SPEC = load_spec(Path(__file__).parents[3] / "buildspecs" / "silero-vad.toml", target_problems)
ANDROID = [target for target in SPEC.targets if TARGETS[target.id].system is OperatingSystem.ANDROID]


@pytest.mark.parametrize("target", ANDROID, ids=lambda target: target.id)
def test_without_a_baseline_the_budget_is_in_bytes(target: TargetSpec) -> None:
    """There is no official library for Android to divide by."""
    assert merged_budgets(SPEC, target).library_bytes


def test_the_demo_is_for_all_abis() -> None:
    assert len(ANDROID) == 4


GUIDE: Final = (Path(__file__).parents[3] / "docs" / "start" / "android.md").read_text(encoding="utf-8")


def test_the_guides_buildspec(tmp_path: Path) -> None:
    """It names ABIs for one AAR with the model that the Kotlin opens, under the coordinates that Gradle is given."""
    (text,) = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    path = tmp_path / "app.toml"
    path.write_text(text)
    spec = load_spec(path, target_problems)
    targets = select_targets(spec, "android", None)
    assert len(targets) == 2
    assert {TARGETS[target.id].system for target in targets} == {OperatingSystem.ANDROID}
    assert spec.android.models_as_assets
    (model,) = spec.models
    assert f'openFd("models/{model.name}.ort")' in GUIDE
    assert f'implementation("ortrim:onnxruntime-android-{spec.name}:{spec.onnxruntime.version}-' in GUIDE
    assert f"ortrim-{spec.name}-android-{spec.onnxruntime.version}/maven" in GUIDE
    assert (model.style, "OptLevel.NO_OPT" in GUIDE) == ("fixed", True)
