import re
from pathlib import Path

import pytest

from ortrim.errors import ExitCode, SourcesError, SpecError
from ortrim.pins import shipped
from ortrim.pins.runtime import (
    COMPONENTS,
    OPTIONAL,
    licence_ids,
    limits_of,
    pin_file_name,
    runtime_pins,
    supported_versions,
    upstream_names,
    versions_file,
)
from ortrim.pins.shipped import pin_text, writable_pins_folder


def test_supported_version_has_all_that_a_build_needs() -> None:
    """1.21.0 comes with a converter, and sources through Debian for every component."""
    pins = runtime_pins("1.21.0")
    assert pins.converter_requirements is not None
    assert "onnxruntime==1.21.0 " in pins.converter_requirements
    assert pins.debian is not None
    assert tuple(pin.name for pin in pins.debian.components) == COMPONENTS
    assert pins.debian.suite == "trixie"
    assert pins.commit is not None


@pytest.mark.parametrize("version", ["1.22.1", "1.22.2"])
def test_broken_versions_are_refused_with_what_to_use_instead(version: str) -> None:
    """A version known to be broken is refused with the reason and a version that is not."""
    with pytest.raises(SpecError) as caught:
        runtime_pins(version)
    assert caught.value.code == "known-broken-version"
    assert caught.value.exit_code == ExitCode.SPEC
    assert "onnx_minimal.cmake" in caught.value.why
    assert caught.value.hint == "use 1.22.0"


@pytest.mark.parametrize(
    ("version", "nearest"),
    [("1.21.7", "1.21.1"), ("1.22.9", "1.22.0"), ("2.0.0", "1.32.0"), ("0.0.0", "1.21.0"), ("", "1.21.0")],
)
def test_unknown_versions_name_the_nearest(version: str, nearest: str) -> None:
    """A version that ortrim does not know is refused with the nearest that it does."""
    with pytest.raises(SpecError) as caught:
        runtime_pins(version)
    assert caught.value.code == "unknown-version"
    assert f"knows is {nearest};" in caught.value.hint


def test_every_supported_version_loads() -> None:
    """All versions that are offered can be loaded, and those that are offered instead of broken ones exist."""
    for version in supported_versions():
        pins = runtime_pins(version)
        limits = limits_of(version)
        assert limits is not None
        assert 7 <= limits.opset < 40
        assert pins.converter_requirements is not None
    broken = [
        entry["known_broken"]["instead"] for entry in versions_file()["versions"].values() if "known_broken" in entry
    ]
    assert set(broken) <= set(supported_versions())


def test_every_component_has_a_licence_and_a_name_upstream() -> None:
    """Components of the tree and of the data are the same."""
    assert tuple(licence_ids()) == (*COMPONENTS, *OPTIONAL)
    assert sorted(upstream_names().values()) == sorted({*COMPONENTS, *OPTIONAL} - {"onnxruntime"})


def test_users_pins_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pin file in the user's folder replaces the shipped one; a damaged one is refused, not ignored."""
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path))
    name = pin_file_name("1.22.0", "upstream")
    (tmp_path / name).write_text(f'commit = "{"a" * 40}"\n')
    pins = runtime_pins("1.22.0")
    assert pins.commit is not None
    assert pins.commit.commit == "a" * 40
    (tmp_path / name).write_text("commit = ")
    with pytest.raises(SourcesError) as caught:
        runtime_pins("1.22.0")
    assert caught.value.code == "bad-pin-file"


def test_updates_go_where_pins_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a checkout the shipped files are updated; an installed ortrim writes to the user's folder."""
    monkeypatch.delenv("ORTRIM_PINS", raising=False)
    assert (writable_pins_folder() / "onnxruntime.toml").is_file()
    monkeypatch.setattr(shipped, "__file__", str(tmp_path / "site-packages/ortrim/pins/shipped.py"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert writable_pins_folder() == tmp_path / "config/ortrim/pins"


def test_no_address_of_a_registry_is_shipped() -> None:
    """Pin files and requirements name packages, never the registry that they come from."""
    for path in Path(shipped.__file__).parent.rglob("*"):
        if path.suffix in {".toml", ".txt"} and path.parent.name != "licences":
            hosts = set(re.findall(r"https?://([^/\s\"]+)", path.read_text()))
            assert hosts <= {"github.com", "gitlab.com"}, path
            assert "--index-url" not in path.read_text()
            assert "--find-links" not in path.read_text()


def test_missing_file_is_none() -> None:
    """A pin file that does not exist is no error."""
    assert pin_text("onnxruntime-0.0.0-upstream.toml") is None
