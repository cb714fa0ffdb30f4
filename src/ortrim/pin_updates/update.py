"""Filling in pins where the network reaches upstream (`invoke pins.update`), of wheels for every Python and machine."""

import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from xml.etree.ElementTree import ParseError

from ortrim.base.command import run
from ortrim.base.files import sha256_of, write_atomically
from ortrim.base.http import Mirrors, fetch, mirrored
from ortrim.base.scripts import install_error, pip_environment
from ortrim.base.tools import is_untrusted
from ortrim.compiling.container_engines import UsableEngine
from ortrim.compiling.containers import pulled_digest
from ortrim.errors import Diagnostic, DiagnosticGroup, Interrupted, NetworkError, SourcesError, StorageError
from ortrim.models.full_runtime import DISTRIBUTION, WHEEL_PLATFORMS
from ortrim.package.aar_contents import xml_root
from ortrim.pins import runtime, shipped
from ortrim.platforms.android.ndk import REPOSITORY as ANDROID_SDK_REPOSITORY
from ortrim.sources.archives import DEPENDENCIES, declared_components, parse_dependencies
from ortrim.sources.commits import fetch_objects, git, left_out_of, tagged_commit

SECONDS: Final = 600
ABSENT: Final = ("No matching distribution", "not a supported wheel")
"""What pip says of a version that the index does not have, or has not for the Python and machine in question."""
SHA256: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """One wheel that pip would take."""

    name: str
    version: str
    sha256: str


def resolved(
    requirements: Sequence[str], python: str, platforms: Sequence[str], *, dependencies: bool = True
) -> tuple[Resolved, ...] | None:
    """Return the wheels that pip would take for `python` (`3.12`) on `platforms`; None when a requirement has none."""
    with tempfile.TemporaryDirectory(prefix="ortrim-resolving-") as folder:
        report = Path(folder) / "report.json"
        where = ("--python-version", python, *(word for each in platforms for word in ("--platform", each)))
        options = ("--target", Path(folder) / "none", "--report", report, *(() if dependencies else ("--no-deps",)))
        done = run((*_COMMAND, *where, *options, *requirements), environment=pip_environment(), timeout_seconds=SECONDS)
        if done.returncode == 0:
            taken = json.loads(report.read_text(encoding="utf-8"))["install"]
            return tuple(sorted(map(_wheel, taken), key=lambda wheel: wheel.name))
    unheard = "Retrying (" in done.stderr or is_untrusted(done.stderr)
    if any(words in done.stderr for words in ABSENT) and not unheard:
        return None
    raise install_error(requirements[0], done.stderr, Path(tempfile.gettempdir()))


_COMMAND: Final = (
    *(sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--disable-pip-version-check", "--no-input"),
    *("--ignore-installed", "--only-binary", ":all:", "--implementation", "cp"),
)


def _wheel(entry: Any) -> Resolved:
    metadata = entry["metadata"]
    name, version = str(metadata["name"]).lower().replace("_", "-"), str(metadata["version"])
    digest = str(entry["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256", ""))
    if not SHA256.fullmatch(digest):
        what = f"gives no SHA-256 of {name} {version}"
        hint = "use an index that has it: pip config list shows the configured one"
        raise NetworkError("bad-index-answer", what, where="the package index", hint=hint)
    return Resolved(name=name, version=version, sha256=digest)


PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")  # those that ortrim runs on
MACHINE: Final = WHEEL_PLATFORMS["x64"]
OTHER_MACHINES: Final = (WHEEL_PLATFORMS["arm64"], ("macosx_14_0_arm64",))
"""Whose digests are pinned, too, where there are wheels for them: hosts, and baselines of targets."""


@dataclass(frozen=True, kw_only=True)
class WantedRequirement:
    """What a file pins: `packages` as pip takes them, with what they need unless they stand `alone`.

    `pythons` are tried on x86-64, which decides on the versions; wheels for other `machines` are pinned beside those.
    """

    packages: tuple[str, ...]
    alone: bool = False
    pythons: tuple[str, ...] = PYTHONS
    machines: tuple[Sequence[str], ...] = OTHER_MACHINES


def pinned_text(wanted: WantedRequirement, announce: Callable[[str], None]) -> str:
    """Return the lines of a requirements file, with the newest versions that pip takes."""
    found: dict[tuple[str, str], dict[str, set[str]]] = {}  # digests by name and version, and by Python
    for python in wanted.pythons:
        announce(f"ask the package index for {', '.join(wanted.packages)} for Python {python}")
        for wheel in _wheels(wanted, python):
            found.setdefault((wheel.name, wheel.version), {}).setdefault(python, set()).add(wheel.sha256)
    pythons = {python for digests in found.values() for python in digests}
    if not pythons:
        names = ", ".join(wanted.packages)
        what = f"the package index has no wheel of {names} for Python {', '.join(wanted.pythons)}"
        raise SourcesError("no-wheel", what, where=wanted.packages[0], hint="wait until it is published there")
    return "".join(_entry(*key, digests, pythons) for key, digests in sorted(found.items()))


def _wheels(wanted: WantedRequirement, python: str) -> Iterator[Resolved]:
    taken = resolved(wanted.packages, python, MACHINE, dependencies=not wanted.alone) or ()
    exactly = [f"{wheel.name}=={wheel.version}" for wheel in taken]
    yield from taken
    for machine in wanted.machines if exactly else ():
        yield from _elsewhere(exactly, python, machine)


def _elsewhere(exactly: Sequence[str], python: str, machine: Sequence[str]) -> Iterator[Resolved]:
    """Yield the wheels of another machine: all at once, or those that there are if some are missing."""
    together = resolved(exactly, python, machine, dependencies=False)
    if together is not None:
        yield from together
    elif len(exactly) > 1:
        for each in exactly:
            yield from resolved([each], python, machine, dependencies=False) or ()


def _entry(name: str, version: str, digests: dict[str, set[str]], pythons: set[str]) -> str:
    """Write one requirement; one that not all Pythons take says which do."""
    named = " or ".join(f"python_version == '{python}'" for python in sorted(digests))
    marker = "" if set(digests) == pythons else f" ; {named}"
    hashes = sorted({digest for each in digests.values() for digest in each})
    return " \\\n    ".join([f"{name}=={version}{marker}", *(f"--hash=sha256:{digest}" for digest in hashes)]) + "\n"


ENTRY: Final = re.compile(r'^\[versions\."(?P<version>[^"]+)"\]\n(?:[a-z_]+ = .*\n)*', re.MULTILINE)
RELEASE: Final = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})")
NDK_TEMPLATE: Final = "tools/ci_build/github/azure-pipelines/templates/use-android-ndk.yml"
NDK: Final = re.compile(r'name: AndroidNdkVersion\s+(?:[a-zA-Z]+: .*\s+)*?default: "?([0-9]+\.[0-9]+\.[0-9]+)"?\s')


def release_number(version: str) -> tuple[int, ...] | None:
    """Return a version such as `1.22.0` as numbers that can be ordered; None for anything else, a candidate say."""
    found = RELEASE.fullmatch(version)
    return tuple(map(int, found.groups())) if found else None


def with_version(text: str, version: str, limits: runtime.VersionLimits, ndk: str | None) -> str:
    """Return the text of `onnxruntime.toml` with an entry for a version that it lacks, in the order of versions."""
    number = release_number(version)
    assert number is not None
    values = {"max_opset": limits.opset, "max_ml_opset": limits.ml_opset, "max_ir_version": limits.ir_version}
    lines = [f'[versions."{version}"]', *(f"{key} = {value}" for key, value in values.items() if value is not None)]
    entry = "\n".join([*lines, *([f'ndk = "{ndk}"'] if ndk else [])]) + "\n"
    entries = list(ENTRY.finditer(text))
    assert version not in {found["version"] for found in entries}
    later = next((found for found in entries if (release_number(found["version"]) or ()) > number), None)
    if later:
        return f"{text[: later.start()]}{entry}\n{text[later.start() :]}"
    end = entries[-1].end()
    return f"{text[:end]}\n{entry}{text[end:]}"


def ndk_of(template: str) -> str | None:
    """Return the version of Android's NDK that upstream builds with, as its template says; None when it does not."""
    found = NDK.search(template)
    return found[1] if found else None


def pin_sources(
    version: str, *, mirrors: Mirrors = (), announce: Callable[[str], None] = lambda _: None
) -> tuple[Path, str | None]:
    """Pin a version's sources (its tag's commit, git's ids, SHA-256 of dependencies); return the file, and the NDK.

    Each dependency's archive must have upstream's SHA-1; of one that cannot be fetched, that alone decides. `mirrors`
    are pairs (prefix, what to fetch from instead); the pins keep upstream's addresses. The file is written last.
    """
    tag = f"v{version}"
    announce(f"ask for the commit of {tag}")
    commit = tagged_commit(mirrored(f"{runtime.REPOSITORY}.git", mirrors), tag)
    with tempfile.TemporaryDirectory(prefix="ortrim-pins-") as name:
        folder = Path(name)
        fetch_objects(folder, runtime.REPOSITORY, commit, mirrors)
        tree, left_out = git(folder, "rev-parse", f"{commit}^{{tree}}").strip(), left_out_of(folder, commit)
        listed = parse_dependencies(_file_of(folder, commit, DEPENDENCIES))
        ndk = ndk_of(_file_of(folder, commit, NDK_TEMPLATE))
        archives = _digests_of(declared_components(listed, {}, frozenset(runtime.OPTIONAL)), folder, mirrors, announce)
    witnesses = (f"tag {tag} of {runtime.REPOSITORY}",)
    pin = runtime.CommitPin(commit=commit, tree=tree, witnesses=witnesses, left_out=left_out, archives=archives)
    file, text = runtime.pin_file_name(version, "upstream"), commit_text(version, pin)
    runtime.read_commit_pin(text, file)
    path = shipped.writable_pins_folder() / file
    write_atomically(path, text)
    return path, ndk


def _file_of(repository: Path, commit: str, name: str) -> str:
    """Return a file's text, empty for one that the commit lacks."""
    there = git(repository, "ls-tree", "--name-only", commit, "--", name)
    return git(repository, "show", f"{commit}:{name}") if there.strip() else ""


def _digests_of(
    components: Iterable[runtime.ComponentPin], folder: Path, mirrors: Mirrors, announce: Callable[[str], None]
) -> dict[str, str]:
    """Return the SHA-256 of each archive that has its SHA-1, by that."""
    digests = {}
    for component in components:
        announce(f"fetch {component.location}")
        archive = folder / component.file
        try:
            fetch(mirrored(component.location, mirrors), archive, "sha1", component.sha1)
        except NetworkError as error:
            announce(f"{component.name}: no SHA-256, its SHA-1 alone counts: {error.code}: {error.what}")
        else:
            digests[component.sha1] = sha256_of(archive)
            archive.unlink()
    return digests


def commit_text(version: str, pin: runtime.CommitPin) -> str:
    """Return the pin file of a commit."""
    lines = [
        f"# ONNX Runtime {version}: upstream's commit, which pins everything.",
        f"# `invoke pins.update --version {version}` writes this file anew.",
        "",
        f'commit = "{pin.commit}"',
        *([f'tree = "{pin.tree}"'] if pin.tree else []),
        *("witnesses = [", *(f'    "{witness}",' for witness in pin.witnesses), "]"),
    ]
    if pin.left_out:
        lines += ["", "# What no build reads, by git's ids.", "[left_out]"]
        lines += [f'"{name}" = "{number}"' for name, number in sorted(pin.left_out.items())]
    if pin.archives:
        lines += ["", "# SHA-256 of the dependencies by the SHA-1 in upstream's cmake/deps.txt.", "[archives]"]
        lines += [f'"{sha1}" = "{sha256}"' for sha1, sha256 in sorted(pin.archives.items())]
    return "\n".join(lines) + "\n"


HOST: Final = "https://github.com/"
ACTION_RELEASE: Final = re.compile(r"^[0-9a-f]{40}\trefs/tags/(v(\d+)\.(\d+)\.(\d+))$", re.MULTILINE)


def update_action_pins(*, mirrors: Mirrors, announce: Callable[[str], None]) -> Path:
    """Pin the newest release of each action that the pins name, by its commit, and return the file that was written."""
    text = shipped.shipped_text(shipped.ACTIONS_FILE)
    failed: list[Diagnostic] = []

    def newest(name: str) -> Lines:
        announce(f"ask for the releases of {name}")
        tag, commit = _newest(mirrored(f"{HOST}{name}", mirrors))
        return (f'tag = "{tag}"', f'commit = "{commit}"')

    values = _found("actions", shipped.read_action_pins(text), newest, failed)
    updated = with_values(text, values)
    shipped.read_action_pins(updated)
    return _written(shipped.ACTIONS_FILE, updated, failed)


def _newest(url: str) -> tuple[str, str]:
    """Return the tag and the commit of a repository's newest release, by its number."""
    printed = git(Path(), "ls-remote", "--tags", "--refs", "--", url)
    releases = {tag: tuple(map(int, numbers)) for tag, *numbers in ACTION_RELEASE.findall(printed)}
    if not releases:
        raise SourcesError("no-release", "the repository has no tag such as v1.2.3", where=url)
    tag = max(releases, key=releases.__getitem__)
    return tag, tagged_commit(url, tag)


TABLE: Final = re.compile(r'^\[(?P<kind>actions|bases|archives)\."?(?P<name>[^"\]]+)"?\]')
FILLED: Final = re.compile(r"^(tag|commit|digest|file|sha256)\s*=")
Lines = tuple[str, ...]
Values = dict[tuple[str, str], Lines]


def update_image_pins(
    usable: UsableEngine, *, mirrors: Mirrors = (), announce: Callable[[str], None] = lambda _: None
) -> Path:
    """Fetch every image and archive that is named, and write their digests beside their names.

    Each archive must have the SHA-1 of Google's list. What cannot be fetched keeps its pin and stops nothing else: a
    `DiagnosticGroup` is raised after the file was written.
    """
    text = shipped.shipped_text(shipped.IMAGES_FILE)
    pins = shipped.read_image_pins(text)
    failed: list[Diagnostic] = []

    def digest(name: str) -> Lines:
        reference = pins.bases[name].reference
        announce(f"pull {reference}")
        return (f'digest = "{pulled_digest(usable, reference)}"',)

    values = _found("bases", pins.bases, digest, failed) | _archives(pins, mirrors, announce, failed)
    updated = with_values(text, values)
    shipped.read_image_pins(updated)
    return _written(shipped.IMAGES_FILE, updated, failed)


def with_values(text: str, values: Values) -> str:
    """Return a pin file with other digests: the lines of each (kind, name) take the place of those that were there."""
    lines: list[str] = []
    new: Lines | None = None
    for line in text.splitlines():
        found = TABLE.match(line)
        if found:
            new = values.get((found["kind"], found["name"]))
        if new is None or not FILLED.match(line):
            lines.append(line)
        if found:
            lines += new or ()
    return "\n".join(lines) + "\n"


def _found(kind: str, names: Iterable[str], lines_of: Callable[[str], Lines], failed: list[Diagnostic]) -> Values:
    """Return the lines of each name for which there are any; why there are none for another is added to `failed`."""
    values: Values = {}
    for name in names:
        try:
            values[kind, name] = lines_of(name)
        except (Interrupted, StorageError):
            raise
        except Diagnostic as diagnostic:
            failed.append(diagnostic)
    return values


def _written(file: str, text: str, failed: list[Diagnostic]) -> Path:
    path = shipped.writable_pins_folder() / file
    write_atomically(path, text)
    if failed:
        raise DiagnosticGroup(tuple(failed))
    return path


def _archives(
    pins: shipped.ImagePins, mirrors: Mirrors, announce: Callable[[str], None], failed: list[Diagnostic]
) -> Values:
    with tempfile.TemporaryDirectory(prefix="ortrim-pins-") as folder:
        listing = Path(folder) / "list.xml"
        announce(f"fetch {LIST}")
        try:
            fetch(mirrored(LIST, mirrors), listing, "sha256", None)
        except NetworkError as error:
            failed.append(error)
            return {}

        def digest(package: str) -> Lines:
            file, sha1 = listed_archive(listing.read_bytes(), package)
            url = f"{ANDROID_SDK_REPOSITORY}/{file}"
            announce(f"fetch {url}")
            fetch(mirrored(url, mirrors), Path(folder) / file, "sha1", sha1)
            return (f'file = "{file}"', f'sha256 = "{sha256_of(Path(folder) / file)}"')

        return _found("archives", pins.archives, digest, failed)


LIST: Final = f"{ANDROID_SDK_REPOSITORY}/repository2-3.xml"
"""What sdkmanager itself reads."""
SDK_HOST: Final = "linux"


def listed_archive(listing: bytes, package: str) -> tuple[str, str]:
    """Return the file for Linux of a package (`ndk;27.2.12479018`) in the text of the list, and its SHA-1."""
    try:
        root = xml_root(listing)
    except (ParseError, ValueError) as error:
        what = "is not Google's list of SDK packages"
        raise SourcesError("bad-sdk-list", what, where=LIST, why=str(error)) from error
    packages = (each for each in root.iter("remotePackage") if each.get("path") == package)
    archives = (archive for each in packages for archive in each.iter("archive"))
    fitting = [each for each in archives if each.findtext(".//host-os", SDK_HOST).strip() == SDK_HOST]
    file, sha1 = (fitting[-1].findtext(f".//{key}", "").strip() if fitting else "" for key in ("url", "checksum"))
    if not file or "/" in file or len(sha1) != 40:
        hint = "list the versions: sdkmanager --list"
        raise SourcesError("not-in-sdk-list", f"has no {package} for Linux", where=LIST, hint=hint)
    return file, sha1.lower()


def converter_text(version: str, announce: Callable[[str], None]) -> str:
    """Return a requirements file for a full runtime with every wheel's digest, of versions that pip takes on x86-64."""
    try:
        lines = pinned_text(WantedRequirement(packages=(f"{DISTRIBUTION}=={version}",)), announce)
    except SourcesError as error:
        if error.code != "no-wheel":
            raise
        what = f"the package index has no wheel of {DISTRIBUTION} {version} for Python {', '.join(PYTHONS)}"
        hint = "wait until it is published there; without it no model can be converted"
        raise SourcesError("no-converter", what, where=DISTRIBUTION, hint=hint) from error
    head = f"# The full ONNX Runtime {version} for converting models. Made by: invoke pins.update --latest\n"
    return head + lines


MADE_BY: Final = "# Made by: invoke pins.update --requirements\n"
FILES: Final[Mapping[str, tuple[str, WantedRequirement]]] = MappingProxyType({
    "onnxslim": ("onnxslim, which simplifies models.", WantedRequirement(packages=("onnxslim",))),
    "onnxsim": ("onnxsim, which simplifies models.", WantedRequirement(packages=("onnxsim",))),
    "onnx": (
        "onnx beside the full ONNX Runtime, whose own tools need it; what else onnx needs is there.",
        WantedRequirement(packages=("onnx", "ml-dtypes", "typing-extensions"), alone=True),
    ),
    "engine-openvino": ("OpenVINO, one of the engines of `invoke compare`.", WantedRequirement(packages=("openvino",))),
    "engine-tract": ("tract, one of the engines of `invoke compare`.", WantedRequirement(packages=("tract", "numpy"))),
    "engine-mnn": ("MNN, one of the engines of `invoke compare`.", WantedRequirement(packages=("mnn", "numpy"))),
    "engine-ncnn": (
        "ncnn and its converter pnnx, an engine of `invoke compare`, without what pnnx's program does not need.",
        WantedRequirement(packages=("ncnn", "numpy", "pnnx"), alone=True),
    ),
    "engine-litert": ("LiteRT, an engine of `invoke compare`.", WantedRequirement(packages=("ai-edge-litert",))),
    "engine-litert-converter": (
        "onnx2tf, which converts for LiteRT; for Python 3.11 on x86-64 alone.",
        WantedRequirement(packages=("onnx2tf",), pythons=("3.11",), machines=()),
    ),
})  # fmt: skip
"""By the file's name, what it is for and what it pins."""


def update_requirements(announce: Callable[[str], None]) -> tuple[Path, ...]:
    """Pin the newest version of each package by its wheels' digests, all or none; return the files written."""
    texts = {
        name: f"# {purpose}\n{MADE_BY}{pinned_text(wanted, announce)}" for name, (purpose, wanted) in FILES.items()
    }
    folder = shipped.writable_pins_folder() / "requirements"
    for name, text in texts.items():
        write_atomically(folder / f"{name}.txt", text)
    return tuple(folder / f"{name}.txt" for name in texts)
