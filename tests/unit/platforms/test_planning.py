"""Plans: golden ones beside this file, what changes them, and which targets are selected."""

import difflib
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ortrim.base.json import from_json, to_data, to_json
from ortrim.buildspec.buildspec import AndroidSpec, Budgets, TargetSpec
from ortrim.buildspec.targets import APPLE, TARGETS
from ortrim.compiling.dead_kernels import KINDS
from ortrim.compiling.plan import BuildPlan, digest
from ortrim.compiling.workspace import JobPaths
from ortrim.errors import ExitCode, PlanError, UsageError
from ortrim.planning.planner import select_targets, with_arguments
from ortrim.platforms.apple.arguments import zig_apple_toolchain
from refusing import refused
from sample_plans import FOREST, MODELS, sample_plan, sample_spec, system_gcc

PLANS = Path(__file__).parent / "data" / "plans"
REGENERATE = "ORTRIM_WRITE_PLANS"
"""Set this in the environment of pytest to write the golden plans anew, then read what git says has changed."""
PLACES = ("sources", "build", "tools", "wrappers", "config", "runner", "hooks", "archive", "ndk", "xcode", "apple")


def cross_built(target: str) -> BuildPlan:
    return sample_plan(target, toolchain=zig_apple_toolchain(TARGETS[target], "15.1", "0.17.0"))


GOLDEN = {name: partial(sample_plan, name) for name in TARGETS} | {
    f"{name}-zig": partial(cross_built, name) for name, target in TARGETS.items() if target.system in APPLE
}
"""Name -> what makes the plan: each target's, and those of Apple's without Xcode."""


@pytest.mark.parametrize("name", GOLDEN)
def test_the_plan_is_the_golden_one(name: str) -> None:
    """Nothing about a plan changes by accident: it would compile every library anew."""
    golden, text = PLANS / f"{name}.json", to_json(GOLDEN[name]())
    if os.environ.get(REGENERATE):
        golden.write_text(text)
    expected = golden.read_text()
    difference = difflib.unified_diff(expected.splitlines(), text.splitlines(), "golden", "planned", lineterm="", n=1)
    assert text == expected, "\n".join([*difference, f"if this is meant: {REGENERATE}=1 pytest {Path(__file__).name}"])


def test_every_target_has_a_golden_plan_and_no_other_has() -> None:
    """A new target comes with its plan."""
    assert {path.stem for path in PLANS.iterdir()} == set(GOLDEN)


def strings(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict | list):
        for each in data.values() if isinstance(data, dict) else data:
            yield from strings(each)


@pytest.mark.parametrize("plan", [*(make() for make in GOLDEN.values()), sample_plan(toolchain=system_gcc())])
def test_a_plan_holds_no_path_of_a_machine(plan: BuildPlan) -> None:
    """The same inputs give the same plan, digest and cache keys wherever it is made."""
    for text in strings(to_data(plan)):
        without_shebang = text.replace("#!/bin/sh", "")
        path = re.search(r"(^|[\s='\":;,]|-[IL])/\w.{,60}", without_shebang)
        assert path is None
        assert str(Path.home()) not in text


@pytest.mark.parametrize("plan", [*(make() for make in GOLDEN.values()), sample_plan(toolchain=system_gcc())])
def test_every_symbolic_path_can_be_made_real(plan: BuildPlan, tmp_path: Path) -> None:
    """Each `${name}` of a job is one that the executor knows, and none is left over."""
    places = {name: tmp_path / name for name in PLACES}
    paths = JobPaths(**places)
    for target in plan.targets:
        for toolchain in (target.job.toolchain, target.runner.toolchain):
            environment = [value for _, value in toolchain.environment]
            resolved = paths.resolve_all((*target.job.arguments, *target.runner.arguments, *environment))
            assert not [argument for argument in resolved if "$" in argument]
            assert f"--include_ops_by_config {places['config']}" in " ".join(resolved)


def test_a_name_that_does_not_exist_is_not_left_as_it_is(tmp_path: Path) -> None:
    """A misspelt symbolic path stops the build before it starts."""
    paths = JobPaths(**dict.fromkeys(PLACES, tmp_path))
    with pytest.raises(KeyError, match="souces"):
        paths.resolve("${souces}/onnxruntime")


def test_digests_follow_what_they_cover() -> None:
    """A plan is as it was the second time and after a round trip; another budget is another plan but the same job."""
    plan = sample_plan()
    assert digest(plan) == digest(sample_plan()) == digest(from_json(BuildPlan, to_json(plan)))
    other = sample_plan(budgets=Budgets(library_bytes=1))
    assert digest(other) != digest(plan)
    assert digest(other.targets[0].job) == digest(plan.targets[0].job)


@pytest.mark.parametrize(
    "changes",
    [{"exceptions": True}, {"profile": "upstream"}, {"operators": FOREST}, {"toolchain": system_gcc()}],
    ids=["exceptions", "profile", "operators", "toolchain"],
)
def test_what_enters_the_library_changes_the_job(changes: dict[str, Any]) -> None:
    """No two libraries that differ share a build."""
    assert digest(sample_plan(**changes).targets[0].job) != digest(sample_plan().targets[0].job)


@pytest.mark.parametrize(("profile", "arguments"), [("balanced", ("float8", "sparsetensor")), ("upstream", ())])
def test_types_that_no_model_has_are_left_out(profile: str, arguments: tuple[str, ...]) -> None:
    """But upstream's own recipe leaves all of them in. Nothing else of a plan changes."""
    job = sample_plan(profile=profile, unused_types=("float8", "sparsetensor")).targets[0].job
    assert job.without_types == arguments
    words = ("--disable_types", *arguments) if arguments else ()
    assert tuple(word for word in job.arguments if word in {"--disable_types", "float8", "sparsetensor"}) == words
    assert with_arguments(replace(job, without_types=())) == sample_plan(profile=profile).targets[0].job


def test_a_budget_of_a_target_replaces_the_buildspecs() -> None:
    """The plan holds the budgets that apply, not those that were written."""
    targets = (TargetSpec(id="linux-x64", budgets=Budgets(library_bytes=7)),)
    plan = sample_plan(targets=targets, budgets=Budgets(library_bytes=9, load_ms=3.0))
    assert plan.targets[0].budgets == Budgets(library_bytes=7, load_ms=3.0)


HOST = TARGETS["linux-x64"]


@pytest.mark.parametrize(
    ("pattern", "selected"),
    [
        (None, ["linux-x64"]),
        ("linux-arm64", ["linux-arm64"]),
        ("linux", ["linux-x64", "linux-arm64"]),
        ("linux-arm64,linux-x64", ["linux-x64", "linux-arm64"]),
        ("windows,*-x64", ["linux-x64"]),
        ("*", ["linux-x64", "linux-arm64"]),
        ("*-arm64", ["linux-arm64"]),
        ("linux-?64", ["linux-x64"]),
        ("linux-amd64", ["linux-x64"]),
        ("aarch64, x86_64", ["linux-x64", "linux-arm64"]),
    ],
)
def test_targets_are_selected_by_name_prefix_or_glob(pattern: str | None, selected: list[str]) -> None:
    """Without a pattern it is the host's; a prefix ends at a dash; the order is the buildspec's."""
    assert [target.id for target in select_targets(sample_spec(), pattern, HOST)] == selected


@pytest.mark.parametrize("pattern", ["lin", "linux-", "windows", "", "linux-x64-musl", ",", "lin,windows"])
def test_a_pattern_that_selects_nothing_is_refused(pattern: str) -> None:
    """The targets that there are to choose from are named."""
    caught = refused(UsageError, select_targets, sample_spec(), pattern, HOST)
    assert caught.code == "no-such-target"
    assert caught.exit_code is ExitCode.USAGE
    assert repr(pattern) in caught.what
    assert caught.hint == "choose with --target among: linux-x64, linux-arm64"


def test_a_host_that_is_no_target_of_the_buildspec_is_reported_so() -> None:
    """The text speaks of the host, not of a pattern that nobody gave."""
    spec = sample_spec(targets=(TargetSpec(id="linux-arm64"),))
    with pytest.raises(UsageError, match="the host's target linux-x64 is not among the targets"):
        select_targets(spec, None, HOST)


@pytest.mark.parametrize(
    ("named", "pattern", "selected"),
    [
        (("android-x86", "linux-x64", "android-arm64-v8a"), "android", ["android-x86", "android-arm64-v8a"]),
        (("android-x86", "android-x86_64"), "android-x86", ["android-x86"]),
        ((), "android", ["android-arm64-v8a"]),
        ((), "android-*", ["android-arm64-v8a", "android-armeabi-v7a", "android-x86_64", "android-x86"]),
    ],
)
def test_android_is_every_abi_that_the_buildspec_names(
    named: tuple[str, ...], pattern: str, selected: list[str]
) -> None:
    """When it names no target at all, it is the one ABI that every phone has; a glob still reaches the others."""
    spec = sample_spec(targets=tuple(TargetSpec(id=name) for name in named))
    assert [target.id for target in select_targets(spec, pattern, None)] == selected


def test_android_is_refused_where_a_buildspec_names_linux_alone() -> None:
    """A product's targets are those that it names."""
    with pytest.raises(UsageError, match="no target matches 'android'"):
        select_targets(sample_spec(), "android", HOST)


def test_the_abis_of_a_plan_go_into_one_package() -> None:
    """The plan names it with its ABIs in their order, and Linux targets are not in it."""
    targets = tuple(TargetSpec(id=name) for name in ("android-x86_64", "linux-x64", "android-arm64-v8a"))
    plan = sample_plan("", targets=targets, selected=targets)
    (assembly,) = plan.assemblies
    assert (assembly.identifier, assembly.targets) == ("android", ("android-x86_64", "android-arm64-v8a"))
    assert sample_plan().assemblies == ()


def test_models_go_into_the_aar_when_all_abis_say_so() -> None:
    """An AAR has its assets once; no build depends on them."""
    inside = AndroidSpec(models_as_assets=True)
    two = tuple(TargetSpec(id=name) for name in ("android-x86", "android-x86_64"))
    plain = sample_plan("", targets=two, selected=two)
    filled = sample_plan("", targets=two, selected=two, android=inside)
    assert (plain.assemblies[0].models_as_assets, filled.assemblies[0].models_as_assets) == (False, True)
    assert [each.job for each in plain.targets] == [each.job for each in filled.targets]


@pytest.mark.parametrize(
    ("wanted", "other", "code", "key"),
    [
        (AndroidSpec(models_as_assets=True), AndroidSpec(), "mixed-assets", "models_as_assets"),
        (AndroidSpec(java=True), AndroidSpec(), "mixed-java", "java"),
    ],
)
def test_abis_that_differ_in_what_is_in_the_aar_are_refused(
    wanted: AndroidSpec, other: AndroidSpec, code: str, key: str
) -> None:
    """There is one AAR of all."""
    mixed = (TargetSpec(id="android-x86", android=wanted), TargetSpec(id="android-x86_64", android=other))
    caught = refused(PlanError, sample_plan, "", targets=mixed, selected=mixed)
    assert (caught.code, caught.where) == (code, "android-x86, android-x86_64")
    assert f"android.{key}" in caught.hint


def test_kernels_of_half_precision_go_where_no_model_has_such_values() -> None:
    """Upstream has no word for them, and the hook that leaves them out has."""
    for target in ("android-arm64-v8a", "linux-arm64", "linux-x64", "macos-arm64", "android-armeabi-v7a"):
        job = sample_plan(target, unused_types=KINDS).targets[0].job
        assert "float16" in job.without_types
        assert "ORTRIM_WITHOUT_FLOAT16=ON" in job.arguments
        disabled = job.arguments[job.arguments.index("--disable_types") + 1 :]
        assert disabled[:4] == ("float8", "optional", "sparsetensor", disabled[3])
        assert disabled[3].startswith("-")


@pytest.mark.parametrize(
    ("target", "profile", "kept"),
    [("linux-x64", "balanced", ((4, 4),)), ("linux-x64", "upstream", ()), ("linux-arm64", "balanced", ())],
)
def test_bits_of_products_count_where_their_functions_go(target: str, profile: str, kept: Any) -> None:
    """Elsewhere they decide no byte: two models share a build."""
    assert sample_plan(target, profile=profile, few_bits=((4, 4),)).targets[0].job.few_bits == kept


def test_the_java_api_is_left_to_the_machine_that_packages() -> None:
    """Unless the buildspec says: then the plan does, and no build depends on it."""
    two = tuple(TargetSpec(id=name) for name in ("android-x86", "android-x86_64"))
    plans = [sample_plan("", targets=two, selected=two, android=AndroidSpec(java=java)) for java in (None, True, False)]
    assert [plan.assemblies[0].java for plan in plans] == [None, True, False]
    assert plans[0].targets == plans[1].targets == plans[2].targets


@pytest.mark.parametrize(
    "options",
    [
        AndroidSpec(api=30),
        AndroidSpec(stl="c++_shared"),
    ],
    ids=["api", "stl"],
)
def test_what_is_chosen_for_android_changes_the_job(options: AndroidSpec) -> None:
    """Each choice is another library; for Linux none of them means anything."""
    models = (replace(MODELS[0], style="runtime"),)
    for target, changes in (("android-arm64-v8a", True), ("linux-x64", False)):
        before, after = (sample_plan(target, android=one, models=models) for one in (AndroidSpec(), options))
        assert (digest(before.targets[0].job) != digest(after.targets[0].job)) == changes


def test_a_buildspec_without_targets_offers_all() -> None:
    """Its targets are the host's by default and any that exists when asked for."""
    spec = sample_spec(targets=())
    assert [target.id for target in select_targets(spec, None, HOST)] == ["linux-x64"]
    assert [target.id for target in select_targets(spec, "linux-arm64", HOST)] == ["linux-arm64"]
