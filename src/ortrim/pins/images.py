"""Pins of images, archives and GitHub's actions, by digest; what is not pinned is known by name and refused."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Final

import pydantic
from pydantic import ConfigDict, Field

from ortrim.errors import SourcesError
from ortrim.pins.runtime import parsed, validated
from ortrim.pins.shipped import shipped_text

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


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=CONFIG)
class _ActionsContent:
    actions: dict[Name, ActionPin] = field(default_factory=dict)


def action_pins() -> Mapping[str, ActionPin]:
    """Return the pins of actions: the user's own, or those that travel with ortrim."""
    return read_action_pins(shipped_text(ACTIONS_FILE))


def read_action_pins(text: str) -> Mapping[str, ActionPin]:
    """Read a file of action pins."""
    return validated(_ActionsContent, parsed(text, ACTIONS_FILE), ACTIONS_FILE).actions


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
