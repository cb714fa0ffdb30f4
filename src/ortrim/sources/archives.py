"""The archives of components: fetched from wherever their pins say, or made by git, kept by digest, and checked."""

import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import urlsplit

from ortrim.base.build_bundle import BuildBundle, site_bundle
from ortrim.base.cache import cache_folder, discard, locked
from ortrim.base.console import counted
from ortrim.base.files import require_space, storage_errors
from ortrim.base.http import digest_of, fetch, mirrored, site_mirrors
from ortrim.base.scripts import download_wheels
from ortrim.errors import NetworkError, SourcesError, ToolError
from ortrim.pins.runtime import COMPONENTS, OPTIONAL, ComponentPin, licence_ids, replacements, upstream_names
from ortrim.sources.commits import git
from ortrim.sources.debian import fetch_debian

ARCHIVES_BYTES: Final = 96_000_000  # what the archives of 1.21.0 take together
APT_BYTES: Final = 57_000_000  # what apt takes for its lists of Debian 12 while it unpacks them


def fetch_archives(
    components: Sequence[ComponentPin], suite: str | None, announce: Callable[[str], None]
) -> dict[str, Path]:
    """Return the archive of each component, from the cache, from a bundle if there is one, or fetched."""
    missing = [component for component in components if not _is_kept(component)]
    bundle = site_bundle() if missing else None
    debian = [component for component in missing if bundle is None and component.origin.startswith("debian")]
    size = ARCHIVES_BYTES * len(missing) // max(len(components), 1) + (APT_BYTES if debian else 0)
    require_space(cache_folder("downloads"), size, "fetching the sources")
    others = [component for component in missing if component not in debian]
    if bundle is not None:
        announce(f"take {counted(len(missing), 'archive')} from {bundle.path.name}")
    for number, component in enumerate(others, 1):
        if bundle is None:
            announce(f"fetch {component.file} ({number} of {len(others)})")
            _fetch(component)
        else:
            _take(component, bundle)
    if debian:
        announce(f"fetch {counted(len(debian), 'archive')} through apt")
        fetch_debian(debian, suite or "", keep)
    return {component.name: kept_path(component) for component in components}


def kept_path(component: ComponentPin) -> Path:
    """Return where the cache keeps a component's archive."""
    return cache_folder("downloads") / f"{component.digest[1][:16]}-{component.file}"


def bundled_archive(component: ComponentPin) -> str:
    """Return the name of a component's archive in a bundle."""
    return f"archives/{kept_path(component).name}"


def _take(component: ComponentPin, bundle: BuildBundle) -> None:
    with tempfile.TemporaryDirectory(dir=cache_folder("downloads"), prefix=".bundle-") as name:
        file = Path(name) / component.file
        bundle.take(bundled_archive(component), file, component.file)
        keep(component, file)


def keep(component: ComponentPin, file: Path) -> None:
    """Move a file that came into the cache if it is what was pinned; otherwise remove it and raise."""
    algorithm, expected = component.digest
    with storage_errors(file):
        actual = digest_of(file, algorithm)
        if actual == expected:
            with locked(kept_path(component)):
                file.replace(kept_path(component))
            return
        file.unlink()
    why = f"expected {expected}\nactual   {actual}"
    hint = "it was changed at its source, or the pin is wrong; do not use it before you know which one"
    what = f"{component.file} is not what was pinned"
    raise SourcesError("digest-mismatch", what, where=component.location, why=why, hint=hint)


def _is_kept(component: ComponentPin) -> bool:
    path = kept_path(component)
    with storage_errors(path):
        if _is_damaged(path, component):
            with locked(path):  # Another process may have fetched it anew meanwhile.
                if _is_damaged(path, component):
                    discard(path, "it is not what was pinned")
        return path.is_file()


def _is_damaged(path: Path, component: ComponentPin) -> bool:
    """Whether a file is there and not what was pinned."""
    algorithm, expected = component.digest
    try:
        return path.is_file() and digest_of(path, algorithm) != expected
    except FileNotFoundError:
        return False


def _fetch(component: ComponentPin) -> None:
    if component.origin == "wheel":
        with tempfile.TemporaryDirectory(dir=cache_folder("downloads"), prefix=".wheel-") as name:
            requirements = f"{component.location} --hash=sha256:{component.sha256}\n"
            download_wheels(component.location, requirements, Path(name))
            keep(component, Path(name) / component.file)
        return
    address = mirrored(component.location, site_mirrors())
    try:
        fetch(address, kept_path(component), *component.digest)
    except NetworkError as refused:
        hosted = HOSTED.fullmatch(component.location)
        if hosted is None:
            raise
        try:
            _make_with_git(component, hosted)
        except (SourcesError, ToolError) as failed:
            what = f"{component.file} could not be fetched in any way"
            why = f"from its address: {refused}\nmade with git: {failed}"
            mirror = "ORTRIM_MIRRORS='https://github.com/=https://mirror.example/github/'"
            hint = f"behind a firewall, name a mirror: {mirror}"
            raise SourcesError("archive-unavailable", what, where=address, why=why, hint=hint) from refused


HOSTED: Final = re.compile(
    r"(?P<repository>https://(?P<host>github\.com|gitlab\.com|gitlab\.arm\.com)/[\w.-]+(?:/[\w.-]+)*?/(?P<name>[\w.-]+))"
    r"/(?:-/)?archive/(?P<tags>refs/tags/)?(?P<ref>[\w.+-]+?)(?:/[\w.+-]+?)?\.(?P<ending>zip|tar\.gz)"
)
"""The address of an archive that a host of repositories makes of a tag or a commit."""
COMMIT: Final = re.compile(r"[0-9a-f]{40}")
ZONES: Final = {"github.com": "PST8PDT,M3.2.0,M11.1.0"}
"""The zone in which a host writes the times of a zip's files, as POSIX spells it; UTC for others."""


def _make_with_git(component: ComponentPin, found: re.Match[str]) -> None:
    """Make the archive from the repository that its address names."""
    ref = found["ref"] if COMMIT.fullmatch(found["ref"]) else f"refs/tags/{found['ref']}"
    number = re.sub(r"^v(?=\d)", "", found["ref"]) if found["host"] == "github.com" else found["ref"]
    prefix, ending = f"--prefix={found['name']}-{number}/", found["ending"]
    with tempfile.TemporaryDirectory(dir=cache_folder("downloads"), prefix=".git-") as name:
        folder = Path(name)
        git(folder, "init", "--quiet", "--bare")
        repository = mirrored(f"{found['repository']}.git", site_mirrors())
        git(folder, "fetch", "--progress", "--depth", "1", "--no-tags", "--", repository, ref)
        written, zone = f"--output={folder / component.file}", ZONES.get(found["host"], "UTC")
        gzip = ("-c", "tar.tar.gz.command=gzip -cn")
        git(folder, *gzip, "archive", f"--format={ending}", prefix, written, "FETCH_HEAD", TZ=zone)
        keep(component, folder / component.file)


DEPENDENCIES: Final = "cmake/deps.txt"


@dataclass(frozen=True, kw_only=True)
class Dependency:
    """One line of upstream's `cmake/deps.txt`."""

    name: str
    url: str
    sha1: str


def parse_dependencies(text: str) -> tuple[Dependency, ...]:
    """Read `cmake/deps.txt`: lines `name;url;sha1`, comments from `#`."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return tuple(_dependency(line) for line in lines)


def _dependency(line: str) -> Dependency:
    found = re.fullmatch(r"([^;]*);([^;]*);([0-9A-Fa-f]{40})", line)
    if found is None:
        raise SourcesError("bad-dependency-list", f"cannot read {line[:100]!r}", where=DEPENDENCIES)
    return Dependency(name=found[1], url=found[2], sha1=found[3].lower())


def version_in(url: str) -> str:
    """Return what an archive's address says of its version: a tag or a commit."""
    if hosted := HOSTED.fullmatch(url):
        return hosted["ref"].removeprefix("v")
    return PurePosixPath(urlsplit(url).path).name.removesuffix(".zip").removesuffix(".tar.gz").removeprefix("v")


def read_dependencies(tree: Path) -> tuple[Dependency, ...]:
    """Return what the list in a tree of ONNX Runtime's names."""
    file = tree / DEPENDENCIES
    if not file.is_file():
        raise SourcesError("bad-dependency-list", "is missing", where=str(file))
    with storage_errors(file):
        return parse_dependencies(file.read_text(encoding="utf-8", errors="replace"))


def declared_components(
    dependencies: Iterable[Dependency], known: Mapping[str, str], optional: frozenset[str]
) -> tuple[ComponentPin, ...]:
    """Return upstream's dependencies that a library is made of, by ortrim's own names, and `optional` ones.

    `known` has SHA-256 by SHA-1. What is gone from its address is taken from where the same can be had.
    """
    listed = {each.name: each for each in dependencies}
    needed = [upstream for upstream, name in upstream_names().items() if name in COMPONENTS and upstream not in listed]
    if needed:
        raise SourcesError("bad-dependency-list", f"does not list {', '.join(needed)}", where=DEPENDENCIES)
    wanted = {upstream: name for upstream, name in upstream_names().items() if name not in OPTIONAL or name in optional}
    return tuple(_component(name, listed[upstream], known) for upstream, name in wanted.items() if upstream in listed)


def _component(name: str, listed: Dependency, known: Mapping[str, str]) -> ComponentPin:
    instead = replacements().get(listed.sha1)
    url, sha1 = (instead["url"], instead["sha1"]) if instead else (listed.url, listed.sha1)
    return ComponentPin(
        name=name,
        version=version_in(url),
        licence=licence_ids()[name],
        origin="url",
        location=url,
        file=f"{name}-{PurePosixPath(urlsplit(url).path).name}",
        sha1=sha1,
        sha256=known.get(sha1, ""),
        strip=1,
    )
