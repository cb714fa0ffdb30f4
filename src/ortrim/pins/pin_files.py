"""Reading the files that pin sources; an entry that says where but not what is refused."""

import re
import tomllib
from typing import Annotated, Any, Final, Literal

import pydantic
from pydantic import ConfigDict, Field

from ortrim.errors import SourcesError
from ortrim.pins.source_sets import COMPONENTS, OPTIONAL, ComponentPin, GitPin, Origin, SourceSet

ORIGINS: Final[dict[str, Origin]] = {
    "url": "url",
    "debian_source": "debian-source",
    "debian_binary": "debian-binary",
    "wheel": "wheel",
}
CONFIG: Final = ConfigDict(extra="forbid")
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+~-]*$")]
Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.+:=_-]*$")]


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=CONFIG)
class _Component:
    version: Word
    file: FileName
    sha256: Sha256
    url: Annotated[str, Field(pattern=r"^https?://\S+$")] | None = None
    debian_source: Word | None = None
    debian_binary: Word | None = None
    wheel: Word | None = None
    strip: Annotated[int, Field(ge=0)] = 0
    take: dict[str, str] = Field(default_factory=lambda: {"": ""})
    interface: Annotated[str, Field(pattern=r"^\w+::\w+$")] | None = None

    def locations(self) -> list[tuple[Origin, str]]:
        """Return where the archive may come from; exactly one is right."""
        return [(origin, getattr(self, key)) for key, origin in ORIGINS.items() if getattr(self, key)]


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=CONFIG)
class _Set:
    components: dict[str, _Component]
    suite: Word | None = None


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=CONFIG)
class _Git:
    # A leading dash would be an option to git.
    url: Annotated[str, Field(pattern=r"^[^-\s]\S*$")]
    tag: Word
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]


def read_source_set(text: str, kind: Literal["archive", "debian"], name: str, licences: dict[str, str]) -> SourceSet:
    """Read a pin file of one kind.

    Raises `SourcesError`: `pin-without-digest` for an entry that says where but not what, `bad-pin-file`.
    """
    data = _parsed(text, name)
    for component, table in _tables(data.get("components")):
        if "sha256" not in table:
            raise _without_digest(f"{name}: components.{component}", "sha256")
    content: _Set = _validated(_Set, data, name)
    missing = [component for component in COMPONENTS if component not in content.components]
    unknown = [component for component in content.components if component not in (*COMPONENTS, *OPTIONAL)]
    if missing or unknown:
        raise _bad(name, f"missing components: {missing}; unknown components: {unknown}")
    names = (*COMPONENTS, *(component for component in OPTIONAL if component in content.components))
    pins = tuple(_pin(component, content.components[component], licences, name) for component in names)
    if content.suite is None and any(pin.origin.startswith("debian") for pin in pins):
        raise _bad(name, "a Debian component needs `suite`")
    return SourceSet(kind=kind, suite=content.suite, components=pins)


def read_git_pin(text: str, name: str) -> GitPin:
    """Read a pin file of the kind `git`. Raises `SourcesError` as `read_source_set` does."""
    data = _parsed(text, name)
    if "commit" not in data:
        raise _without_digest(name, "commit")
    content: _Git = _validated(_Git, data, name)
    return GitPin(url=content.url, tag=content.tag, commit=content.commit)


def _pin(name: str, entry: _Component, licences: dict[str, str], where: str) -> ComponentPin:
    locations = entry.locations()
    if len(locations) != 1:
        raise _bad(where, f"components.{name} needs exactly one of {', '.join(ORIGINS)}")
    origin, location = locations[0]
    if origin == "wheel" and not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!_-]+", location):
        raise _bad(where, f"components.{name}.wheel is not of the form name==version")
    return ComponentPin(
        name=name,
        version=entry.version,
        licence=licences[name],
        origin=origin,
        location=location,
        file=entry.file,
        sha256=entry.sha256,
        strip=entry.strip,
        take=tuple(entry.take.items()),
        interface=entry.interface,
    )


def _parsed(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _bad(name, str(error)) from error


def _validated(kind: Any, data: dict[str, Any], name: str) -> Any:
    try:
        return pydantic.TypeAdapter(kind).validate_python(data)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        raise _bad(name, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def _tables(value: object) -> list[tuple[str, dict[str, Any]]]:
    tables = value if isinstance(value, dict) else {}
    return [(name, table) for name, table in tables.items() if isinstance(table, dict)]


def _bad(name: str, why: str) -> SourcesError:
    hint = "restore the file, or remove it and run: invoke pins.update"
    return SourcesError("bad-pin-file", "is not a valid pin file", where=name, why=why, hint=hint)


def _without_digest(where: str, key: str) -> SourcesError:
    what = f"says where a source is, but not what it must be: `{key}` is missing"
    hint = "run: invoke pins.update (never type a digest that you did not compute)"
    return SourcesError("pin-without-digest", what, where=where, hint=hint)
