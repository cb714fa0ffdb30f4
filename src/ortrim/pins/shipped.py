"""The pin files, those of tools among them: those that travel with ortrim, and the user's own, which come first."""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

import pydantic
from platformdirs import user_config_path
from pydantic import ConfigDict, Field

from ortrim.base.files import chosen_folder
from ortrim.base.json import first_fault, from_data
from ortrim.errors import SourcesError, StorageError


def pin_text(name: str) -> str | None:
    """Return the text of the pin file `name`, the user's own in place of the shipped one; None when there is none."""
    own = _own_file(name)
    if own is not None and own.is_file():
        return own.read_text(encoding="utf-8", errors="replace")
    shipped = files(__package__) / name
    return shipped.read_text(encoding="utf-8") if shipped.is_file() else None


def pin_names(folder: str) -> tuple[str, ...]:
    """Return the names, with their folder, of the pin files in `folder`: those of ortrim and the user's, in order."""
    own = _own_file(folder)
    places = (files(__package__) / folder, *([own] if own else []))
    return tuple(sorted({f"{folder}/{file.name}" for place in places if place.is_dir() for file in place.iterdir()}))


def shipped_text(name: str) -> str:
    """Return the text of a pin file that ortrim has, or of the user's own in its place."""
    text = pin_text(name)
    assert text is not None
    return text


def shipped_file(name: str) -> Path:
    """Return the path of a pin file that ortrim has."""
    return Path(__file__).parent / name


def user_pins_folder() -> Path:
    """Return the user's pins folder: `ORTRIM_PINS`, or `pins` in the user's configuration folder."""
    folder = chosen_folder("ORTRIM_PINS", user_config_path)
    return folder if os.environ.get("ORTRIM_PINS") else folder / "pins"


def writable_pins_folder() -> Path:
    """Return where updated pins belong: the checkout that ortrim runs from, else the user's pins folder."""
    here = Path(__file__).resolve().parent
    in_a_checkout = here.parents[1].name == "src" and (here.parents[2] / "pyproject.toml").is_file()
    return here if in_a_checkout and not os.environ.get("ORTRIM_PINS") else user_pins_folder()


def _own_file(name: str) -> Path | None:
    """Return the user's own pin file or folder; a user without a home folder, or with a closed one, has none."""
    try:
        own = user_pins_folder() / name
        return own if own.exists() else None
    except (StorageError, PermissionError):
        if os.environ.get("ORTRIM_PINS"):
            raise
        return None


PINNED: Final = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)


def tool_requirements() -> str:
    """Return the text of the requirements file of the build tools; every line is pinned with hashes."""
    return shipped_text("requirements/tools.txt")


@cache
def tool_versions() -> tuple[tuple[str, str], ...]:
    """Return the pinned tools as (name, version), in the order of the file."""
    return tuple(PINNED.findall(tool_requirements()))


def converter_requirements(version: str) -> str | None:
    """Return the requirements of the full ONNX Runtime `version` for converting models, None when not pinned."""
    return pin_text(f"requirements/onnxruntime-{version}.txt")


def step_requirements(name: str) -> str:
    """Return the requirements of a program that simplifies models, `onnxslim` or `onnxsim`; pinned with hashes."""
    return shipped_text(f"requirements/{name}.txt")


IMAGES_FILE: Final = "images.toml"
CONFIG: Final = ConfigDict(extra="forbid")
Reference = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._/:-]*:[A-Za-z0-9._-]+$")]
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
DebianName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+.-]+$")]
PackagePath = Annotated[str, Field(pattern=r"^[a-z-]+;[0-9][0-9.]*$")]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\.zip$")]


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=CONFIG)
class BasePin:
    """A base image: its tag for people, its digest (empty when it was never had), or packages in its place."""

    reference: Reference
    digest: Digest | None = None
    suite: DebianName | None = None
    packages: tuple[DebianName, ...] = ()

    @property
    def pinned(self) -> str:
        """The image by digest, without the tag, which some engines refuse beside it."""
        return f"{self.reference.rpartition(':')[0]}@{self.digest}"


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=CONFIG)
class ArchivePin:
    """An archive of Google's SDK: its file there and its digest, once it was fetched."""

    file: FileName | None = None
    sha256: Sha256 | None = None


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=CONFIG)
class ImagePins:
    """All pins of images: bases by ortrim's names, archives by those that they have in Google's SDK."""

    bases: dict[str, BasePin] = field(default_factory=dict)
    archives: dict[PackagePath, ArchivePin] = field(default_factory=dict)

    def base(self, name: str) -> BasePin:
        """Return a base image that is pinned, or made of packages."""
        pin = self.bases.get(name)
        if pin is None or not (pin.digest or (pin.suite and pin.packages)):
            raise _not_pinned(f"bases.{name}", "the digest of the base image", pin.reference if pin else "")
        return pin

    def archive(self, package: str) -> tuple[str, str]:
        """Return file and SHA-256 of an archive, by its name in the SDK (`ndk;27.2.12479018`)."""
        pin = self.archives.get(package)
        if pin is None or not (pin.file and pin.sha256):
            raise _not_pinned(f"archives.{package}", "the SHA-256 of the archive", package)
        return pin.file, pin.sha256


def image_pins() -> ImagePins:
    """Return the pins of images: the user's own, or those that travel with ortrim."""
    return read_image_pins(shipped_text(IMAGES_FILE))


def read_image_pins(text: str) -> ImagePins:
    """Read a file of image pins."""
    return validated(ImagePins, parsed(text, IMAGES_FILE), IMAGES_FILE)


def _not_pinned(entry: str, missing: str, name: str) -> SourcesError:
    why = f"{missing}{f' {name}' if name else ''} is not known yet"
    hint = "where registries and Google's servers can be reached, run: invoke pins.update --images"
    return SourcesError("image-not-pinned", "is not pinned", where=f"{IMAGES_FILE}: {entry}", why=why, hint=hint)


ACTIONS_FILE: Final = "actions.toml"
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+$")]
Tag = Annotated[str, Field(pattern=r"^v[0-9]+(\.[0-9]+){0,2}$")]
Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=CONFIG)
class ActionPin:
    """An action: its tag for people, and its commit, which is absent when nobody has seen it."""

    tag: Tag
    commit: Commit | None = None


def action_pins() -> Mapping[str, ActionPin]:
    """Return the pins of actions: the user's own, or those that travel with ortrim."""
    return read_action_pins(shipped_text(ACTIONS_FILE))


def read_action_pins(text: str) -> Mapping[str, ActionPin]:
    """Read a file of action pins."""
    content = validated(dict[Literal["actions"], dict[Name, ActionPin]], parsed(text, ACTIONS_FILE), ACTIONS_FILE)
    return content.get("actions", {})


def action_reference(pins: Mapping[str, ActionPin], name: str) -> str:
    """Return what a step `uses`, with the tag as a comment; `name` may go deeper (`actions/cache/restore`)."""
    owner, _, rest = name.partition("/")
    pin = pins.get(f"{owner}/{rest.partition('/')[0]}")
    if pin is None or pin.commit is None:
        why = f"its tag {pin.tag} can be moved to another commit by its owner" if pin else "it is not in the file"
        hint = "where github.com can be reached, run: invoke pins.update --actions (do not guess a commit)"
        what = "the commit of the action is not known"
        raise SourcesError("action-not-pinned", what, where=f"{ACTIONS_FILE}: {name}", why=why, hint=hint)
    return f"{name}@{pin.commit} # {pin.tag}"


T = TypeVar("T")


def parsed(text: str, name: str) -> dict[str, Any]:
    """Return the TOML data of a pin file."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise bad_pin_file(name, str(error)) from error


def validated(kind: type[T], data: object, name: str) -> T:
    """Return the data of a pin file as a value of a type."""
    try:
        return from_data(kind, data)
    except pydantic.ValidationError as error:
        raise bad_pin_file(name, first_fault(error)) from error


def bad_pin_file(name: str, why: str) -> SourcesError:
    """Return the diagnostic of what is no pin file."""
    hint = "restore the file, or remove your own and use the one that ortrim ships"
    return SourcesError("bad-pin-file", "is not a valid pin file", where=name, why=why, hint=hint)
