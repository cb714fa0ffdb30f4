"""Profiles and single build options: what a buildspec's choice comes to."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from ortrim.buildspec.build_options import PROFILE_NAMES, PROFILES, BuildOptions, ProfileName, applicable, profile_for
from ortrim.buildspec.buildspec import BuildOptionChoices
from ortrim.models.operators import MEANS_ALL, needs_wide_characters, parse_config
from ortrim.platforms import ANDROID, APPLE
from sample_plans import MODELS, sample_plan, system_gcc

WITHOUT_FUSION = (dataclasses.replace(MODELS[0], style="runtime"),)


def test_every_profile_has_its_name() -> None:
    assert tuple(PROFILES) == PROFILE_NAMES


def test_upstreams_profile_pulls_no_build_option() -> None:
    assert PROFILES["upstream"] == BuildOptions()
    assert applicable(BuildOptions(), toolchain="zig", elf=True, x64=True, exceptions=False) == BuildOptions()


def test_a_buildspec_can_choose_every_build_option() -> None:
    """Each is documented where buildspecs are, under the same name and with the same values."""
    assert [field.name for field in dataclasses.fields(BuildOptionChoices)] == [
        each.name for each in dataclasses.fields(BuildOptions)
    ]


@pytest.mark.parametrize("profile", [name for name in PROFILE_NAMES if name != "upstream"])
def test_a_build_option_of_the_buildspec_overrules_the_profile(profile: str) -> None:
    chosen = BuildOptionChoices(hot="-O3", icf=False)
    planned = sample_plan(profile=profile, build_options=chosen).targets[0].job.build_options
    assert planned == dataclasses.replace(PROFILES[profile], hot="-O3", icf=False)


def test_upstreams_profile_hears_no_build_option_of_the_buildspec() -> None:
    planned = sample_plan(profile="upstream", build_options=BuildOptionChoices(hot="-O3", icf=True)).targets[0].job
    assert planned.build_options == PROFILES["upstream"]
    assert planned.profile == "upstream"


def test_exceptions_keep_what_they_need() -> None:
    build_options = applicable(PROFILES["balanced"], toolchain="zig", elf=True, x64=True, exceptions=True)
    assert build_options == dataclasses.replace(PROFILES["balanced"], unwind_tables=True, libcxx_no_exceptions=False)


@pytest.mark.parametrize("profile", [name for name in PROFILE_NAMES if name != "upstream"])
def test_crash_reporters_of_phones_and_macs_can_walk_the_stack(profile: str) -> None:
    """Unwind tables are on there unless a buildspec says otherwise, and on Apple's systems frame pointers are."""

    def kept(target: str, *, chosen: bool | None = None) -> tuple[bool | str | None, bool]:
        choices = BuildOptionChoices(unwind_tables=chosen)
        planned = sample_plan(target, profile=profile, models=WITHOUT_FUSION, build_options=choices)
        options = planned.targets[0].job.build_options
        return options.unwind_tables, options.frame_pointers

    assert {kept(name) for name in ("android-arm64-v8a", "android-armeabi-v7a")} == {("compressed", False)}
    assert {kept(name) for name in ("ios-arm64", "macos-x86_64")} == {(True, True)}
    assert {kept(name) for name in ("linux-x64", "linux-arm64-musl")} == {(False, False)}
    assert kept("android-arm64-v8a", chosen=False) == (False, False)
    assert kept("linux-x64", chosen=True) == (True, False)


def test_upstreams_recipe_is_the_same_on_every_system() -> None:
    """It compiles without unwind tables everywhere, and leaves those of the C++ library."""
    for target in ("android-arm64-v8a", "macos-arm64", "linux-x64"):
        job = sample_plan(target, profile="upstream", models=WITHOUT_FUSION).targets[0].job
        assert job.build_options == BuildOptions()
        assert not [word for word in job.arguments if "unwind" in word or "frame" in word]


@pytest.mark.parametrize("toolchain", ["gcc", "clang"])
def test_a_compiler_of_the_system_pulls_no_build_option_of_the_linkers(toolchain: str) -> None:
    """Its linker may be any; the plan does not claim what it cannot know."""
    build_options = applicable(PROFILES["balanced"], toolchain=toolchain, elf=True, x64=True, exceptions=False)
    assert not build_options.icf
    assert not build_options.libcxx_no_exceptions
    assert build_options.unwind_tables is False
    assert build_options.demangler
    assert not build_options.dead_kernel_elimination
    assert build_options.precompiled_headers == (toolchain == "clang")


def test_only_zig_compiles_the_cpp_library_along() -> None:
    """No other toolchain brings its sources."""
    build_options = applicable(PROFILES["balanced"], toolchain="ndk", elf=True, x64=True, exceptions=False)
    assert build_options == dataclasses.replace(
        PROFILES["balanced"], libcxx_no_exceptions=False, compression_ordering=False
    )


def test_a_mach_o_library_is_linked_by_another_linker() -> None:
    """It has of lld's build options what is done without it; how sources are optimised holds there, too."""
    build_options = applicable(PROFILES["balanced"], toolchain="zig", elf=False, x64=True, exceptions=False)
    assert build_options.icf
    assert not build_options.compression_ordering
    assert not applicable(PROFILES["balanced"], toolchain="xcode", elf=False, x64=False, exceptions=False).icf
    assert build_options.libcxx_no_exceptions
    assert build_options.dead_kernel_elimination
    assert (build_options.cold, build_options.hot) == ("-Oz", "-O2")
    assert not build_options.avx512_kernels


def test_a_plan_says_which_build_options_are_pulled() -> None:
    """Those of the profile, as far as the toolchain has them: the job's digest hangs on them."""
    assert sample_plan().targets[0].job.build_options == PROFILES["balanced"]
    assert not sample_plan(toolchain=system_gcc()).targets[0].job.build_options.icf


def test_the_documentation_has_the_profiles_as_they_are() -> None:
    text = (Path(__file__).parents[3] / "docs" / "guides" / "size.md").read_text(encoding="utf-8")
    text = text.partition("## What each build option does")[0]
    rows = [[word.strip(" `") for word in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]
    (heads, *table) = [row for row in rows if len(row) == len(PROFILES) + 1]
    order = [name for head in heads[1:] for name in PROFILE_NAMES if name == head.removesuffix("` (default)")]
    assert set(order) == set(PROFILES)
    words = {True: "yes", False: "no", None: "C++ library's"}
    platforms = {"Android": ANDROID.KEPT, "Apple": APPLE.KEPT}

    def shown(profile: ProfileName, option: str) -> str:
        value = getattr(PROFILES[profile], option)
        on = [name for name, kept in platforms.items() if getattr(profile_for(profile, kept), option) != value]
        on_for = f" (on for {', '.join(on)})" if on else ""
        return f"{words.get(value, value)}{on_for}"

    expected = [[each.name, *(shown(name, each.name) for name in order)] for each in dataclasses.fields(BuildOptions)]
    assert table == expected


@pytest.mark.parametrize("changed", [{"x64": False}, {"toolchain": "gcc"}])
def test_wide_vectors_come_where_unreached_kernels_go(changed: dict[str, Any]) -> None:
    """On x64, with a linker that leaves out what no model reaches; otherwise every library would carry them all."""
    usual: dict[str, Any] = {"toolchain": "zig", "elf": True, "x64": True, "exceptions": False}
    assert applicable(PROFILES["balanced"], **usual).avx512_kernels
    assert not applicable(PROFILES["balanced"], **{**usual, **changed}).avx512_kernels
    kept = dataclasses.replace(PROFILES["balanced"], dead_kernel_elimination=False)
    assert not applicable(kept, **usual).avx512_kernels


@pytest.mark.parametrize("profile", ["size", "speed"])
def test_a_static_library_is_not_optimised_at_the_link(profile: str) -> None:
    """It is joined of what the shared one's link map names, where such a link has one object that is no file."""
    assert sample_plan(profile=profile).targets[0].job.build_options.lto
    planned = sample_plan(profile=profile, linkage="static").targets[0].job.build_options
    assert planned == dataclasses.replace(PROFILES[profile], lto=False)


@pytest.mark.parametrize("config", ["ai.onnx;10;StringNormalizer\n", MEANS_ALL + "\n"])
def test_wide_characters_need_the_toolchains_own_library(config: str) -> None:
    """One kernel works on them; all others go without, and with them the C++ library that is compiled along."""
    operators = parse_config(config, "here")
    assert needs_wide_characters(operators)
    assert not sample_plan(operators=operators).targets[0].job.build_options.libcxx_no_exceptions
    assert sample_plan().targets[0].job.build_options.libcxx_no_exceptions
