"""What the buildspec types do beyond holding values."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from ortrim.buildspec.buildspec import (
    AndroidSpec,
    Budgets,
    BuildSpec,
    LoadedSpec,
    ModelSpec,
    TargetSpec,
    merged_budgets,
)
from ortrim.platforms.android.platform import android_of

MODELS = (ModelSpec(name="m", path=Path("m.onnx")),)
COMMON = Budgets(library_ratio=0.09, load_ms=20.0)


def test_a_target_without_budgets_has_the_common_ones() -> None:
    """The buildspec's budgets hold for every target."""
    spec = BuildSpec(name="kws", models=MODELS, budgets=COMMON)
    assert merged_budgets(spec, TargetSpec(id="linux-x64")) == COMMON


def test_a_targets_budgets_replace_single_keys() -> None:
    """A key that the target gives wins; the others stay; neither side is changed."""
    spec = BuildSpec(name="kws", models=MODELS, budgets=COMMON)
    target = TargetSpec(id="linux-arm64", budgets=Budgets(load_ms=40.0, p50_ms=1.0))
    assert merged_budgets(spec, target) == Budgets(library_ratio=0.09, load_ms=40.0, p50_ms=1.0)
    assert Budgets(library_ratio=0.09, load_ms=20.0) == spec.budgets


@pytest.mark.parametrize(
    ("file", "path", "resolved"),
    [("specs/kws.toml", "m.onnx", "specs/m.onnx"), ("kws.toml", "m.onnx", "m.onnx"), ("a/kws.toml", "/m", "/m")],
)
def test_paths_are_seen_from_the_buildspec(file: str, path: str, resolved: str) -> None:
    """A relative path starts at the buildspec's folder; an absolute one is what it is."""
    loaded = LoadedSpec(spec=BuildSpec(name="kws", models=MODELS), file=Path(file))
    assert loaded.resolve(Path(path)) == Path(resolved)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0])
def test_budgets_are_positive_and_finite(value: float) -> None:
    """A budget that no measurement could meet or miss is refused."""
    with pytest.raises(ValidationError):
        Budgets(load_ms=value)


def test_android_has_defaults_that_the_buildspec_and_then_a_target_replace() -> None:
    """The nearest choice holds, key by key; an empty list of providers is a choice as well."""
    spec = BuildSpec(name="kws", models=MODELS, android=AndroidSpec(api=28, providers=("xnnpack",)))
    plain, own = TargetSpec(id="android-x86"), AndroidSpec(stl="c++_shared", providers=())
    assert android_of(BuildSpec(name="kws", models=MODELS), plain) == AndroidSpec(
        api=24, stl="c++_static", ndk=None, providers=(), models_as_assets=False
    )
    assert android_of(spec, plain) == AndroidSpec(
        api=28, stl="c++_static", providers=("xnnpack",), models_as_assets=False
    )
    assert android_of(spec, TargetSpec(id="android-x86", android=own)) == AndroidSpec(
        api=28, stl="c++_shared", providers=(), models_as_assets=False
    )


@pytest.mark.parametrize("ndk", ["27.2.12479018", "27"])
def test_an_ndk_is_named_by_its_version_or_its_major(ndk: str) -> None:
    """As folders in an SDK are, and as people speak of them."""
    assert AndroidSpec(ndk=ndk).ndk == ndk


@pytest.mark.parametrize("ndk", ["2", "270", "r27c", "27.2", "27.2.12479018-beta1", "1.2.12479018", "", "27\n"])
def test_an_ndk_is_named_in_no_other_way(ndk: str) -> None:
    """The short names of releases are not what an NDK says of itself."""
    with pytest.raises(ValidationError):
        AndroidSpec(ndk=ndk)
