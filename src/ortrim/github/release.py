"""Releases on GitHub: a draft of every delivery that passed, published only as a step of its own."""

import json
import re
import shutil
import tempfile
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from ortrim.base.checksums import SUMS, check_listed
from ortrim.base.files import sha256_of, storage_errors
from ortrim.buildspec.load import load_spec
from ortrim.buildspec.targets import TARGETS
from ortrim.errors import NetworkError, PackageError, UsageError
from ortrim.github.repositories import gh
from ortrim.package.manifest import ATTESTED, FACTS, FAILED, FOLDERS, PREFIX
from ortrim.planning.planner import select_targets
from ortrim.platforms import by_platform, target_problems
from ortrim.report.table import Table, columns

TAG: Final = re.compile(r"v[0-9]+(\.[0-9]+){1,3}([.-]?(rc|a|b|alpha|beta|dev)\.?[0-9]+)?")
HEADING: Final = re.compile(r"^## +(?P<version>\S+).*$", re.MULTILINE)
MOST_ASSETS: Final = 1000
"""What GitHub takes for one release."""
MOST_RELEASES: Final = 1000
"""How many of the newest releases are looked through for a draft."""
NOTHING: Final = "its jobs left nothing"
LATER: Final = "A published release is not changed. What is left out comes with a later version."
UNATTESTED: Final = "yes, but its attestation failed"
NOT_ATTESTED: Final = (
    "Not attested: the repository is private, for which attestations are part of GitHub Enterprise Cloud alone."
)


def require_signed(tag: str, version: str) -> None:
    """Refuse a tag that is not the one of `version`, or that no key has signed which GitHub knows as the tagger's."""
    _require_tag(tag)
    if tag != f"v{version}":
        what, hint = f"the project's version is {version}", f"tag v{version}, or change the version in pyproject.toml"
        raise UsageError("bad-tag", what, where=tag, hint=hint)
    of_repository = "repos/{owner}/{repo}/git"  # filled in by gh
    named = json.loads(gh("api", f"{of_repository}/ref/tags/{tag}"))["object"]
    if named["type"] == "tag":
        verification = json.loads(gh("api", f"{of_repository}/tags/{named['sha']}"))["verification"]
    else:
        verification = {"verified": False, "reason": "it is not annotated"}
    if not verification["verified"]:
        hint = "sign it with a key that your account on GitHub has: git tag --sign"
        raise UsageError("tag-not-signed", "is not signed", where=tag, why=verification["reason"], hint=hint)


def draft_release(
    tag: str, deliveries: Path, changelog: Path, *, expected: Iterable[str] = (), attested: bool = True
) -> tuple[str, ...]:
    """Make a draft of a release with all files of each delivery that passed, and return the names of its files.

    The notes say which of the folders in `deliveries`, and of the `expected` names of such, are left out and why. If
    deliveries are `attested`, they say of which that failed: it has no folder beside it, with `attested-` before its
    name, that has the same `SHA256SUMS`; otherwise, that none is. A release has no folders: what lies in those of a
    delivery goes into one archive, since hundreds of single files are more than GitHub takes at once. An earlier draft
    is replaced. Every file is compared with its delivery's `SHA256SUMS` first; the draft has one for all, and each
    archive one of its own. What a delivery says of itself, the tag says.
    """
    _require_tag(tag)
    folders = sorted(sums.parent for sums in deliveries.glob(f"*/{SUMS}") if not sums.parent.name.startswith(ATTESTED))
    found = {folder: check_listed(folder, "delivery", str(folder)) for folder in folders}
    outcomes = dict.fromkeys(expected, NOTHING) | {folder.name: _failure_of(folder) for folder in found}
    passed = {folder: listed for folder, listed in found.items() if not outcomes[folder.name]}
    unattested = {folder.name for folder in passed if attested and not _is_attested(folder)}
    notes = notes_of(tag, changelog) + _contents(outcomes, unattested, attested=attested)
    with tempfile.TemporaryDirectory(prefix="ortrim-release-") as work:
        assets = _fill(Path(work), passed)
        if not assets or len(assets) >= MOST_ASSETS:
            what = f"{len(assets)} files are to be released; there have to be some, and fewer than {MOST_ASSETS}"
            why, hint = "\n".join(_left_out(outcomes)), "see the jobs that deliver"
            raise PackageError("nothing-delivered", what, where=str(deliveries), why=why, hint=hint)
        (Path(work) / SUMS).write_text(
            "".join(f"{assets[name]}  {name}\n" for name in sorted(assets)), encoding="utf-8"
        )
        text = Path(work) / ".notes.md"
        text.write_text(notes, encoding="utf-8")
        files = sorted(path for path in Path(work).iterdir() if path != text)
        _remove_drafts(tag)
        gh("release", "create", tag, "--draft", "--verify-tag", "--title", tag, "--notes-file", text, *files)
    return (*sorted(assets), SUMS)


def publish_release(tag: str) -> tuple[str, ...]:
    """Publish the draft of a tag and return the names of its files."""
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
        what, hint = "is published already", "make a new tag; a published release is not changed"
        raise NetworkError("not-a-draft", what, where=tag, hint=hint)


def notes_of(tag: str, changelog: Path) -> str:
    """Return what a changelog says of a tag's version, up to the first heading below it if words come before that."""
    with storage_errors(changelog):
        text = changelog.read_text(encoding="utf-8")
    found = list(HEADING.finditer(text))
    for heading, following in zip(found, [*found[1:], None], strict=True):
        if heading["version"] == tag.removeprefix("v"):
            section = text[heading.end() : following.start() if following else None].strip()
            if section:
                return (section.partition("\n### ")[0].strip() if section[0] != "#" else section) + "\n"
    hint = f"add a heading: ## {tag.removeprefix('v')}"
    raise PackageError("no-notes", f"says nothing of {tag}", where=str(changelog), hint=hint)


def expected_deliveries(specs: Iterable[Path]) -> tuple[str, ...]:
    """Return the names of the deliveries that all targets of buildspecs come to."""
    names = []
    for spec in (load_spec(path, target_problems) for path in specs):
        identifiers = (target.id for target in select_targets(spec, "*", None))
        for platform, own in by_platform(identifiers, TARGETS.__getitem__):
            packages = (platform.NAME,) if platform.SDK and own else own
            names += [f"{PREFIX}{spec.name}-{package}" for package in packages]
    return tuple(names)


def _failure_of(delivery: Path) -> str:
    """Return the code of the error that keeps a delivery out, empty for one that passed."""
    file = delivery / FAILED
    return file.read_text(encoding="utf-8").strip() if file.is_file() else ""


def _is_attested(delivery: Path) -> bool:
    mark = delivery.with_name(f"{ATTESTED}{delivery.name}") / SUMS
    return mark.is_file() and mark.read_bytes() == (delivery / SUMS).read_bytes()


def _left_out(outcomes: Mapping[str, str]) -> Iterator[str]:
    yield from (f"{name.removeprefix(PREFIX)}: {why}" for name, why in sorted(outcomes.items()) if why)


def _contents(outcomes: Mapping[str, str], unattested: Collection[str], *, attested: bool) -> str:
    """Return Markdown that says which deliveries are in a release, and why others are not."""
    states = {name: UNATTESTED if name in unattested else "yes" for name in outcomes}
    states |= {name: f"no: {why}" for name, why in outcomes.items() if why}
    rows = [(name.removeprefix(PREFIX), state) for name, state in sorted(states.items())]
    parts = [Table(columns=columns("text", "package", "in this release"), rows=rows).markdown()]
    parts += [LATER] * any(outcomes.values()) + [NOT_ATTESTED] * (not attested)
    return "".join(f"\n{part}\n" for part in parts)


def _fill(work: Path, deliveries: Mapping[Path, dict[str, str]]) -> dict[str, str]:
    """Lay out the files of a release, and return the digest of each."""
    made: dict[str, str] = {}
    taken = {SUMS.lower()}
    for delivery, listed in deliveries.items():
        inner = {path: digest for path, digest in listed.items() if "/" in path}
        archive = f"ortrim-{delivery.name.removeprefix(PREFIX)}{FOLDERS}"
        names = [path for path in listed if path not in {FACTS, *inner}] + [archive] * bool(inner)
        for name in names:
            if name.lower() in taken:  # not all file systems tell capitals from small letters
                raise PackageError("name-twice", "two deliveries have a file of this name", where=name)
            taken.add(name.lower())
            if name == archive:
                _write_folders(work / archive, delivery, inner)
            else:
                shutil.copyfile(delivery / name, work / name)
            made[name] = listed.get(name) or sha256_of(work / name)
    return made


def _write_folders(archive: Path, delivery: Path, inner: dict[str, str]) -> None:
    """Write what lies in folders of a delivery, and `SHA256SUMS` of that; the same files give the same bytes."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(inner):
            file.writestr(zipfile.ZipInfo(path), (delivery / path).read_bytes(), zipfile.ZIP_DEFLATED)
        sums = "".join(f"{inner[path]}  {path}\n" for path in sorted(inner))
        file.writestr(zipfile.ZipInfo(SUMS), sums, zipfile.ZIP_DEFLATED)


def _require_tag(tag: str) -> None:
    if not TAG.fullmatch(tag):
        raise UsageError("bad-tag", f"{tag!r} is not the tag of a version", where="--tag", hint="such as v1.2.0")
