"""Filling in the pins of images: digests of base images, and of the archives of Google's SDK."""

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ortrim.pins.images import IMAGES_FILE, ImagePins, read_image_pins
from ortrim.pins.shipped import pin_text, writable_pins_folder
from ortrim.sources.android_sdk import LIST, REPOSITORY, listed_archive
from ortrim.sources.mirrored import Mirrors, mirrored
from ortrim.storage.downloads import fetch
from ortrim.storage.files import sha256_of, write_atomically
from ortrim.tools.containers_choice import UsableEngine
from ortrim.tools.containers_images import pulled_digest

TABLE: Final = re.compile(r'^\[(?P<kind>bases|archives)\."?(?P<name>[^"\]]+)"?\]')
FILLED: Final = re.compile(r"^(digest|file|sha256)\s*=")
Values = dict[tuple[str, str], tuple[str, ...]]


def update_image_pins(
    usable: UsableEngine,
    *,
    mirrors: Mirrors = (),
    destination: Path | None = None,
    announce: Callable[[str], None] = lambda _: None,
) -> Path:
    """Fetch every image and archive that is named, and write their digests beside their names.

    Each archive must have the SHA-1 of Google's list. `mirrors` are as for `update_pins`, and are for the archives;
    images come from where the engine gets them. Nothing is written before all of it was checked. Returns the file
    written, in `destination` or else where ortrim reads it. Raises `SourcesError`, `NetworkError`, `StorageError` or
    `ToolError`.
    """
    text = pin_text(IMAGES_FILE)
    assert text is not None
    pins = read_image_pins(text)
    values = _digests(usable, pins, announce) | _archives(pins, mirrors, announce)
    written = with_values(text, values)
    read_image_pins(written)
    path = (destination or writable_pins_folder()) / IMAGES_FILE
    write_atomically(path, written)
    return path


def with_values(text: str, values: Values) -> str:
    """Return a pin file with other digests: the lines of each (kind, name) take the place of those that were there."""
    lines: list[str] = []
    for line in text.splitlines():
        if not FILLED.match(line):
            lines.append(line)
        if found := TABLE.match(line):
            lines += values.get((found["kind"], found["name"]), ())
    return "\n".join(lines) + "\n"


def _digests(usable: UsableEngine, pins: ImagePins, announce: Callable[[str], None]) -> Values:
    values: Values = {}
    for name, base in pins.bases.items():
        announce(f"pull {base.reference}")
        values["bases", name] = (f'digest = "{pulled_digest(usable, base.reference)}"',)
    return values


def _archives(pins: ImagePins, mirrors: Mirrors, announce: Callable[[str], None]) -> Values:
    values: Values = {}
    with tempfile.TemporaryDirectory(prefix="ortrim-pins-") as folder:
        listing = Path(folder) / "list.xml"
        announce(f"fetch {LIST}")
        fetch(mirrored(LIST, mirrors), listing, "sha256", None)
        for package in pins.archives:
            listed = listed_archive(listing.read_bytes(), package)
            url = f"{REPOSITORY}/{listed.file}"
            announce(f"fetch {url}")
            fetch(mirrored(url, mirrors), Path(folder) / listed.file, "sha1", listed.sha1)
            sha256 = sha256_of(Path(folder) / listed.file)
            values["archives", package] = (f'file = "{listed.file}"', f'sha256 = "{sha256}"')
    return values
