"""Google's list of Android SDK packages: which file of which version, with which SHA-1."""

from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat

from ortrim.errors import SourcesError

REPOSITORY: Final = "https://dl.google.com/android/repository"
"""Where Google publishes the SDK's packages."""
LIST: Final = f"{REPOSITORY}/repository2-3.xml"
"""What sdkmanager itself reads."""
HOST: Final = "linux"


@dataclass(frozen=True, kw_only=True)
class ListedArchive:
    """An archive as Google lists it: its file, beside the list, and its SHA-1."""

    file: str
    sha1: str


@dataclass(kw_only=True)
class _Reading:
    """Where in the list a parser is, and what it has found there."""

    package: str
    inside: bool = False
    text: str = ""
    entry: dict[str, str] = field(default_factory=dict)
    found: dict[str, str] = field(default_factory=dict)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.text = ""
        if name == "remotePackage":
            self.inside = attributes.get("path") == self.package
        elif name == "archive":
            self.entry = {}

    def characters(self, text: str) -> None:
        self.text += text

    def end(self, name: str) -> None:
        if name in {"url", "checksum", "host-os"}:
            self.entry[name] = self.text.strip()
        elif name == "archive" and self.inside and self.entry.get("host-os", HOST) == HOST:
            self.found = self.entry


def listed_archive(listing: bytes, package: str) -> ListedArchive:
    """Return the archive for Linux of a package (`ndk;27.2.12479018`) in the text of the list.

    Raises `SourcesError` (`bad-sdk-list`, `not-in-sdk-list`).
    """
    reading = _Reading(package=package)
    parser = expat.ParserCreate()
    parser.StartElementHandler = reading.start
    parser.EndElementHandler = reading.end
    parser.CharacterDataHandler = reading.characters
    parser.EntityDeclHandler = _refuse
    try:
        parser.Parse(listing, True)  # noqa: FBT003 - it takes no keywords
    except (expat.ExpatError, ValueError) as error:
        raise SourcesError(
            "bad-sdk-list", "is not Google's list of SDK packages", where=LIST, why=str(error)
        ) from error
    file, sha1 = reading.found.get("url", ""), reading.found.get("checksum", "").lower()
    if not file or "/" in file or len(sha1) != 40:
        hint = "see what there is: sdkmanager --list"
        raise SourcesError("not-in-sdk-list", f"has no {package} for Linux", where=LIST, hint=hint)
    return ListedArchive(file=file, sha1=sha1)


def _refuse(*_: object) -> None:
    """Refuse a list that declares entities, with which a few bytes can become very many."""
    raise ValueError("it declares entities")
