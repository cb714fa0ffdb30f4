"""What the buildspec types do beyond holding values."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from ortrim.buildspec import buildspec
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
    """The nearest choice holds, key by key; an empty list of providers is a choice as well."""
    spec = buildspec.BuildSpec(name="kws", models=MODELS, android=buildspec.AndroidSpec(api=28, providers=("xnnpack",)))
    plain, own = buildspec.TargetSpec(id="android-x86"), buildspec.AndroidSpec(stl="c++_shared", providers=())
    assert android_of(buildspec.BuildSpec(name="kws", models=MODELS), plain) == buildspec.AndroidSpec(
        api=24, stl="c++_static", ndk=None, providers=(), models_as_assets=False
    )
    assert android_of(spec, plain) == buildspec.AndroidSpec(
        api=28, stl="c++_static", providers=("xnnpack",), models_as_assets=False
    )
    assert android_of(spec, buildspec.TargetSpec(id="android-x86", android=own)) == buildspec.AndroidSpec(
        api=28, stl="c++_shared", providers=(), models_as_assets=False
    )


@pytest.mark.parametrize("ndk", ["27.2.12479018", "27"])
def test_an_ndk_is_named_by_its_version_or_its_major(ndk: str) -> None:
    """As folders in an SDK are, and as people speak of them."""
    assert buildspec.AndroidSpec(ndk=ndk).ndk == ndk


@pytest.mark.parametrize("ndk", ["2", "270", "r27c", "27.2", "27.2.12479018-beta1", "1.2.12479018", "", "27\n"])
def test_an_ndk_is_named_in_no_other_way(ndk: str) -> None:
    with pytest.raises(ValidationError):
        buildspec.AndroidSpec(ndk=ndk)
