"""The versions of ONNX Runtime: which a buildspec means, which models each loads, and where its sources are."""

import re
import tomllib
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Annotated, Any, Final, Literal

import pydantic
from pydantic import ConfigDict, Field

from ortrim.errors import SourcesError, SpecError
from ortrim.pins.shipped import bad_pin_file, converter_requirements, parsed, pin_text, shipped_text, validated

VERSIONS_FILE: Final = "onnxruntime.toml"
NEWEST: Final = "newest"
MINOR: Final = re.compile(r"[0-9]+\.[0-9]+")
SOURCE_PINS: Final = ("upstream", "debian")  # the kinds of pin files that say where a version's sources are


@dataclass(frozen=True, kw_only=True)
class VersionLimits:
    """The newest opsets of `ai.onnx` and `ai.onnx.ml` (None if untried) and IR version that a version loads."""

    opset: int
    ml_opset: int | None
    ir_version: int


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Proof:
    """Who last built libraries of a version and found them in parity: `on` which day, for which targets, with what."""

    by: Literal["CI", "hand"]
    on: date
    targets: tuple[str, ...]
    figures: str


def versions_file() -> dict[str, Any]:
    """Return `onnxruntime.toml` as data; it travels with ortrim and is checked by a test."""
    return _parsed(shipped_text(VERSIONS_FILE))


@cache
def _parsed(text: str) -> dict[str, Any]:
    return tomllib.loads(text)


def default_version() -> str:
    """Return the version of buildspecs that name none: the newest that ortrim's own CI has proved."""
    version: str = versions_file()["default"]
    return version


def supported_versions() -> tuple[str, ...]:
    """Return the versions that are known and not broken, oldest first."""
    return tuple(_known())


def known_version(version: str) -> dict[str, Any]:
    """Return the entry of a version that can be built."""
    where = "onnxruntime.version"
    entry: dict[str, Any] | None = versions_file()["versions"].get(version)
    if entry is None:
        nearest = min(supported_versions(), key=lambda known: abs(_as_number(known) - _as_number(version)))
        hint = f"the nearest version that ortrim knows is {nearest}; all: {', '.join(supported_versions())}"
        raise SpecError("unknown-version", f"ONNX Runtime {version} is not known to ortrim", where=where, hint=hint)
    if "known_broken" in entry:
        broken = entry["known_broken"]
        what, hint = f"ONNX Runtime {version} is known to be broken", f"use {broken['instead']}"
        raise SpecError("known-broken-version", what, where=where, why=broken["reason"], hint=hint)
    return entry


def pin_file_name(version: str, kind: str) -> str:
    """Return the name of the file that pins one kind of source of one version."""
    return f"onnxruntime-{version}-{kind}.toml"


def proofs() -> dict[str, Proof]:
    """Return the proofs of the versions that have one, newest first."""
    known = reversed(_known().items())
    return {version: validated(Proof, entry["proved"], VERSIONS_FILE) for version, entry in known if "proved" in entry}


def newest_pinned() -> str:
    """Return the newest version whose sources are pinned, from wherever they come."""
    pinned = (
        version
        for version in reversed(supported_versions())
        if any(pin_text(pin_file_name(version, kind)) is not None for kind in SOURCE_PINS)
    )
    return next(pinned, default_version())


def exact_version(word: str) -> str:
    """Return the version that is meant by `1.30` (its newest patch) or `newest` (the newest with pinned sources).

    A whole version is returned as it is, and the first of an unknown minor version: who looks for its pins says more.
    """
    if word == NEWEST:
        return newest_pinned()
    if MINOR.fullmatch(word):
        patches = (version for version in reversed(supported_versions()) if version.startswith(f"{word}."))
        return next(patches, f"{word}.0")
    return word


def limits_of(version: str) -> VersionLimits | None:
    """Return the limits of a version; None when they are not recorded, so that the converter has to judge."""
    entry = _known().get(version)
    if entry is None:
        return None
    return VersionLimits(
        opset=entry["max_opset"], ml_opset=entry.get("max_ml_opset"), ir_version=entry["max_ir_version"]
    )


def needed_for_opset(domain: str, opset: int) -> str:
    """Return in words which ONNX Runtime loads an opset of `ai.onnx` or `ai.onnx.ml`."""
    key = {"ai.onnx": "max_opset", "ai.onnx.ml": "max_ml_opset"}[domain]
    return _needed(key, opset, f"opset {opset} of {domain}")


def needed_for_ir_version(ir_version: int) -> str:
    """Return in words which ONNX Runtime loads an IR version."""
    return _needed("max_ir_version", ir_version, f"IR version {ir_version}")


def _needed(key: str, least: int, what: str) -> str:
    known = _known()
    first = next((version for version, entry in known.items() if entry.get(key, 0) >= least), None)
    if first is None:
        return f"no ONNX Runtime that ortrim knows loads {what}; the newest is {list(known)[-1]}"
    return f"{what} needs ONNX Runtime {first} or later"


def _known() -> dict[str, dict[str, Any]]:
    """Return the entries of the versions that are not known to be broken, oldest first."""
    return {version: entry for version, entry in versions_file()["versions"].items() if "known_broken" not in entry}


def _as_number(version: str) -> int:
    """Return a version as one number, so that versions have a distance; what is not a digit counts as none."""
    parts = [int("".join(filter(str.isdecimal, part)) or 0) for part in version.split(".")[:3]]
    major, minor, patch = (*parts, 0, 0, 0)[:3]
    return (major * 1000 + minor) * 1000 + patch


Origin = Literal["url", "debian-source", "debian-binary", "wheel"]
COMPONENTS: Final = (
    "onnxruntime", "abseil_cpp", "protobuf", "flatbuffers", "onnx", "nlohmann_json",
    "gsl", "date", "re2", "eigen", "safeint", "mp11",
)  # fmt: skip
OPTIONAL: Final = ("cpuinfo", "fxdiv", "pthreadpool", "xnnpack", "coremltools", "fp16", "psimd")
"""What a set may lack. Debian's mirrors do not all serve cpuinfo, without which ONNX Runtime reads the kernel's own
bits; the others are for the execution providers XNNPACK and CoreML, which cannot be chosen without them.
"""
REPOSITORY: Final = "https://github.com/microsoft/onnxruntime"


CONFIG: Final = ConfigDict(extra="forbid")
GitId = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
TreePath = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._+-]*(/[A-Za-z0-9_][A-Za-z0-9._+-]*)*$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+~-]*$")]
WORD: Final = r"[A-Za-z0-9][A-Za-z0-9.+:=_-]*"


@dataclass(frozen=True, kw_only=True)
class ComponentPin:
    """One archive: where it comes from (`location` by `origin`), its digest, and what is taken of it.

    Upstream's dependencies have a `sha1`, and a `sha256` where known; all else has a `sha256`. `interface` names the
    CMake target that headers below `include` are offered as, when the archive holds no CMake project.
    """

    name: str
    version: Annotated[str, Field(pattern=rf"^{WORD}$")]
    licence: str
    origin: Origin
    location: str
    file: FileName
    sha256: Sha256 = ""
    sha1: str = ""
    strip: Annotated[int, Field(ge=0)] = 0
    take: tuple[tuple[str, str], ...] = (("", ""),)
    interface: Annotated[str, Field(pattern=r"^\w+::\w+$")] | None = None

    @property
    def digest(self) -> tuple[str, str]:
        """The algorithm and the digest that decide whether a file is this archive."""
        return ("sha256", self.sha256) if self.sha256 else ("sha1", self.sha1)


@dataclass(frozen=True, kw_only=True)
class SourcePin:
    """One source as resolved: its name (`onnxruntime`, `abseil_cpp`), version, kind and the digest that pins it."""

    name: str
    version: str
    kind: str
    digest: str
    licence: str


@dataclass(frozen=True, kw_only=True)
class SourceSet:
    """All components from a suite of Debian."""

    suite: Annotated[str, Field(pattern=rf"^{WORD}$")]
    components: tuple[ComponentPin, ...]


LOCATIONS: Final[dict[str, tuple[Origin, str]]] = {
    "url": ("url", r"https?://\S+"),
    "debian_source": ("debian-source", WORD),
    "debian_binary": ("debian-binary", WORD),
    "wheel": ("wheel", r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!_-]+"),
}
"""The keys by which a pin file says where an archive comes from, and the form of what follows each."""
KEYS: Final = frozenset({"version", "file", "sha256", "strip", "take", "interface"})


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=CONFIG)
class CommitPin:
    """A release of ONNX Runtime by upstream's commit, or a commit of another `repository`.

    `tree` is git's id of its files, and `left_out` those of folders and submodules that no build reads (`tree ID`,
    `commit ID`), by which an archive is checked. `archives` has dependencies' SHA-256 by upstream's SHA-1. `witnesses`
    agree on the commit.
    """

    commit: GitId
    repository: str = REPOSITORY
    tree: GitId | None = None
    witnesses: tuple[str, ...] = ()
    left_out: dict[TreePath, Annotated[str, Field(pattern=r"^(tree|commit) [0-9a-f]{40}$")]] = Field(
        default_factory=dict
    )
    archives: dict[GitId, Sha256] = Field(default_factory=dict)


def read_source_set(text: str, name: str, licences: dict[str, str]) -> SourceSet:
    """Read the pin file of a set of archives."""
    data = parsed(text, name)
    tables = validated(dict[str, dict[str, Any]], data.pop("components", {}), name)
    missing = [component for component in COMPONENTS if component not in tables]
    unknown = [component for component in tables if component not in (*COMPONENTS, *OPTIONAL)]
    if missing or unknown or data.keys() != {"suite"}:
        raise bad_pin_file(name, f"missing components: {missing}; unknown components: {unknown}; keys: {sorted(data)}")
    names = (*COMPONENTS, *(component for component in OPTIONAL if component in tables))
    pins = [_fields(component, tables[component], licences, name) for component in names]
    return validated(SourceSet, data | {"components": pins}, name)


def _fields(name: str, table: dict[str, Any], licences: dict[str, str], where: str) -> dict[str, Any]:
    """Return the fields of a component's pin, of which `validated` judges all but where it comes from."""
    if "sha256" not in table:
        raise _without_digest(f"{where}: components.{name}", "sha256")
    given = [key for key in LOCATIONS if key in table]
    if len(given) != 1 or not re.fullmatch(LOCATIONS[given[0]][1], str(table[given[0]])):
        raise bad_pin_file(where, f"components.{name} needs exactly one of {', '.join(LOCATIONS)}, in its form")
    key, (origin, _) = given[0], LOCATIONS[given[0]]
    if strange := table.keys() - KEYS - {key}:
        raise bad_pin_file(where, f"components.{name}: unknown keys: {', '.join(sorted(strange))}")
    taken = tuple(validated(dict[str, str], table.get("take", {"": ""}), where).items())
    same = {each: table[each] for each in KEYS & table.keys()}
    return same | {"name": name, "licence": licences[name], "origin": origin, "location": table[key], "take": taken}


def read_commit_pin(text: str, name: str) -> CommitPin:
    """Read the pin file of upstream's commit."""
    data = parsed(text, name)
    if "commit" not in data:
        raise _without_digest(name, "commit")
    return validated(CommitPin, data, name)


def _without_digest(where: str, key: str) -> SourcesError:
    what = f"names a source without its digest: `{key}` is missing"
    hint = "run: invoke pins.update (never type a digest that you did not compute)"
    return SourcesError("pin-without-digest", what, where=where, hint=hint)


@dataclass(frozen=True, kw_only=True)
class ApplePins:
    """Facts for Apple's systems of one version: the lowest deployment targets, and GitHub's Xcode."""

    ios: str
    macos: str
    maccatalyst: str
    xcode: str


@dataclass(frozen=True, kw_only=True)
class RuntimePins:
    """One version of ONNX Runtime: where its sources are pinned, and what builds of it need to know, None if unknown.

    `debian` is a set of a distribution's archives; `converter_requirements` the text of a requirements file; `ndk` what
    upstream builds with.
    """

    version: str
    converter_requirements: str | None
    commit: CommitPin | None = None
    debian: SourceSet | None = None
    ndk: str | None = None
    apple: ApplePins | None = None


def licence_ids() -> dict[str, str]:
    """Return the SPDX licence identifier of each component."""
    return {name: entry["licence"] for name, entry in versions_file()["components"].items()}


def upstream_names() -> dict[str, str]:
    """Return the components by their names in ONNX Runtime's `cmake/deps.txt`."""
    components = versions_file()["components"]
    return {entry["upstream"]: name for name, entry in components.items() if "upstream" in entry}


def replacements() -> dict[str, dict[str, str]]:
    """Return by its SHA-1 what stands in for an archive that is gone: `url`, `sha1`, and `why` that is needed."""
    replaced: dict[str, dict[str, str]] = versions_file()["replaced"]
    return replaced


def runtime_pins(version: str) -> RuntimePins:
    """Return what is pinned for one version of ONNX Runtime."""
    entry = known_version(version)
    apple: dict[str, str] | None = entry.get("apple")
    upstream, name = (pin_file_name(version, kind) for kind in SOURCE_PINS)
    commit, text = pin_text(upstream), pin_text(name)
    return RuntimePins(
        version=version,
        converter_requirements=converter_requirements(version),
        commit=None if commit is None else read_commit_pin(commit, upstream),
        debian=None if text is None else read_source_set(text, name, licence_ids()),
        ndk=entry.get("ndk"),
        apple=ApplePins(**{"maccatalyst": apple["ios"]} | apple) if apple else None,
    )
