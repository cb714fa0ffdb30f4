"""Bundles made from a likeness of upstream, and sources fetched from them where there is no network."""

import json
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from ortrim.base.archives import unpack
from ortrim.base.build_bundle import VARIABLE, BundleManifest, new_bundle, read_bundle
from ortrim.base.command import run
from ortrim.base.console import Console
from ortrim.errors import Diagnostic, SourcesError
from ortrim.pins.runtime import runtime_pins
from ortrim.pipeline import bundling
from ortrim.pipeline.bundling import make_bundle
from ortrim.sources.sources import SourceTree, fetch_sources
from refusing import refused
from small_wheels import write_wheel
from upstream_likeness import VERSION, Upstream, running_upstream
from zips import zipped

pytestmark = pytest.mark.needs("git")
DAY_SECONDS: Final = 86_400


def wheel_for(name: str, _requirements: str, folder: Path, **_machine: object) -> None:
    write_wheel(folder, name.partition(" ")[0].replace("-", "_"), "1.0")


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    """Serve a likeness of upstream on loopback, with a version that is pinned, and small wheels."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(bundling, "download_wheels", wheel_for)
    with running_upstream(tmp_path, monkeypatch) as running:
        running.update()
        yield running


def made(tmp_path: Path, target: str = "linux-x64") -> tuple[Path, BundleManifest]:
    return make_bundle(None, VERSION, target, tmp_path / "made" / "b.zip", Console(json_mode=True))


def carry(upstream: Upstream, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    upstream.repository.rename(upstream.repository.with_name("gone"))
    upstream.served.rename(upstream.served.with_name("not-served"))
    monkeypatch.delenv("ORTRIM_MIRRORS")
    monkeypatch.setenv("ORTRIM_CACHE", str(bundle.parent / "cache"))
    monkeypatch.setenv(VARIABLE, str(bundle))
    return bundle.parent / "cache"


def files_of(tree: SourceTree) -> dict[str, tuple[int, bytes]]:
    files = [path for path in tree.folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(tree.folder)): (path.stat().st_mode & 0o100, path.read_bytes()) for path in files}


def test_sources_from_a_bundle_are_those_from_upstream(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File by file, what may be run and what pins each among it, with upstream gone."""
    bundle, manifest = made(tmp_path)
    before = fetch_sources(runtime_pins(VERSION), "upstream")
    carry(upstream, bundle, monkeypatch)
    after = fetch_sources(runtime_pins(VERSION), "upstream")
    assert files_of(after) == files_of(before)
    assert (after.folder / "re2" / "link").is_symlink()
    assert after.pins == before.pins
    assert after.folder != before.folder
    assert (manifest.version, manifest.targets) == (VERSION, ("linux-x64",))
    assert not [path for path in bundle.parent.iterdir() if path.name not in {"b.zip", "cache"}]


@pytest.mark.needs("unshare")
def test_no_interface_is_needed(upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a network namespace that has none, not even loopback."""
    bundle, _ = made(tmp_path)
    before = fetch_sources(runtime_pins(VERSION), "upstream")
    cache = carry(upstream, bundle, monkeypatch)
    program = (
        "from pathlib import Path\nfrom ortrim.sources import sources\nfrom ortrim.pins.runtime import runtime_pins\n"
        "sources.packages_folder = sources.arrange_dependencies = lambda *_: Path()\n"
        f"sources.fetch_sources(runtime_pins({VERSION!r}), 'upstream')\n"
    )
    alone = ("unshare", "--map-root-user", "--net")
    done = run((*alone, sys.executable, "-c", program), timeout_seconds=120)
    assert done.returncode == 0, done.stderr
    (tree,) = [path for path in (cache / "sources").iterdir() if path.is_dir()]
    assert files_of(SourceTree(folder=tree, kind="upstream", pins=())) == files_of(before)


def test_a_bundle_has_what_each_target_is_compared_with(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the tools and the converter for this machine; with the same files it is the same bundle on any day."""
    bundle, manifest = made(tmp_path, "linux-x64,linux-arm64,macos-arm64")
    assert set(manifest.targets) == {"linux-x64", "linux-arm64", "macos-arm64"}
    wheels = {name.removeprefix("wheels/").split("-")[0] for name in manifest.files if name.startswith("wheels/")}
    assert wheels == {"tools", "onnx", "onnxslim", "onnxsim", f"onnxruntime_{VERSION}"}
    content, today = bundle.read_bytes(), time.time
    monkeypatch.setattr(time, "time", lambda: today() + DAY_SECONDS)
    made(tmp_path, "linux-x64,linux-arm64,macos-arm64")
    assert bundle.read_bytes() == content
    assert read_bundle(bundle).manifest == manifest


def rewritten(bundle: Path, part: str, change: Callable[[Path], object]) -> None:
    folder = bundle.parent / "unpacked"
    unpack(bundle, folder)
    data = json.loads((folder / "manifest.json").read_text())
    (changed,) = folder.glob(part)
    change(changed)
    (folder / "manifest.json").unlink()
    with bundle.open("wb") as file, new_bundle(file) as writer:
        for path in folder.glob("*/*"):
            writer.add(path.relative_to(folder).as_posix(), path)
        writer.finish(BundleManifest(**{**data, "files": writer.files}))


def edited(archive: Path) -> None:
    folder = archive.parent.parent.parent / "files"
    unpack(archive, folder)
    (folder / "LICENSE").write_text("MIT, changed\n")
    with tarfile.open(archive, "w:gz") as file:
        file.add(folder, "")


def hostile(archive: Path) -> None:
    """Let the commit's files lead out of where they are unpacked."""
    with tarfile.open(archive, "w:gz") as file:
        file.addfile(tarfile.TarInfo("../../outside"))


def another(archive: Path) -> None:
    archive.write_bytes(zipped({"re2-1.2/LICENSE": "another licence"}))


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        (("commits/*", edited), "tree-mismatch"),
        (("commits/*", hostile), "unsafe-archive"),
        (("archives/*-re2-*", another), "digest-mismatch"),
    ],
)
def test_a_bundle_is_not_trusted(
    upstream: Upstream,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changed: tuple[str, Callable[[Path], None]],
    code: str,
) -> None:
    """Also with a manifest that agrees, only what is pinned is used; nothing is left of the rest."""
    bundle, _ = made(tmp_path)
    rewritten(bundle, *changed)
    cache = carry(upstream, bundle, monkeypatch)
    assert refused(Diagnostic, fetch_sources, runtime_pins(VERSION), "upstream").code == code
    assert not [path for path in (cache / "sources").iterdir() if path.is_dir()]
    assert not list(cache.rglob("outside"))


def test_a_bundle_without_this_commit(upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what it lacks, and asks no server for it."""
    bundle, _ = made(tmp_path)
    pins = runtime_pins(VERSION)
    assert pins.commit is not None
    rewritten(bundle, "commits/*", lambda path: path.rename(path.with_name("other.tar.gz")))
    carry(upstream, bundle, monkeypatch)
    with pytest.raises(SourcesError, match=f"does not hold onnxruntime's commit {pins.commit.commit[:10]}") as caught:
        fetch_sources(pins, "upstream")
    assert caught.value.code == "bundle-lacks"


def test_a_bundle_that_cannot_be_made_leaves_nothing(upstream: Upstream, tmp_path: Path) -> None:
    """And an older one of the same name stays as it was."""
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "b.zip").write_text("older")
    upstream.archive_of("date").unlink()
    refused(Diagnostic, made, tmp_path)
    assert [(path.name, path.read_text()) for path in (tmp_path / "made").iterdir()] == [("b.zip", "older")]


def test_a_version_that_is_pinned_by_its_commit_alone(upstream: Upstream, tmp_path: Path) -> None:
    """Its files could be built from here, where git proves them, and not checked there."""
    (pin,) = upstream.pins.glob(f"*{VERSION}-upstream.toml")
    pin.write_text(f'commit = "{upstream.commit}"\n')
    assert refused(SourcesError, made, tmp_path).code == "tree-not-pinned"
    assert not list((tmp_path / "made").glob("*"))


@pytest.mark.parametrize(
    ("version", "target", "output", "code"),
    [
        ("9.9.9", "linux-x64", "b.zip", "unknown-version"),
        (VERSION, "linux-x65", "b.zip", "no-such-target"),
        (VERSION, "linux-x64", "", "bad-option"),
    ],
)
@pytest.mark.usefixtures("upstream")
def test_what_cannot_be_asked_for(tmp_path: Path, version: str, target: str, output: str, code: str) -> None:
    """It is refused before anything is fetched."""
    error = refused(Diagnostic, make_bundle, None, version, target, tmp_path / output, Console(json_mode=True))
    assert error.code == code
    assert not (tmp_path / "cache" / "sources").exists()
