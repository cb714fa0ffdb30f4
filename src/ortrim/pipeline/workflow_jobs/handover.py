"""What a run hands over: packages, proof and sums of each delivery, in one folder under names that are their own."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ortrim.core.apple import XCFRAMEWORK
from ortrim.core.delivery import FACTS, DeliveryFacts
from ortrim.core.plan import PlannedTarget
from ortrim.core.serialization import to_json
from ortrim.core.sums import SUMS, FileEntry, sums_text
from ortrim.errors import SourcesError, StorageError, ToolError
from ortrim.pipeline.packaging.packages import Group, groups
from ortrim.pipeline.planned import Planned, target_folder
from ortrim.sources.git import git
from ortrim.storage.files import sha256_of, storage_errors, write_atomically

PROOF: Final = ("manifest.json", "sbom.cdx.json")
REPORTS: Final = ("report.json", "report.md", "report.html")


def checked_out_commit(folder: Path) -> str:
    """Return the commit that a folder is checked out at, empty outside of a repository and without git."""
    try:
        return git(folder, "rev-parse", "--verify", "--quiet", "HEAD").strip()
    except (SourcesError, ToolError):
        return ""


def hand_over(planned: Planned, destination: Path, commit: str) -> tuple[Path, ...]:
    """Copy packages, manifests, bills of materials and reports of a plan into a new folder, and return its files.

    `build.json` says which `commit` they were made of, empty where nobody knows. Raises `StorageError`
    (`path-in-the-way` for a folder that holds something already).
    """
    with storage_errors(destination):
        destination.mkdir(parents=True, exist_ok=True)
        if any(destination.iterdir()):
            what, hint = "already holds something", "remove it, or name another folder"
            raise StorageError("path-in-the-way", what, where=str(destination), hint=hint)
        for group in groups(planned.plan):
            for source, name in _files(planned, group):
                (destination / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, destination / name)
        write_atomically(destination / FACTS, to_json(DeliveryFacts(commit=commit)))
    return with_sums(destination)


def add_reports(planned: Planned, destination: Path, mark: str) -> tuple[Path, ...]:
    """Add the reports of a further verification to a folder that `hand_over` made, their names ending in `mark`."""
    with storage_errors(destination):
        for target in planned.plan.targets:
            for source, name in _reports(target_folder(planned, target), f"{_named(planned, target)}-{mark}"):
                shutil.copyfile(source, destination / name)
    return with_sums(destination)


def with_sums(folder: Path) -> tuple[Path, ...]:
    """Write `SHA256SUMS` of all that lies in a folder, and return its files, that one last."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / SUMS)
    entries = (
        FileEntry(path=path.relative_to(folder).as_posix(), size_bytes=path.stat().st_size, sha256=sha256_of(path))
        for path in files
    )
    write_atomically(folder / SUMS, sums_text(entries))
    return (*files, folder / SUMS)


def _files(planned: Planned, group: Group) -> Iterator[tuple[Path, str]]:
    """Yield each file of a group's package and reports with the path that it gets."""
    for target in group.targets:
        yield from _reports(target_folder(planned, target), _named(planned, target))
    if group.assembly is None:
        yield from _own_package(target_folder(planned, group.targets[0]))
    else:
        yield from _assembled(planned.folder / group.assembly.identifier)


def _reports(folder: Path, name: str) -> Iterator[tuple[Path, str]]:
    for report in REPORTS:
        yield folder / report, f"{name}.{report}"


def _own_package(folder: Path) -> Iterator[tuple[Path, str]]:
    for archive in sorted(folder.glob("*.tar.gz")):
        name = archive.name.removesuffix(".tar.gz")
        yield archive, archive.name
        for proof in PROOF:
            yield folder / name / proof, f"{name}.{proof}"


def _assembled(folder: Path) -> Iterator[tuple[Path, str]]:
    for package in sorted(path for path in folder.iterdir() if path.is_dir()):
        for file in sorted(path for path in package.rglob("*") if path.is_file() and path != package / SUMS):
            inside = file.relative_to(package).as_posix()
            is_own = "/" in inside or inside.startswith(package.name)
            yield file, inside if is_own else f"{package.name}.{inside}"
            if inside.endswith(XCFRAMEWORK):  # Swift's package manager fetches it by an address of its own
                yield file, f"{package.name}{XCFRAMEWORK}"


def _named(planned: Planned, target: PlannedTarget) -> str:
    return f"ortrim-{planned.plan.spec_name}-{target.job.target.identifier}-{planned.plan.ort_version}"
