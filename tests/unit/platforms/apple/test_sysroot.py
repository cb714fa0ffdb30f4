"""The sysroot that zig compiles with for Apple's systems: which names its stub has, and what becomes of a change."""

from pathlib import Path

import pytest

from ortrim.binaries.xcframework import categories, plain_name
from ortrim.buildspec.targets import APPLE, TARGETS
from ortrim.platforms.apple import sysroot
from ortrim.platforms.apple.arguments import zig_apple_toolchain

OURS = [name for name, target in TARGETS.items() if target.system in APPLE]
TRIPLES = [zig_apple_toolchain(TARGETS[name], "16.0", "0.17.0").triple for name in OURS]


@pytest.mark.parametrize("triple", TRIPLES)
def test_names_that_apple_wants_a_reason_for_are_not_offered(triple: str) -> None:
    """All that ONNX Runtime has no reason for; what it declares stays."""
    names = {plain_name(name) for name in sysroot.public_names(triple)}
    reasoned = {symbol for category in categories() if not category.reasons for symbol in category.symbols}
    assert len(reasoned) > 1
    assert not names & reasoned
    assert {"stat", "mach_absolute_time", "malloc", "pthread_create"} <= names


@pytest.mark.parametrize(
    ("name", "without", "having"),
    [
        ("preadv", "aarch64-ios.13.7", "aarch64-ios.14.0"),
        ("preadv", "x86_64-macos.10.15", "x86_64-macos.11.0"),
        ("mkfifoat", "aarch64-maccatalyst.15.6", "aarch64-maccatalyst.16.0"),
        ("mkfifoat", "aarch64-macos.12.7", "aarch64-macos.13.3"),
        ("stat$INODE64", "x86_64-ios.15.1-simulator", "x86_64-macos.13.3"),
        ("stat", "x86_64-macos.13.3", "x86_64-ios.15.1-simulator"),
        ("system", "aarch64-ios.26.0", "aarch64-macos.26.0"),
        ("daemon", "x86_64-macos.13.3", "aarch64-macos.13.3"),
    ],
)
def test_a_name_is_offered_where_it_is_there(name: str, without: str, having: str) -> None:
    """By release, system and processor: macOS 11 came with iOS 14, and since 26 both have one number."""
    assert name not in sysroot.public_names(without)
    assert name in sysroot.public_names(having)


def test_the_stub_spells_names_as_mach_o_does() -> None:
    """With an underscore before those of C."""
    text = sysroot.sysroot_files("x86_64-ios.15.1-simulator")[sysroot.STUB]
    assert "targets: [ x86_64-ios-simulator ]" in text
    assert "'_malloc'" in text
    assert "'__exit'" in text
    assert "'dyld_stub_binder'" in text
    assert "'_dyld_stub_binder'" not in text


def test_another_list_is_another_toolchain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that nothing that was compiled with the one is taken for the other's."""
    before = zig_apple_toolchain(TARGETS["ios-arm64"], "15.1", "0.17.0")
    (tmp_path / "apple").mkdir()
    (tmp_path / "apple" / "symbols.toml").write_text('[headers."13.0"]\nall = "malloc"\n')
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path))
    after = zig_apple_toolchain(TARGETS["ios-arm64"], "15.1", "0.17.0")
    assert sysroot.public_names(after.triple) == ("malloc",)
    assert before.triple == after.triple
    assert all(ours != theirs for ours, theirs in zip(before.wrappers, after.wrappers, strict=True))


def test_a_sysroot_is_made_once_and_lies_where_its_content_says(tmp_path: Path) -> None:
    """Compilers know the folder by its name."""
    toolchain = zig_apple_toolchain(TARGETS["maccatalyst-arm64"], "14.0", "0.17.0")
    folder = sysroot.sysroot_of(toolchain)
    assert folder == sysroot.sysroot_of(toolchain)
    assert folder.name == sysroot.sysroot_digest(toolchain.triple)
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert found == {*sysroot.sysroot_files(toolchain.triple)}
