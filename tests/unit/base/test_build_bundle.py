"""Bundles for builds without a network: what is read of them, and what is refused."""

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from bundle_samples import FILES, MADE, write_bundle
from ortrim.base import build_bundle
from ortrim.base.files import sha256_of
from ortrim.base.json import to_json
from ortrim.base.scripts import download_wheels, packages_folder
from ortrim.errors import Diagnostic, SourcesError, StorageError, ToolError
from refusing import refused
from small_wheels import write_wheel
from zips import zipped


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_bundle(tmp_path / "b.zip")


def write_by_hand(path: Path, manifest: object, files: Mapping[str, bytes] = FILES) -> None:
    path.write_bytes(zipped({**files, build_bundle.MANIFEST: to_json(manifest)}))


def sizes(files: Mapping[str, bytes] = FILES, digest: str = "0" * 64) -> dict[str, build_bundle.BundledFile]:
    return {name: build_bundle.BundledFile(size_bytes=len(content), sha256=digest) for name, content in files.items()}


def test_files_come_out_as_they_went_in(path: Path, tmp_path: Path) -> None:
    bundle = build_bundle.read_bundle(path)
    for name, content in FILES.items():
        bundle.take(name, tmp_path / "out", "a file")
        assert (tmp_path / "out").read_bytes() == content
    assert replace(bundle.manifest, files={}) == MADE


def test_the_same_files_are_the_same_bundle(path: Path, tmp_path: Path) -> None:
    assert sha256_of(write_bundle(tmp_path / "again.zip")) == sha256_of(path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_half_a_bundle(path: Path, share: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(StorageError, match="cut short") as caught:
        build_bundle.read_bundle(path)
    assert (caught.value.code, caught.value.where) == ("corrupt-archive", str(path))


def other_layout(path: Path) -> None:
    write_by_hand(path, replace(MADE, layout=build_bundle.LAYOUT + 1, files=sizes()))


def other_manifest(path: Path) -> None:
    write_by_hand(path, {"name": "x"})


def no_manifest(path: Path) -> None:
    path.write_bytes(zipped({"a": "b"}))


def page(path: Path) -> None:
    path.write_text("<html>")


def outside(path: Path) -> None:
    files = {"../../outside": b"x"}
    write_by_hand(path, replace(MADE, files=sizes(files)), files)


def lost_member(path: Path) -> None:
    write_by_hand(
        path, replace(MADE, files=sizes() | {"archives/b.zip": build_bundle.BundledFile(size_bytes=1, sha256="0" * 64)})
    )


def added_member(path: Path) -> None:
    write_by_hand(path, replace(MADE, files=sizes()), {**FILES, "wheels/evil-1.0-py3-none-any.whl": b"x"})


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (Path.unlink, "no-such-bundle"),
        (page, "corrupt-archive"),
        (no_manifest, "not-a-bundle"),
        (other_manifest, "not-a-bundle"),
        (other_layout, "not-a-bundle"),
        (outside, "unsafe-archive"),
        (lost_member, "bundle-incomplete"),
        (added_member, "bundle-incomplete"),
    ],
)
def test_what_is_no_bundle(path: Path, spoil: Callable[[Path], Any], code: str) -> None:
    spoil(path)
    caught = refused(Diagnostic, build_bundle.read_bundle, path)
    assert (caught.code, caught.where) == (code, str(path))
    assert caught.hint


def test_a_member_that_was_changed(path: Path, tmp_path: Path) -> None:
    write_by_hand(path, replace(MADE, files=sizes()))
    with pytest.raises(StorageError, match=r"archives/a\.zip") as caught:
        build_bundle.read_bundle(path).take("archives/a.zip", tmp_path / "out", "a file")
    assert caught.value.code == "digest-mismatch"
    assert not (tmp_path / "out").exists()


def test_what_a_bundle_is_for(path: Path) -> None:
    bundle = build_bundle.read_bundle(path)
    bundle.require("1.24.4", ("linux-arm64",))
    with pytest.raises(SourcesError, match=r"for ONNX Runtime 1\.24\.4, not 1\.30\.0") as caught:
        bundle.require("1.30.0", ("linux-x64",))
    assert caught.value.code == "bundle-of-another-version"
    with pytest.raises(SourcesError, match="not for android-x86") as caught:
        bundle.require("1.24.4", ("linux-x64", "android-x86"))
    assert caught.value.code == "bundle-lacks-target"
    assert caught.value.hint.endswith("--target linux-x64,android-x86")


def test_what_it_lacks(path: Path, tmp_path: Path) -> None:
    """The error says in words what that is, and what the bundle was made for."""
    with pytest.raises(SourcesError, match="does not hold the model 'vad'") as caught:
        build_bundle.read_bundle(path).take("models/x.onnx", tmp_path / "out", "the model 'vad'")
    assert caught.value.code == "bundle-lacks"
    assert "buildspec demo, for ONNX Runtime 1.24.4 on linux-x64, linux-arm64" in caught.value.why
    assert not (tmp_path / "out").exists()


def test_the_option_comes_before_the_environment(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.delenv(build_bundle.VARIABLE, raising=False)
    assert build_bundle.site_bundle() is None
    with build_bundle.chosen_bundle(None):
        assert build_bundle.site_bundle() is None
    with build_bundle.chosen_bundle(str(path)):
        assert asdict(build_bundle.read_bundle(path)) == asdict(
            build_bundle.site_bundle() or build_bundle.BuildBundle(path=Path(), manifest=MADE)
        )
    assert build_bundle.VARIABLE not in os.environ
    monkeypatch.setenv(build_bundle.VARIABLE, "environment.zip")
    with build_bundle.chosen_bundle(str(path)):
        assert os.environ[build_bundle.VARIABLE] == str(path)
    assert os.environ[build_bundle.VARIABLE] == "environment.zip"


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    (tmp_path / "wheels").mkdir()
    line, other = (write_wheel(tmp_path / "wheels", "onepackage", version) for version in ("1.5", "1.6"))
    name = "onepackage-1.5-py3-none-any.whl"
    bundle = write_bundle(tmp_path / "b.zip", {f"wheels/{name}": (tmp_path / "wheels" / name).read_bytes()})
    monkeypatch.setenv(build_bundle.VARIABLE, str(bundle))
    return line, other


def test_wheels_are_installed_without_an_index(lines: tuple[str, str]) -> None:
    """Those of the bundle, and nothing of it stays beside them."""
    folder = packages_folder("tools", lines[0])
    assert (folder / "onepackage.py").read_text() == "VERSION = '1.5'\n"
    assert {path.name for path in folder.iterdir()} - {"__pycache__"} == {"onepackage-1.5.dist-info", "onepackage.py"}


def test_a_wheel_that_the_bundle_lacks(lines: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="does not hold the wheels of 'tools'") as caught:
        packages_folder("tools", lines[0] + lines[1].replace("onepackage", "another"))
    assert caught.value.code == "bundle-lacks"
    assert "another==1.6" in caught.value.why
    assert not [path for path in (tmp_path / "cache" / "packages").iterdir() if path.is_dir()]


def test_no_other_place_is_asked(lines: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the user's settings name one that has the wheel."""
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    assert refused(ToolError, packages_folder, "tools", lines[1]).code == "bundle-lacks"


def test_wheels_are_taken_from_one_bundle_for_another(lines: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    download_wheels("tools", lines[0], tmp_path / "taken")
    assert [path.name for path in (tmp_path / "taken").iterdir()] == ["onepackage-1.5-py3-none-any.whl"]
