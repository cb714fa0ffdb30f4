"""What a version's word means, and which models each version loads, by the data that ships with ortrim."""

import re
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import refusing
from ortrim.errors import SourcesError, SpecError
from ortrim.pins import runtime, shipped
from ortrim.pins.shipped import pin_text, writable_pins_folder


def test_supported_version_has_all_that_a_build_needs() -> None:
    pins = runtime.runtime_pins("1.21.0")
    assert pins.converter_requirements is not None
    assert "onnxruntime==1.21.0 " in pins.converter_requirements
    assert pins.debian is not None
    for_xnnpack = ("fxdiv", "pthreadpool", "xnnpack")
    assert tuple(pin.name for pin in pins.debian.components) == (*runtime.COMPONENTS, *for_xnnpack)
    assert pins.debian.suite == "trixie"
    assert pins.commit is not None


@pytest.mark.parametrize("version", ["1.22.1", "1.22.2"])
def test_broken_versions_are_refused_with_what_to_use_instead(version: str) -> None:
    caught = refusing.refused(SpecError, runtime.runtime_pins, version)
    assert caught.code == "known-broken-version"
    assert "onnx_minimal.cmake" in caught.why
    assert caught.hint == "use 1.22.0"


@pytest.mark.parametrize(
    ("version", "nearest"),
    [("1.21.7", "1.21.1"), ("1.22.9", "1.22.0"), ("2.0.0", "1.32.0"), ("0.0.0", "1.21.0"), ("", "1.21.0")],
)
def test_unknown_versions_name_the_nearest(version: str, nearest: str) -> None:
    caught = refusing.refused(SpecError, runtime.runtime_pins, version)
    assert caught.code == "unknown-version"
    assert f"knows is {nearest};" in caught.hint


def test_every_supported_version_loads() -> None:
    for version in runtime.supported_versions():
        pins = runtime.runtime_pins(version)
        limits = runtime.limits_of(version)
        assert limits is not None
        assert 7 <= limits.opset < 40
        assert pins.converter_requirements is not None
    broken = [
        entry["known_broken"]["instead"]
        for entry in runtime.versions_file()["versions"].values()
        if "known_broken" in entry
    ]
    assert set(broken) <= set(runtime.supported_versions())


def test_every_component_has_a_licence_and_a_name_upstream() -> None:
    assert tuple(runtime.licence_ids()) == (*runtime.COMPONENTS, *runtime.OPTIONAL)
    assert sorted(runtime.upstream_names().values()) == sorted(
        {*runtime.COMPONENTS, *runtime.OPTIONAL} - {"onnxruntime"}
    )


def test_users_pins_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path))
    name = runtime.pin_file_name("1.22.0", "upstream")
    (tmp_path / name).write_text(f'commit = "{"a" * 40}"\n')
    pins = runtime.runtime_pins("1.22.0")
    assert pins.commit is not None
    assert pins.commit.commit == "a" * 40
    (tmp_path / name).write_text("commit = ")
    caught = refusing.refused(SourcesError, runtime.runtime_pins, "1.22.0")
    assert caught.code == "bad-pin-file"


def test_updates_go_where_pins_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert pin_text("onnxruntime-0.0.0-upstream.toml") is None


@pytest.mark.parametrize(
    ("word", "version"),
    [
        ("1.30", "1.30.0"),
        ("1.21", "1.21.1"),
        ("1.24", "1.24.4"),
        ("1.22", "1.22.0"),
        ("1.22.2", "1.22.2"),
        ("1.21.0", "1.21.0"),
        ("1.99", "1.99.0"),
        ("9.9.9", "9.9.9"),
    ],
)
def test_a_minor_version_is_its_newest_patch(word: str, version: str) -> None:
    """Of those that are not known to be broken; whole versions, and minor ones that are unknown, are judged later."""
    assert runtime.exact_version(word) == version


def test_the_newest_has_pinned_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path))
    before = runtime.exact_version("newest")
    assert before in runtime.supported_versions()
    (tmp_path / "onnxruntime-1.32.0-upstream.toml").write_text("")
    assert runtime.exact_version("newest") == "1.32.0"


def test_the_default_is_known() -> None:
    assert runtime.default_version() in runtime.supported_versions()


def test_limits_only_grow() -> None:
    limits = [runtime.limits_of(version) for version in runtime.supported_versions()]
    found = [(each.opset, each.ml_opset or 0, each.ir_version) for each in limits if each]
    assert len(found) == len(limits)
    for older, newer in pairwise(found):
        assert all(least <= most for least, most in zip(older, newer, strict=True))
    assert runtime.limits_of("9.9.9") is runtime.limits_of("1.22.1") is None


def test_what_a_model_needs_is_named() -> None:
    assert runtime.needed_for_opset("ai.onnx", 24) == "opset 24 of ai.onnx needs ONNX Runtime 1.24.4 or later"
    assert runtime.needed_for_ir_version(11) == "IR version 11 needs ONNX Runtime 1.23.2 or later"
    newest = runtime.supported_versions()[-1]
    assert runtime.needed_for_opset("ai.onnx.ml", 99).endswith(f"loads opset 99 of ai.onnx.ml; the newest is {newest}")


SHIPPED: Final = pin_text("onnxruntime-1.21.0-debian.toml") or ""
COMMIT: Final = pin_text("onnxruntime-1.21.0-upstream.toml") or ""


def read(text: str) -> runtime.SourceSet:
    return runtime.read_source_set(text, "file.toml", runtime.licence_ids())


def refused(text: str, reference: str) -> SourcesError:
    caught = refusing.refused(SourcesError, read, text)
    assert caught.code == reference
    return caught


def test_shipped_file_is_read() -> None:
    pins = {pin.name: pin for pin in read(SHIPPED).components}
    assert (pins["onnxruntime"].origin, pins["onnxruntime"].strip) == ("debian-source", 1)
    assert (pins["safeint"].origin, pins["safeint"].location) == ("debian-binary", "libsafeint-dev")
    assert (pins["eigen"].origin, pins["eigen"].location) == ("wheel", "cmeel-eigen==3.4.1")
    assert pins["eigen"].take == (("cmeel.prefix/include/eigen3", "include"),)
    assert pins["mp11"].licence == "BSL-1.0"


def test_entry_without_a_digest_is_refused() -> None:
    text = re.sub(r'(name = "x"|\[components\.re2\][^\[]*?)sha256 = "[0-9a-f]+"\n', r"\1", SHIPPED)
    assert text != SHIPPED
    assert "components.re2" in refused(text, "pin-without-digest").where


def test_a_version_without_a_commit_is_refused() -> None:
    caught = refusing.refused(
        SourcesError, runtime.read_commit_pin, COMMIT.replace("commit = ", "# commit = ", 1), "upstream.toml"
    )
    assert caught.code == "pin-without-digest"
    pin = runtime.read_commit_pin(COMMIT, "upstream.toml")
    assert pin.commit == "e0b66cad282043d4377cea5269083f17771b6dfc"
    assert pin.left_out["onnxruntime/test"].startswith("tree ")
    assert len(pin.witnesses) > 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('debian_source = "re2"\n', ""),
        ('debian_source = "re2"\n', 'debian_source = "re2"\nurl = "https://example.org/x"\n'),
        ('debian_source = "re2"\n', 'url = "file:///etc/passwd"\n'),
        ('debian_source = "re2"\n', 'debian_source = "--option"\n'),
        ('wheel = "cmeel-eigen==3.4.1"', 'wheel = "cmeel-eigen"'),
        ('file = "re2_', 'file = "../re2_'),
        ('file = "re2_', 'file = "-re2_'),
        ('sha256 = "eb2d', 'sha256 = "EB2D'),
        ('sha256 = "eb2d', 'sha256 = "eb2'),
        ('suite = "trixie"', ""),
        ('suite = "trixie"', 'sweet = "trixie"'),
        ("[components.re2]", "[components.re3]"),
        ("strip = 1", 'strip = "one"'),
        ("strip = 1", "strip = -1"),
        ('interface = "Eigen3::Eigen"', 'interface = "Eigen3)\\nexecute_process("'),
    ],
)
def test_wrong_entries_are_refused(old: str, new: str) -> None:
    assert old in SHIPPED
    assert refused(SHIPPED.replace(old, new), "bad-pin-file").where == "file.toml"


@pytest.mark.parametrize("text", ["", "suite = ", "components = 3", "[components]\nre2 = 1", "[[components]]\na = 1"])
def test_other_toml_is_refused(text: str) -> None:
    refused(text, "bad-pin-file")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('commit = "e0b66', 'commit = "0b66'),
        ('tree = "', 'tree = "--'),
        ('"csharp" =', '"../csharp" ='),
        ('"csharp" =', '"-csharp" ='),
        ('"csharp" = "tree', '"csharp" = "blob'),
        ("[archives]", "[archive]"),
    ],
)
def test_wrong_commit_pins_are_refused(old: str, new: str) -> None:
    assert old in COMMIT
    caught = refusing.refused(SourcesError, runtime.read_commit_pin, COMMIT.replace(old, new, 1), "upstream.toml")
    assert caught.code == "bad-pin-file"


@given(st.text(alphabet='[]{}="#.,\n abcu123'))
def test_any_text_ends_in_a_diagnostic(text: str) -> None:
    for reader in (read, lambda each: runtime.read_commit_pin(each, "upstream.toml")):
        with suppress(SourcesError):
            reader(text)
