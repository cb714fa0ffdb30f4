"""Targets and the patterns that select them."""

import re
from collections.abc import Mapping
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.buildspec.problems import NAME
from ortrim.buildspec.targets import (
    ABIS,
    APPLE,
    APPLE_ARCHITECTURES,
    CATALYST,
    CPUS,
    FIRST_ANDROID,
    FIRST_GLIBC,
    TARGETS,
    Architecture,
    CLibrary,
    OperatingSystem,
    matches,
    meant_by,
    minimum_glibc,
    selected,
    with_identifiers,
    zig_cpu,
)
from ortrim.errors import UsageError
from refusing import refused

WORDS: Final[Mapping[OperatingSystem, Mapping[Architecture, str]]] = {
    OperatingSystem.LINUX: {Architecture.ARM: "armhf"},
    OperatingSystem.ANDROID: ABIS,
    OperatingSystem.IOS: APPLE_ARCHITECTURES,
    OperatingSystem.MACOS: APPLE_ARCHITECTURES,
}


def test_identifiers_are_the_keys_and_begin_with_their_system() -> None:
    for identifier, target in TARGETS.items():
        assert target.identifier == identifier
        system = {CATALYST: "maccatalyst"}.get(identifier, target.system.value)
        system += "-simulator" if identifier.startswith("ios-simulator-") else ""
        suffix = f"-{target.c_library}" if target.c_library is CLibrary.MUSL else ""
        assert identifier == f"{system}-{WORDS[target.system].get(target.architecture, target.architecture)}{suffix}"


@pytest.mark.parametrize("identifier", TARGETS)
def test_a_target_matches_itself_and_its_system(identifier: str) -> None:
    """The full name and the part before the dash both select it; half a word does not."""
    system = identifier.split("-", maxsplit=1)[0]
    assert matches(identifier, identifier)
    assert matches(system, identifier)
    assert not matches(system[:-1], identifier)


@given(st.text())
def test_no_pattern_is_an_error(pattern: str) -> None:
    assert matches(pattern, "linux-x64") in {True, False}


def test_a_whole_identifier_selects_that_target_alone() -> None:
    assert not matches("linux-arm64", "linux-arm64-musl")
    assert matches("linux-arm64*", "linux-arm64-musl")
    assert matches("linux-arm64-musl", "linux-arm64-musl")


@pytest.mark.parametrize(
    ("target", "asked", "promised"),
    [
        ("linux-x64", "2.17", "2.17"),
        ("linux-arm64", "2.31", "2.31"),
        ("linux-armhf", "2.9", "2.9"),
        ("linux-riscv64", "2.17", "2.27"),
        ("linux-riscv64", "2.100", "2.100"),
        ("linux-arm64-musl", "2.17", ""),
        ("android-arm64-v8a", "2.17", ""),
        ("ios-arm64", "2.17", ""),
    ],
)
def test_no_older_glibc_is_promised_than_there_is(target: str, asked: str, promised: str) -> None:
    """The first glibc of an architecture is the least; versions are compared as numbers; musl has none."""
    assert minimum_glibc(TARGETS[target], asked) == promised


def test_every_architecture_has_a_first_glibc() -> None:
    with_glibc = {target.architecture for target in TARGETS.values() if target.c_library is CLibrary.GLIBC}
    assert set(FIRST_GLIBC) == with_glibc


def test_android_has_its_four_abis() -> None:
    """A prefix selects them all, and the one with the shorter name selects no other."""
    assert [name for name in TARGETS if matches("android", name)] == [f"android-{abi}" for abi in ABIS.values()]
    assert [name for name in TARGETS if matches("android-x86", name)] == ["android-x86"]
    assert FIRST_ANDROID in TARGETS


@pytest.mark.parametrize(
    ("pattern", "selected"),
    [
        ("ios", ["ios-arm64", "ios-simulator-arm64", "ios-simulator-x86_64"]),
        ("ios-simulator", ["ios-simulator-arm64", "ios-simulator-x86_64"]),
        ("ios-arm64", ["ios-arm64"]),
        ("macos", ["macos-arm64", "macos-x86_64"]),
        ("macos-universal2", ["macos-arm64", "macos-x86_64"]),
        ("maccatalyst", ["maccatalyst-arm64"]),
        ("mac*", ["macos-arm64", "macos-x86_64", "maccatalyst-arm64"]),
    ],
)
def test_the_slices_of_a_system_are_selected_together(pattern: str, selected: list[str]) -> None:
    """A phone and its simulators are one name apart from Macs; Mac Catalyst is only there when it is asked for."""
    assert [name for name in TARGETS if matches(pattern, name)] == selected


def test_apples_systems_have_apples_library() -> None:
    """What goes by the C library leaves them alone."""
    ours = {target.identifier for target in TARGETS.values() if target.system in APPLE}
    assert ours == {target.identifier for target in TARGETS.values() if target.c_library is CLibrary.LIBSYSTEM}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("linux-amd64", "linux-x64"),
        ("linux/amd64", "linux-x64"),
        ("Linux-x86_64", "linux-x64"),
        ("x86_64-unknown-linux-gnu", "linux-x64"),
        ("linux-aarch64", "linux-arm64"),
        ("linux/arm64/v8", "linux-arm64"),
        ("aarch64-linux-musl", "linux-arm64-musl"),
        ("linux-armv7l", "linux-armhf"),
        ("linux/arm/v7", "linux-armhf"),
        ("armhf", "linux-armhf"),
        ("riscv64", "linux-riscv64"),
        ("arm64-v8a", "android-arm64-v8a"),
        ("android-arm64", "android-arm64-v8a"),
        ("aarch64-linux-android", "android-arm64-v8a"),
        ("android-armv7", "android-armeabi-v7a"),
        ("android-amd64", "android-x86_64"),
        ("iphone", "ios-arm64"),
        ("ipad", "ios-arm64"),
        ("ios-aarch64", "ios-arm64"),
        ("ios-simulator-amd64", "ios-simulator-x86_64"),
        ("mac-m1", "macos-arm64"),
        ("apple-silicon", "macos-arm64"),
        ("darwin-x86_64", "macos-x86_64"),
        ("mac-intel", "macos-x86_64"),
        ("catalyst", "maccatalyst-arm64"),
    ],
)
def test_other_names_of_targets_are_known(name: str, meant: str) -> None:
    """As Debian, Docker, uname, LLVM, Android and Apple write them; what a name was taken for is said."""
    said: list[str] = []
    assert meant_by(name) == (meant,)
    assert selected(name, note=said.append) == (meant,)
    assert said in ([], [f"target {name} is {meant}"])


@pytest.mark.parametrize("identifier", TARGETS)
def test_an_identifier_is_nobodys_other_name(identifier: str) -> None:
    said: list[str] = []
    assert selected(identifier, note=said.append) == (identifier,)
    assert said == []


@pytest.mark.parametrize(
    ("name", "offered", "chosen"),
    [
        ("aarch64", ("linux-x64", "linux-arm64"), ("linux-arm64",)),
        ("darwin", tuple(TARGETS), ("macos-arm64", "macos-x86_64")),
        ("*-amd64", ("linux-x64", "linux-arm64", "macos-x86_64"), ("linux-x64", "macos-x86_64")),
        ("linux-aarch*", tuple(TARGETS), ("linux-arm64", "linux-arm64-musl")),
    ],
)
def test_other_names_select_among_what_is_offered(name: str, offered: tuple[str, ...], chosen: tuple[str, ...]) -> None:
    """A processor's name is clear where one system is offered; a system's name and a glob select several."""
    assert selected(name, offered) == chosen


@pytest.mark.parametrize("name", ["aarch64", "x86_64", "armv7", "apple"])
def test_a_name_that_several_systems_have_is_refused(name: str) -> None:
    error = refused(UsageError, selected, name)
    assert error.code == "ambiguous-target"
    assert error.hint == f"choose among: {', '.join(meant_by(name))}"


@pytest.mark.parametrize("name", ["linux-x86", "linux-x64-musl", "linux-", "windows-x64", "", "-", "amd64-aarch64"])
def test_no_target_is_guessed(name: str) -> None:
    """A system or processor that there is no target for is nobody's other name."""
    assert meant_by(name) == ()
    assert selected(name) == ()


def test_packages_keep_their_names_among_patterns() -> None:
    """What selects a package for several targets is not taken for a target's other name."""
    said: list[str] = []
    assert with_identifiers("apple, linux-amd64,x", ("apple",), note=said.append) == "apple,linux-x64,x"
    assert said == ["target linux-amd64 is linux-x64"]


def test_every_architecture_has_processors_with_names_that_buildspecs_take() -> None:
    """Each can be written in a buildspec and handed to a shell as it is."""
    assert set(CPUS) == {target.architecture for target in TARGETS.values() if target.system is OperatingSystem.LINUX}
    for names in CPUS.values():
        for name, argument in names.items():
            assert re.fullmatch(NAME, name)
            assert re.fullmatch(r"[a-z0-9_]+([+-][a-z0-9_]+)*", argument)


def test_without_a_name_the_architectures_own_least_is_meant() -> None:
    """ARMv7 alone must say it, because NEON is part of the target."""
    assert {kind: zig_cpu(kind, None) for kind in Architecture if zig_cpu(kind, None)} == {
        Architecture.ARM: "generic+v7a+neon"
    }


def test_a_processor_of_another_architecture_is_unknown() -> None:
    with pytest.raises(KeyError):
        zig_cpu(Architecture.X64, "cortex-a53")
