"""Releases on GitHub: a draft of everything that was delivered, published only as a step of its own."""

import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Final

from ortrim.core.delivery import FACTS
from ortrim.core.sums import SUMS
from ortrim.errors import NetworkError, PackageError, UsageError
from ortrim.storage.files import storage_errors
from ortrim.storage.sums import check_listed
from ortrim.tools.github_cli import gh

TAG: Final = re.compile(r"v[0-9]+(\.[0-9]+){1,3}([.-]?(rc|a|b|alpha|beta|dev)\.?[0-9]+)?")
HEADING: Final = re.compile(r"^## +(?P<version>\S+).*$", re.MULTILINE)
MOST_ASSETS: Final = 1000
"""What GitHub takes for one release."""
MOST_RELEASES: Final = 1000
"""How many of the newest releases are looked through for a draft."""


def draft_release(tag: str, deliveries: Path, changelog: Path) -> tuple[str, ...]:
    """Make a draft of a release with the files at the top of each folder in `deliveries`, and return their names.

    An earlier draft is replaced. Every file is held against its delivery's `SHA256SUMS` first; the draft has one for
    all. What lies deeper is in the archives, too; what a delivery says of itself, the tag says. Raises `UsageError`
    `bad-tag`, `PackageError` (`nothing-delivered`, `name-twice`, `no-notes`), `NetworkError` `not-a-draft` when it is
    published already, and as `check_listed` and `gh` do.
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
        _remove_drafts(tag)
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
    _require_draft(tag, is_draft=release["isDraft"])
    if SUMS not in names or len(names) == 1:
        raise PackageError("nothing-drafted", f"the draft has no files, or no {SUMS}", where=tag, hint="draft it again")
    gh("release", "edit", tag, "--draft=false")
    return names


def _remove_drafts(tag: str) -> None:
    """Remove what an earlier attempt left: GitHub takes several drafts of one tag, or none beside the first."""
    listed = json.loads(gh("release", "list", "--json", "tagName,isDraft", "--limit", str(MOST_RELEASES)))
    own = [release for release in listed if release["tagName"] == tag]
    for release in own:
        _require_draft(tag, is_draft=release["isDraft"])
    for _ in own:
        gh("release", "delete", tag, "--yes")


def _require_draft(tag: str, *, is_draft: bool) -> None:
    if not is_draft:
        what, hint = "is published already", "make a new tag; nothing that is published is changed"
        raise NetworkError("not-a-draft", what, where=tag, hint=hint)


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
        for path, digest in _listed(sums.parent):
            if path.name in found:
                raise PackageError("name-twice", "two deliveries have a file of this name", where=path.name)
            found[path.name] = (path, digest)
    if not found or len(found) >= MOST_ASSETS:
        what = f"{len(found)} files are to be released; there have to be some, and fewer than {MOST_ASSETS}"
        raise PackageError("nothing-delivered", what, where=str(deliveries), hint="see the jobs that deliver")
    return found


def _listed(delivery: Path) -> list[tuple[Path, str]]:
    """Return the files at the top of a delivery with their digests, each held against it."""
    listed = check_listed(delivery, "delivery", str(delivery))
    return [(delivery / path, digest) for path, digest in listed.items() if "/" not in path and path != FACTS]


def _require_tag(tag: str) -> None:
    if not TAG.fullmatch(tag):
        raise UsageError("bad-tag", f"{tag!r} is not the tag of a version", where="--tag", hint="such as v1.2.0")
