"""Filling in pins where the network reaches upstream: `invoke pins.update`."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import urlsplit

from ortrim.errors import SourcesError
from ortrim.pins.pin_files import read_git_pin, read_source_set
from ortrim.pins.runtime import known_version, licence_ids, pin_file_name, upstream_names
from ortrim.pins.shipped import writable_pins_folder
from ortrim.pins.source_sets import GitPin
from ortrim.sources.git import tagged_commit
from ortrim.sources.mirrored import Mirrors, mirrored
from ortrim.sources.update_versions import ndk_of
from ortrim.sources.upstream_list import DEPENDENCIES, parse_dependencies, read_dependency_list, version_in
from ortrim.storage.downloads import fetch
from ortrim.storage.files import sha256_of, write_atomically

REPOSITORY: Final = "https://github.com/microsoft/onnxruntime"
ARCHIVE: Final = "onnxruntime.zip"


@dataclass(frozen=True, kw_only=True)
class PinnedSources:
    """The pin files of a version's sources, and the NDK that upstream builds it with, None when not known."""

    files: tuple[Path, ...]
    ndk: str | None


@dataclass(frozen=True, kw_only=True)
class _Fetched:
    name: str
    version: str
    url: str
    file: str
    sha256: str


def update_pins(
    version: str,
    *,
    mirrors: Mirrors = (),
    destination: Path | None = None,
    announce: Callable[[str], None] = lambda _: None,
) -> tuple[Path, ...]:
    """Pin the sources of a version that ortrim knows, and return the files written.

    Raises `SpecError` for one that is unknown or broken, and as `pin_sources` does.
    """
    known_version(version)
    return pin_sources(version, mirrors=mirrors, destination=destination, announce=announce).files


def pin_sources(
    version: str,
    *,
    mirrors: Mirrors = (),
    destination: Path | None = None,
    announce: Callable[[str], None] = lambda _: None,
) -> PinnedSources:
    """Pin the sources of any version: the commit of its tag, and the SHA-256 of every archive it needs.

    Each dependency's archive must have the SHA-1 that upstream's own `cmake/deps.txt` gives, and ONNX Runtime's
    archive must say that it was made of the tag's commit. `mirrors` are pairs (prefix of an address, what to
    fetch from instead); the pins keep upstream's addresses. Nothing is written before all of it was checked.
    The files lie in `destination` or else where ortrim reads them. Raises `SourcesError` (`commit-mismatch`,
    `bad-dependency-list`, `git-failed`, `no-such-tag`) or `NetworkError` (`digest-mismatch` for a wrong SHA-1, ...).
    """
    git = GitPin(url=f"{REPOSITORY}.git", tag=f"v{version}", commit="")
    announce(f"ask for the commit of {git.tag}")
    commit = tagged_commit(mirrored(git.url, mirrors), git.tag)
    with tempfile.TemporaryDirectory(prefix="ortrim-pins-") as name:
        fetched = _fetch_all(version, commit, mirrors, Path(name), announce)
        ndk = ndk_of(Path(name) / ARCHIVE)
    texts = {"archive": _archive_text(version, fetched), "git": _git_text(version, git, commit)}
    return PinnedSources(files=_write(version, texts, destination or writable_pins_folder()), ndk=ndk)


def _fetch_all(
    version: str, commit: str, mirrors: Mirrors, folder: Path, announce: Callable[[str], None]
) -> list[_Fetched]:
    url = f"{REPOSITORY}/archive/refs/tags/v{version}.zip"
    announce(f"fetch {url}")
    fetch(mirrored(url, mirrors), folder / ARCHIVE, "sha256", None)
    dependencies = {each.name: each for each in parse_dependencies(read_dependency_list(folder / ARCHIVE, commit))}
    result = [_fetched("onnxruntime", version, url, folder / ARCHIVE)]
    for upstream, name in upstream_names().items():
        dependency = dependencies.get(upstream)
        if dependency is None:
            raise SourcesError("bad-dependency-list", f"does not list {upstream}", where=f"{DEPENDENCIES} of {version}")
        announce(f"fetch {dependency.url}")
        archive = folder / f"{name}.archive"
        fetch(mirrored(dependency.url, mirrors), archive, "sha1", dependency.sha1)
        result.append(_fetched(name, version_in(dependency.url), dependency.url, archive))
    return result


def _fetched(name: str, version: str, url: str, archive: Path) -> _Fetched:
    file = f"{name}-{PurePosixPath(urlsplit(url).path).name}"
    return _Fetched(name=name, version=version, url=url, file=file, sha256=sha256_of(archive))


def _archive_text(version: str, fetched: Sequence[_Fetched]) -> str:
    lines = [
        f"# ONNX Runtime {version} and the dependencies of its cmake/deps.txt, each checked against the SHA-1 there."
    ]
    lines.append("# Made by: invoke pins.update")
    for each in fetched:
        lines += [
            "",
            f"[components.{each.name}]",
            f'version = "{each.version}"',
            f'url = "{each.url}"',
            f'file = "{each.file}"',
            f'sha256 = "{each.sha256}"',
            "strip = 1",
        ]
    return "\n".join(lines) + "\n"


def _git_text(version: str, git: GitPin, commit: str) -> str:
    lines = [f"# The commit of ONNX Runtime {version}.", "# Made by: invoke pins.update", ""]
    lines += [f'url = "{git.url}"', f'tag = "{git.tag}"', f'commit = "{commit}"']
    return "\n".join(lines) + "\n"


def _write(version: str, texts: dict[str, str], folder: Path) -> tuple[Path, ...]:
    """Write the pin files once they read back."""
    names = {kind: pin_file_name(version, kind) for kind in texts}
    read_source_set(texts["archive"], "archive", names["archive"], licence_ids())
    read_git_pin(texts["git"], names["git"])
    for kind, text in texts.items():
        write_atomically(folder / names[kind], text)
    return tuple(folder / name for name in names.values())
