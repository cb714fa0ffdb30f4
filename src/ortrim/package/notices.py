"""Licences of what is inside a package, in the two files that lawyers look for."""

from pathlib import Path
from typing import Final

from ortrim.package.inputs import ComponentLicence

RULE: Final = "_" * 100


def notices_text(upstream: Path, licences: tuple[ComponentLicence, ...]) -> bytes:
    """Return upstream's third-party notices, then the licence of each component that is compiled in, by name."""
    ordered = sorted(licences, key=lambda licence: (licence.component.lower(), licence.identifier, licence.path.name))
    sections = [f"{RULE}\n\n{each.component} ({each.identifier})\n\n{_text(each.path)}" for each in ordered]
    return "\n".join([_text(upstream), *sections]).encode()


def plain_text(path: Path) -> bytes:
    """Return a text with Unix line ends and as UTF-8, whatever it was."""
    return _text(path).encode()


def _text(path: Path) -> str:
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")  # never fails; old licence files are Latin-1 when they are not UTF-8
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n") + "\n"
