"""Packages of another architecture, from the host's own Debian mirrors: whatever version apt's signed index has now."""

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from ortrim.errors import SourcesError
from ortrim.sources.apt_session import complaints, not_delivered, prepare_apt, run_apt
from ortrim.sources.apt_sources import Mirror, host_mirrors
from ortrim.storage.cache import cache_folder
from ortrim.storage.files import sha256_of, storage_errors
from ortrim.storage.folders import locked

URI_LINE: Final = re.compile(r"^'[^']+' (?P<file>[A-Za-z0-9.+~_%:-]+\.deb) \d+ SHA256:(?P<sha256>[0-9a-f]{64})$")


@dataclass(frozen=True, kw_only=True)
class DebianPackage:
    """A package as apt's signed index describes it."""

    name: str
    version: str
    architecture: str
    suite: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class PackageRequest:
    """Packages by name, of one architecture of one suite.

    `depended` maps the name of a package that is empty but for what it depends on to a pattern: the first of its
    dependencies that fits is fetched in its place.
    """

    names: tuple[str, ...]
    suite: str
    architecture: str
    depended: Mapping[str, str] = field(default_factory=dict)


def fetch_packages(request: PackageRequest, accept: Callable[[DebianPackage, Path], None]) -> None:
    """Fetch packages and hand each over to `accept`, which keeps what it needs; the file is removed afterwards.

    A file is handed over only if its SHA-256 is that of the index, whose signature apt has checked. Raises
    `SourcesError` (`apt-missing`, `apt-no-sources`, `apt-failed`, `digest-mismatch`).
    """
    mirrors = host_mirrors(request.suite)
    if not mirrors:
        what, hint = "apt has no Debian mirror configured here", "add one to /etc/apt/sources.list.d"
        raise SourcesError("apt-no-sources", what, where="/etc/apt", hint=hint)
    folder = cache_folder("apt") / f"{request.suite}-{request.architecture}"
    with locked(folder):
        try:
            for package, file in _from_any(mirrors, request, folder):
                accept(package, file)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _from_any(mirrors: Sequence[Mirror], request: PackageRequest, folder: Path) -> list[tuple[DebianPackage, Path]]:
    reasons: list[str] = []
    for mirror in mirrors:
        options = prepare_apt(folder, mirror, request.suite, request.architecture)
        reasons.append(complaints(run_apt(folder, "apt-get", options, "update")))
        names = [_actual(name, request, folder, options) for name in request.names]
        listed = run_apt(folder, "apt-get", options, "download", "--print-uris", *names)
        done = run_apt(folder, "apt-get", options, "download", *names)
        reasons += [complaints(listed), complaints(done)]
        packages = packages_in(listed.stdout, request.suite)
        came = all((folder / file).is_file() for _, file in packages)
        if came and [package.name for package, _ in packages] == sorted(names):
            return [(package, _checked(package, folder / file)) for package, file in packages]
    raise not_delivered(", ".join(request.names), request.suite, reasons)


def _actual(name: str, request: PackageRequest, folder: Path, options: tuple[str, ...]) -> str:
    """Return the name to fetch; when no dependency fits, it is the name as given."""
    if name not in request.depended:
        return name
    text = run_apt(folder, "apt-cache", options, "show", "--no-all-versions", name).stdout
    found = re.search(rf"^Depends:.*?\b({request.depended[name]})", text, re.MULTILINE)
    return found[1] if found else name


def packages_in(listing: str, suite: str) -> list[tuple[DebianPackage, str]]:
    """Return the packages that `apt-get download --print-uris` lists, sorted, each with its file's name."""
    packages = []
    for line in listing.splitlines():
        found = URI_LINE.match(line.strip())
        parts = found["file"].removesuffix(".deb").split("_") if found else []
        if found and len(parts) == 3:
            name, version, architecture = map(unquote, parts)
            package = DebianPackage(
                name=name, version=version, architecture=architecture, suite=suite, sha256=found["sha256"]
            )
            packages.append((package, found["file"]))
    return sorted(packages, key=lambda pair: pair[0].name)


def _checked(package: DebianPackage, file: Path) -> Path:
    with storage_errors(file):
        actual = sha256_of(file)
    if actual != package.sha256:
        why = f"expected {package.sha256}\nactual   {actual}"
        raise SourcesError("digest-mismatch", f"{file.name} is not what the index says", where=file.name, why=why)
    return file
