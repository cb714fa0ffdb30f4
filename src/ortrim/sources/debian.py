"""Debian's tarballs and packages through apt in folders of our own, so without root, by the host's own mirrors."""

import os
import platform
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from pydantic import ValidationError

from ortrim.base.cache import cache_folder, locked
from ortrim.base.command import Completed, run
from ortrim.base.files import disk_full, says_full, sha256_of, storage_errors, write_atomically
from ortrim.base.json import from_json, to_json
from ortrim.binaries.static_archives import AR_MAGIC, members_of
from ortrim.errors import BinaryError, SourcesError, ToolError
from ortrim.pins.runtime import ComponentPin

ONE_LINE: Final = re.compile(r"^\s*deb(?:-src)?\s+(?:\[(?P<options>[^\]]*)\]\s*)?(?P<uri>\S+)\s+(?P<rest>\S.*)$")
ALIASES: Final = frozenset({"stable", "oldstable", "testing", "unstable", "sid"})
DEBIAN_KEYRING: Final = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


@dataclass(frozen=True, kw_only=True)
class Mirror:
    """Where the host gets a distribution from, and what vouches for it there (as in apt's own fields)."""

    uri: str
    signed_by: str = ""
    trusted: str = ""


_Entry = tuple[list[str], list[str], list[Mirror]]  # suites, components, and where they are had


def host_mirrors(suite: str, etc: Path = Path("/etc/apt"), release: Path = Path("/etc/os-release")) -> list[Mirror]:
    """Return the mirrors from which the host takes Debian, in its order, or the default on another system."""
    names = [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*"))]
    files = [(path.suffix, path.read_text(encoding="utf-8", errors="replace")) for path in names if path.is_file()]
    facts = _release(release)
    is_debian = facts.get("ID", "debian") == "debian"
    own = ALIASES | {facts.get("VERSION_CODENAME", "")} if is_debian else frozenset[str]()
    texts = [(suffix == ".sources", text) for suffix, text in files if suffix in {".sources", ".list"}]
    return mirrors_in(texts, own | {suite})


def no_mirror(suite: str, needed_for: str, release: Path = Path("/etc/os-release")) -> SourcesError:
    """Return the diagnostic for a host on which nothing can be had from Debian, with what to do there."""
    system = _release(release).get("PRETTY_NAME", "this system") if release.is_file() else f"{platform.system()}"
    if shutil.which("apt-get") is None:
        return SourcesError("apt-missing", "there is no apt here", where=system, hint=needed_for)
    what = f"apt has no mirror of Debian here, whose suite {suite} is needed"
    own = f"; or add a mirror of Debian's {suite} to /etc/apt/sources.list.d"
    return SourcesError("apt-no-sources", what, where=system, hint=needed_for + own)


def mirrors_in(texts: list[tuple[bool, str]], suites: frozenset[str]) -> list[Mirror]:
    """Return the mirrors of `suites` with a component `main`; `texts` are in the deb822 format if True."""
    entries = [entry for deb822, text in texts for entry in (_deb822(text) if deb822 else _one_line(text))]
    mirrors = [
        mirror
        for own, components, found in entries
        if "main" in components and suites.intersection(own)
        for mirror in found
    ]
    return list({mirror.uri.rstrip("/"): mirror for mirror in reversed(mirrors)}.values())[::-1]


def source_stanza(mirror: Mirror, suite: str, types: str = "deb-src deb") -> str:
    """Return a deb822 file for `suite` of a mirror: sources and packages, or those `types` alone."""
    signed_by = mirror.signed_by or (str(DEBIAN_KEYRING) if DEBIAN_KEYRING.is_file() else "")
    fields = {
        "Types": types,
        "URIs": mirror.uri,
        "Suites": suite,
        "Components": "main",
        "Signed-By": signed_by,
        "Trusted": mirror.trusted,
    }
    return "".join(f"{name}: {value}\n" for name, value in fields.items() if value)


def _deb822(text: str) -> Iterator[_Entry]:
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for stanza in re.split(r"\n\s*\n", lines):
        fields = {
            name.lower(): value.strip()
            for name, value in re.findall(r"^([A-Za-z-]+):((?:.*)(?:\n[ \t].*)*)", stanza, re.MULTILINE)
        }
        if fields.get("enabled", "yes").lower() not in {"no", "false", "0", "off"}:
            signed_by, trusted = fields.get("signed-by", ""), fields.get("trusted", "")
            suites, components, uris = (fields.get(name, "").split() for name in ("suites", "components", "uris"))
            yield suites, components, [Mirror(uri=uri, signed_by=signed_by, trusted=trusted) for uri in uris]


def _one_line(text: str) -> Iterator[_Entry]:
    for line in text.splitlines():
        if (found := ONE_LINE.match(line)) is None:
            continue
        options = dict(word.split("=", 1) for word in (found["options"] or "").split() if "=" in word)
        suite, *components = found["rest"].split("#")[0].split() or [""]
        signed_by, trusted = options.get("signed-by", "").replace(",", " "), options.get("trusted", "")
        yield [suite], components, [Mirror(uri=found["uri"], signed_by=signed_by, trusted=trusted)]


def _release(file: Path) -> dict[str, str]:
    """Return what os-release says of the host, nothing where there is none."""
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    return dict(re.findall(r'^([A-Z_]+)="?([^"\n]*)"?$', text, re.MULTILINE))


INSTEAD: Final = "let this machine reach upstream, or name a mirror of it: ORTRIM_MIRRORS='FROM=TO'"
"""What to do where a distribution's sources, the last resort, cannot be had."""
OTHER_DEVICES: Final = "choose devices other than qemu, whose parts are Debian's"


TIMEOUT_SECONDS: Final = 1800
SILENT_SECONDS: Final = 1200
"""apt says a line for each file that it begins: the largest, of 38 MB, comes in this time at 32 kB/s."""


def prepare_apt(folder: Path, mirror: Mirror, suite: str, architecture: str = "") -> tuple[str, ...]:
    """Make apt's folders afresh, for sources or an architecture's packages; return the options for them."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    stanza = source_stanza(mirror, suite, types="deb" if architecture else "deb-src deb")
    write_atomically(folder / "parts" / "ortrim.sources", stanza)
    foreign = (f"APT::Architecture={architecture}", f"APT::Architectures={architecture}", "Acquire::Languages=none")
    settings = (
        "Dir::Etc::SourceList=/dev/null",
        f"Dir::Etc::SourceParts={folder / 'parts'}",
        f"Dir::State::Lists={folder / 'lists'}",
        "Dir::State::Status=/dev/null",
        f"Dir::Cache={folder / 'cache'}",
        "Acquire::Retries=3",
        # As root, apt would fetch as another user, who cannot write to this user's cache.
        "APT::Sandbox::User=root",
        *(foreign if architecture else ()),
    )
    return tuple(word for setting in settings for word in ("-o", setting))


def run_apt(folder: Path, program: str, options: tuple[str, ...], *arguments: str) -> Completed:
    """Run `apt-get` or `apt-cache` in `folder`."""
    environment = {**os.environ, "LC_ALL": "C"}
    words = (program, "--quiet=1", *options, *arguments)
    try:
        done = run(
            words, cwd=folder, environment=environment, timeout_seconds=TIMEOUT_SECONDS, silent_seconds=SILENT_SECONDS
        )
    except ToolError as error:
        if error.code != "tool-missing":
            raise
        hint = f"for sources, {INSTEAD}; for programs of another architecture, {OTHER_DEVICES}"
        raise SourcesError("apt-missing", "there is no apt here", where=program, why=error.why, hint=hint) from error
    if done.returncode != 0 and says_full(folder, done.stdout + done.stderr):
        raise disk_full(f"{program} ran out of disk space", folder, why=complaints(done))
    return done


def complaints(done: Completed) -> str:
    """Return what apt complains of, if its exit code says that it has anything to complain of."""
    lines = [line for line in done.stderr.splitlines() if line.startswith(("E:", "W:", "Err:"))]
    return "\n".join(lines[:6]) if done.returncode != 0 else ""


def not_delivered(names: str, suite: str, reasons: list[str]) -> SourcesError:
    """Return the diagnostic of files that no mirror delivered, with each of apt's complaints once."""
    what = f"apt did not deliver {names}"
    hint = f"check that the mirror has the suite {suite} and can be reached: apt-get update"
    why = "\n".join(dict.fromkeys(line for reason in reasons for line in reason.splitlines()))
    return SourcesError("apt-failed", what, where=suite, why=why[:2000], hint=hint)


APT_WORDS: Final = {"debian-source": ("source", "--download-only", "--tar-only"), "debian-binary": ("download",)}


def fetch_debian(components: Sequence[ComponentPin], suite: str, accept: Callable[[ComponentPin, Path], None]) -> None:
    """Fetch `components` from `suite` and hand each file over to `accept`, which checks and keeps it.

    apt's exit codes are not believed: what counts is that the file is there.
    """
    missing, reasons = list(components), []
    with _apt_folder(suite, suite, INSTEAD) as (mirrors, folder):
        for mirror in mirrors:
            options = prepare_apt(folder, mirror, suite)
            reasons.append(complaints(run_apt(folder, "apt-get", options, "update")))
            # All at once, since each call reads all lists; where one is not known, none comes.
            for origin, words in APT_WORDS.items():
                if names := [component.location for component in missing if component.origin == origin]:
                    run_apt(folder, "apt-get", options, *words, *names)
            for component in tuple(missing):
                if not (folder / component.file).is_file():
                    done = run_apt(folder, "apt-get", options, *APT_WORDS[component.origin], component.location)
                    reasons.append(complaints(done))
                if (folder / component.file).is_file():
                    accept(component, folder / component.file)
                    missing.remove(component)
            if not missing:
                return
    raise not_delivered(", ".join(component.file for component in missing), suite, reasons)


@contextmanager
def _apt_folder(suite: str, name: str, needed_for: str) -> Iterator[tuple[Sequence[Mirror], Path]]:
    """Yield the host's mirrors of a suite, and a folder for apt that is gone afterwards."""
    mirrors = host_mirrors(suite)
    if not mirrors:
        raise no_mirror(suite, needed_for)
    folder = cache_folder("apt") / name
    with locked(folder):
        try:
            yield mirrors, folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


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

    `depended` maps an empty package to a pattern of the dependency to fetch in its place.
    """

    names: tuple[str, ...]
    suite: str
    architecture: str
    depended: Mapping[str, str] = field(default_factory=dict)


def fetch_packages(request: PackageRequest, accept: Callable[[DebianPackage, Path], None]) -> None:
    """Fetch packages by the signed index's SHA-256 and hand each over to `accept`; it is removed afterwards."""
    name = f"{request.suite}-{request.architecture}"
    with _apt_folder(request.suite, name, OTHER_DEVICES) as (mirrors, folder):
        for package, file in _from_any(mirrors, request, folder):
            accept(package, file)


TORN: Final = re.compile(r"unexpected size|Hash Sum mismatch")
"""What apt says of a mirror whose list is not the one that its release names: one that is being changed, or a cache of
one that has files of two days."""
YEARLY_NAMES: Final = ("stable", "oldstable", "testing")
"""The names by which Debian has a suite beside its own, from year to year another: there the files can fit."""


def _from_any(mirrors: Sequence[Mirror], request: PackageRequest, folder: Path) -> list[tuple[DebianPackage, Path]]:
    reasons: list[str] = []
    for mirror in mirrors:
        options, complaint = _updated(mirror, request, folder)
        reasons.append(complaint)
        names = [_actual(name, request, folder, options) for name in request.names]
        listed = run_apt(folder, "apt-get", options, "download", "--print-uris", *names)
        done = run_apt(folder, "apt-get", options, "download", *names)
        reasons += [complaints(listed), complaints(done)]
        packages = packages_in(listed.stdout, request.suite)
        came = all((folder / file).is_file() for _, file in packages)
        if came and [package.name for package, _ in packages] == sorted(names):
            return [(package, _checked(package, folder / file)) for package, file in packages]
    raise not_delivered(", ".join(request.names), request.suite, reasons)


def _updated(mirror: Mirror, request: PackageRequest, folder: Path) -> tuple[tuple[str, ...], str]:
    """Have apt fetch a mirror's lists of a suite; return the options that lead it to them, and what it complains of."""
    options = prepare_apt(folder, mirror, request.suite, request.architecture)
    complaint = complaints(run_apt(folder, "apt-get", options, "update"))
    if not TORN.search(complaint):
        return options, complaint
    for alias in YEARLY_NAMES:
        options = prepare_apt(folder, mirror, alias, request.architecture)
        done = run_apt(folder, "apt-get", options, "update")
        if done.returncode == 0 and _is_of(folder / "lists", request.suite):
            return options, ""
    return prepare_apt(folder, mirror, request.suite, request.architecture), complaint


def _is_of(lists: Path, suite: str) -> bool:
    """Whether the signed release that apt fetched is that of a suite, whatever name it was asked for by."""
    with storage_errors(lists):
        texts = [file.read_text(encoding="utf-8", errors="replace") for file in lists.glob("*Release")]
    return any(f"\nCodename: {suite}\n" in text for text in texts)


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


def is_debian_package(archive: Path) -> bool:
    """Whether a file is an `ar` archive."""
    with storage_errors(archive), archive.open("rb") as file:
        return file.read(len(AR_MAGIC)) == AR_MAGIC


def write_data_archive(package: Path, destination: Path) -> None:
    """Copy the member `data.tar.*` out of a package, which is an `ar` archive (deb(5))."""
    with storage_errors(package):
        content, why = package.read_bytes(), ""
    try:
        for name, data in members_of(content, str(package)):
            if name.startswith("data.tar"):
                with storage_errors(destination):
                    destination.write_bytes(data)
                return
    except BinaryError as error:
        why = error.why
    raise SourcesError("bad-debian-package", "holds no data.tar", where=str(package), why=why)


PACKAGES_FILE: Final = "packages.json"


def write_packages(folder: Path, packages: Sequence[DebianPackage]) -> None:
    """Write down what a folder was made of."""
    write_atomically(folder / PACKAGES_FILE, to_json({"packages": packages}))


def read_packages(folder: Path, *, code: str, what: str) -> tuple[DebianPackage, ...]:
    """Return what a folder was made of."""
    try:
        return from_json(dict[str, tuple[DebianPackage, ...]], (folder / PACKAGES_FILE).read_bytes())["packages"]
    except (OSError, ValidationError, KeyError) as error:
        why, hint = str(error)[:300], f"remove it: rm -r {folder}"
        raise SourcesError(code, f"{what} is damaged", where=str(folder), why=why, hint=hint) from error
