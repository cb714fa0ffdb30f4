"""Deciding which sources are meant, without fetching them."""

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from ortrim.core.plan import SourcePin
from ortrim.errors import SourcesError
from ortrim.pins.runtime import RuntimePins, licence_ids
from ortrim.pins.source_sets import ComponentPin, GitPin
from ortrim.sources.checkout import Checkout, identify
from ortrim.storage.cache import cache_folder

AUTO_ORDER: Final = ("archive", "git", "debian")
LAYOUT_VERSION: Final = 1
"""To be raised when the same pins come to another tree."""


@dataclass(frozen=True)
class Resolution:
    """One way to get all sources: ONNX Runtime from `runtime`, its dependencies from archives."""

    kind: str
    version: str
    runtime: ComponentPin | GitPin | Checkout
    dependencies: tuple[ComponentPin, ...]
    dependency_kind: str
    suite: str | None

    @cached_property
    def pins(self) -> tuple[SourcePin, ...]:
        """Every source with what pins it."""
        licence = licence_ids()["onnxruntime"]
        first = SourcePin(
            name="onnxruntime", version=self.version, kind=self.kind, digest=_identity(self.runtime), licence=licence
        )
        return (first, *(_source_pin(part, self.dependency_kind) for part in self.dependencies))

    @cached_property
    def folder(self) -> Path:
        """The folder of the cache that holds, or will hold, the unpacked tree."""
        parts = [asdict(part) for part in self.dependencies]
        identity = [LAYOUT_VERSION, self.version, _identity(self.runtime), parts]
        if isinstance(self.runtime, ComponentPin):
            identity.append(asdict(self.runtime))
        return cache_folder("sources") / hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()

    @property
    def label(self) -> str:
        """The kind in words."""
        same = self.kind == self.dependency_kind
        return self.kind if same else f"{self.kind} with dependencies from {self.dependency_kind}"


def resolve_sources(runtime: RuntimePins, kind: str, path: Path | None = None) -> Resolution:
    """Return the sources that `fetch_sources` would use, without fetching.

    For `auto`, that is a kind whose tree is in the cache, or else the first that is pinned; fetching may show
    that it cannot be reached and fall to the next. Raises `SourcesError` as `fetch_sources` does.
    """
    choices, _ = choices_of(runtime, kind, path)
    return cached_choice(choices) or choices[0]


def cached_choice(choices: tuple[Resolution, ...]) -> Resolution | None:
    """Return the first choice whose tree is already in the cache."""
    return next((choice for choice in choices if choice.folder.is_dir()), None)


def choices_of(runtime: RuntimePins, kind: str, path: Path | None) -> tuple[tuple[Resolution, ...], tuple[str, ...]]:
    """Return the ways to get the sources, in the order to try them, and a note for each kind that is not pinned.

    Raises `SourcesError` (`unpinned-source`) when there is none.
    """
    kinds = AUTO_ORDER if kind == "auto" else (kind,)
    found = {each: _choices_of_kind(runtime, each, path) for each in kinds}
    notes = tuple(f"{each}: not pinned for ONNX Runtime {runtime.version}" for each in kinds if not found[each])
    choices = tuple(choice for each in kinds for choice in found[each])
    if not choices:
        what = f"the sources of ONNX Runtime {runtime.version} are not pinned, so they cannot be checked"
        hint = f"where the network reaches upstream, run: invoke pins.update --version {runtime.version}"
        raise SourcesError("unpinned-source", what, where=f"source = {kind!r}", why="\n".join(notes), hint=hint)
    return choices, notes


def _choices_of_kind(runtime: RuntimePins, kind: str, path: Path | None) -> list[Resolution]:
    if kind == "path":
        origin: GitPin | Checkout | None = identify(path, runtime.version) if runtime.sources else None
    elif kind == "git":
        origin = runtime.git
    else:
        return [
            Resolution(kind, runtime.version, every.components[0], every.components[1:], kind, every.suite)
            for every in runtime.sources
            if every.kind == kind
        ]
    if origin is None:
        return []
    return [
        Resolution(kind, runtime.version, origin, every.components[1:], every.kind, every.suite)
        for every in runtime.sources
    ]


def _identity(part: ComponentPin | GitPin | Checkout) -> str:
    match part:
        case ComponentPin():
            return part.sha256
        case GitPin():
            return part.commit
        case Checkout():
            return part.digest


def _source_pin(part: ComponentPin, kind: str) -> SourcePin:
    return SourcePin(name=part.name, version=part.version, kind=kind, digest=part.sha256, licence=part.licence)
