"""Releases on GitHub: a draft of everything that was delivered, published only as a step of its own."""

import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Final

from ortrim.errors import NetworkError, PackageError, UsageError
from ortrim.storage.files import sha256_of, storage_errors
from ortrim.tools.github_cli import gh

TAG: Final = re.compile(r"v[0-9]+(\.[0-9]+){1,3}([.-]?(rc|a|b|alpha|beta|dev)\.?[0-9]+)?")
SUMS: Final = "SHA256SUMS"
LINE: Final = re.compile(r"([0-9a-f]{64})  ([^/\s][^\s]*)")
HEADING: Final = re.compile(r"^## +(?P<version>\S+).*$", re.MULTILINE)
MOST_ASSETS: Final = 1000
"""What GitHub takes for one release."""


def draft_release(tag: str, deliveries: Path, changelog: Path) -> tuple[str, ...]:
    """Make a draft of a release with the files at the top of each folder in `deliveries`, and return their names.

    Every file is held against its delivery's `SHA256SUMS` first; the draft has one for all. What lies deeper is in the
    archives, too. Raises `UsageError` `bad-tag`, `PackageError` (`nothing-delivered`, `delivery-damaged`,
    `name-twice`, `no-notes`), and as `gh` does.
    """
    _require_tag(tag)
    notes = notes_of(tag, changelog)
    assets = _assets(deliveries)
    with tempfile.TemporaryDirectory(prefix="ortrim-release-") as work:
        for name, (path, _) in assets.items():
            shutil.copyfile(path, Path(work) / name)
        (Path(work) / SUMS).write_text("".join(f"{digest}  {name}\n" for name, (_, digest) in sorted(assets.items())))
        text = Path(work) / ".notes.md"
        text.write_text(notes, encoding="utf-8")
        files = sorted(path for path in Path(work).iterdir() if path != text)
        gh("release", "create", tag, "--draft", "--verify-tag", "--title", tag, "--notes-file", text, *files)
    return (*sorted(assets), SUMS)


def publish_release(tag: str) -> tuple[str, ...]:
    """Publish the draft of a tag and return the names of its files.

    Raises `UsageError` `bad-tag`, `PackageError` `nothing-drafted` for a release without files or without sums,
    `NetworkError` `not-a-draft` for one that everybody has seen, and as `gh` does.
    """
    _require_tag(tag)
    release = json.loads(gh("release", "view", tag, "--json", "isDraft,assets"))
    names = tuple(sorted(str(asset["name"]) for asset in release["assets"]))
    if not release["isDraft"]:
        what, hint = "is published already", "make a new tag; nothing that is published is changed"
        raise NetworkError("not-a-draft", what, where=tag, hint=hint)
    if SUMS not in names or len(names) == 1:
        raise PackageError("nothing-drafted", f"the draft has no files, or no {SUMS}", where=tag, hint="draft it again")
    gh("release", "edit", tag, "--draft=false")
    return names


def notes_of(tag: str, changelog: Path) -> str:
    """Return what a changelog says of a tag's version, without the heading. Raises `PackageError` `no-notes`."""
    with storage_errors(changelog):
        text = changelog.read_text(encoding="utf-8")
    found = list(HEADING.finditer(text))
    for heading, following in zip(found, [*found[1:], None], strict=True):
        if heading["version"] == tag.removeprefix("v"):
            notes = text[heading.end() : following.start() if following else None].strip()
            if notes:
                return notes + "\n"
    hint = f"add a heading: ## {tag.removeprefix('v')}"
    raise PackageError("no-notes", f"says nothing of {tag}", where=str(changelog), hint=hint)


def _assets(deliveries: Path) -> dict[str, tuple[Path, str]]:
    found: dict[str, tuple[Path, str]] = {}
    for sums in sorted(deliveries.glob(f"*/{SUMS}")):
        for path, digest in _listed(sums):
            if path.name in found:
                raise PackageError("name-twice", "two deliveries have a file of this name", where=path.name)
            found[path.name] = (path, digest)
    if not found or len(found) >= MOST_ASSETS:
        what = f"{len(found)} files are to be released; there have to be some, and fewer than {MOST_ASSETS}"
        raise PackageError("nothing-delivered", what, where=str(deliveries), hint="see the jobs that deliver")
    return found


def _listed(sums: Path) -> list[tuple[Path, str]]:
    """Return the files at the top of a delivery with their digests, each held against it."""
    listed = []
    with storage_errors(sums):
        for line in sums.read_text(encoding="utf-8").splitlines():
            match = LINE.fullmatch(line)
            if match is None or ".." in Path(match[2]).parts:
                raise _damaged(sums, f"not a digest and a path: {line[:100]!r}")
            path = sums.parent / match[2]
            if not path.is_file() or path.is_symlink() or sha256_of(path) != match[1]:
                raise _damaged(path, "it is not there, or not what was delivered")
            if path.parent == sums.parent:
                listed.append((path, match[1]))
    return listed


def _damaged(where: Path, why: str) -> PackageError:
    hint = "run the jobs that deliver again"
    return PackageError("delivery-damaged", "a delivery is damaged", where=str(where), why=why, hint=hint)


def _require_tag(tag: str) -> None:
    if not TAG.fullmatch(tag):
        raise UsageError("bad-tag", f"{tag!r} is not the tag of a version", where="--tag", hint="such as v1.2.0")
