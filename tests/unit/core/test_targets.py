"""Targets and the patterns that select them."""

from collections.abc import Mapping
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.core.targets import (
    ABIS,
    APPLE,
    APPLE_ARCHITECTURES,
    CATALYST,
    FIRST_ANDROID,
    FIRST_GLIBC,
    TARGETS,
    Architecture,
    CLibrary,
    OperatingSystem,
    matches,
    minimum_glibc,
)

WORDS: Final[Mapping[OperatingSystem, Mapping[Architecture, str]]] = {
    OperatingSystem.LINUX: {Architecture.ARM: "armhf"},
    OperatingSystem.ANDROID: ABIS,
    OperatingSystem.IOS: APPLE_ARCHITECTURES,
    OperatingSystem.MACOS: APPLE_ARCHITECTURES,
}


def test_identifiers_are_the_keys_and_begin_with_their_system() -> None:
    """A prefix such as `linux` selects the targets of a system, so that every identifier begins with it."""
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
    """Whatever is typed either selects a target or does not."""
    assert matches(pattern, "linux-x64") in {True, False}


def test_a_whole_identifier_selects_that_target_alone() -> None:
    """The target with the longer name is another one, although the shorter is a prefix of it."""
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
    """A new architecture with glibc comes with it."""
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
