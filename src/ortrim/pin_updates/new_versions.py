"""New versions of ONNX Runtime: found, pinned whole or not at all, built with the demo, indexed, and proposed."""

import hashlib
import itertools
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from ortrim.base.console import Console, counted
from ortrim.base.files import storage_errors, write_atomically
from ortrim.base.http import Mirrors, mirrored
from ortrim.base.json import read_json, to_json
from ortrim.compiling.executor import Executor, finish, require_success
from ortrim.compiling.plan import BuildJob, CompiledUnits
from ortrim.compiling.translation_units import UnitIndex, render_index
from ortrim.errors import BuildError, Diagnostic, DiagnosticGroup, Interrupted, SourcesError, SpecError, StorageError
from ortrim.github.client import GitHub, Release, everything
from ortrim.github.repositories import API, Repository, Service, Site, find_service, find_token, gh
from ortrim.models.full_runtime import FullRuntime, full_runtime, run_script
from ortrim.models.operators import RequiredOperators, render_config
from ortrim.pin_updates.report import Outcome, Refused, Version, compared, versions_markdown
from ortrim.pin_updates.update import converter_text, pin_sources, release_number, with_version
from ortrim.pins.runtime import (
    VERSIONS_FILE,
    VersionLimits,
    exact_version,
    known_version,
    newest_pinned,
    runtime_pins,
    versions_file,
)
from ortrim.pins.shipped import shipped_text, writable_pins_folder
from ortrim.pipeline.building import build, executor_for
from ortrim.planning.planned import planned_for
from ortrim.planning.planner import with_arguments
from ortrim.planning.request import Request
from ortrim.report.table import Table, columns
from ortrim.report.write import JSON_NAME, read_report, step_summary
from ortrim.size.library import differences, differs_in_order_alone, differs_in_what_was_not_written
from ortrim.sources.commits import git
from ortrim.verify.reports import VerifyReport

PATHS: Final = ("src/ortrim/pins",)
"""What is proposed; anything else that lies about is left out. The token of a workflow may not change workflows."""
PIN: Final = re.compile(r"[a-z0-9][a-z0-9._-]*\.toml|requirements/[a-z0-9][a-z0-9._-]*\.txt")
LARGEST: Final = 1 << 20
AUTHOR: Final = (
    *("-c", "user.name=github-actions[bot]"),
    *("-c", "user.email=41898282+github-actions[bot]@users.noreply.github.com"),
)
CREDENTIALS: Final = ("-c", "credential.helper=", "-c", "credential.helper=!gh auth git-credential")
"""git asks `gh` for the token of the environment, so that no command line and no file has it."""
TITLE: Final = "Bring the pins up to date"


def propose(repository: Path, body: str) -> str | None:
    """Commit what changed among the pins to a branch, push it, open a pull request and return its address.

    None when nothing changed, or when the same change was proposed before.
    """
    git(repository, "add", "--", *PATHS)
    change = git(repository, "diff", "--cached", "--", *PATHS)
    if not change:
        return None
    branch = f"pins/{hashlib.sha256(change.encode()).hexdigest()[:12]}"
    if git(repository, *CREDENTIALS, "ls-remote", "--heads", "origin", branch):
        return None
    git(repository, *AUTHOR, "commit", "--quiet", "--message", TITLE, "--", *PATHS)
    git(repository, *CREDENTIALS, "push", "--quiet", "origin", f"HEAD:refs/heads/{branch}")
    with tempfile.TemporaryDirectory(prefix="ortrim-proposal-") as work:
        text = Path(work) / "body.md"
        text.write_text(body, encoding="utf-8")
        return gh("pr", "create", "--head", branch, "--title", TITLE, "--body-file", text).strip()


def take_pins(proposed: Path, repository: Path) -> tuple[Path, ...]:
    """Copy another job's pins in `proposed` over those of the repository, and no code: it ran that of others."""
    (pins,) = PATHS
    source = proposed / pins
    with storage_errors(source):
        if source.resolve() != proposed.resolve() / pins or not source.is_dir():
            raise _strange(source, "there is no such folder")
        found = sorted(path for path in source.rglob("*") if path.is_symlink() or not path.is_dir())
        contents = {path.relative_to(source).as_posix(): _pin(path, source) for path in found}
    if not contents:
        raise _strange(source, "there is none")
    for name, content in contents.items():
        write_atomically(repository / pins / name, content)
    return tuple(repository / pins / name for name in contents)


def _pin(path: Path, source: Path) -> bytes:
    if path.is_symlink() or not path.is_file() or PIN.fullmatch(path.relative_to(source).as_posix()) is None:
        raise _strange(path, "this is not the name of a file with pins, or it is a link")
    with path.open("rb") as file:
        content = file.read(LARGEST + 1)
    try:
        content.decode()
    except UnicodeDecodeError as error:
        raise _strange(path, str(error)) from error
    if len(content) > LARGEST:
        raise _strange(path, "too large")
    return content


def _strange(where: Path, why: str) -> StorageError:
    hint = "check the files of the previous job"
    return StorageError("not-a-pin", "only pins can be proposed", where=str(where), why=why, hint=hint)


RECORD: Final = "versions.json"


@dataclass(frozen=True, kw_only=True)
class VersionsUpdate:
    """The newest version that was pinned before, those that were pinned now, oldest first, and those that were not.

    `unbuilt` says why the demo could not be built with `last`, or with the newest of `pinned`.
    """

    schema: Literal["ortrim-versions/1"] = "ortrim-versions/1"
    last: Version
    pinned: tuple[Version, ...] = ()
    refused: tuple[Refused, ...] = ()
    unbuilt: tuple[Refused, ...] = ()

    @property
    def newest(self) -> str:
        """The newest version that is pinned now."""
        return self.pinned[-1] if self.pinned else self.last


def refused_by(version: str, diagnostic: Diagnostic) -> Refused:
    """Return a refusal in the words of a diagnostic."""
    first = diagnostic.diagnostics[0] if isinstance(diagnostic, DiagnosticGroup) else diagnostic
    why = first.why.strip().splitlines()
    return Refused(version=version, reference=first.code, what=first.what, why=why[-1] if why else "")


def write_update(update: VersionsUpdate, folder: Path) -> Path:
    """Write the record into a folder and return its file."""
    write_atomically(folder / RECORD, to_json(update))
    return folder / RECORD


def read_update(folder: Path) -> VersionsUpdate | None:
    """Read the record in a folder, None when there is none."""
    path = folder / RECORD
    with storage_errors(path):
        if not path.is_file():
            return None
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    what, hint = "is not a record of versions", "run: invoke pins.update --latest"
    return read_json(VersionsUpdate, content, StorageError("record-damaged", what, where=str(path), hint=hint))


LEAST_OPSET: Final = 22
LEAST_ML_OPSET: Final = 5
LEAST_IR_VERSION: Final = 10  # what the oldest version that ortrim knows loads


def model_limits(runtime: FullRuntime) -> VersionLimits:
    """Return the limits of a full runtime."""
    with tempfile.TemporaryDirectory(prefix="ortrim-limits-") as name:
        opset = _highest(LEAST_OPSET, runtime, lambda value: _loads(runtime, Path(name), opset=value))
        ml_opset = _highest(LEAST_ML_OPSET, runtime, lambda value: _loads(runtime, Path(name), ml_opset=value))
        version = _highest(LEAST_IR_VERSION, runtime, lambda value: _loads(runtime, Path(name), ir_version=value))
    return VersionLimits(opset=opset, ml_opset=ml_opset, ir_version=version)


def _highest(least: int, runtime: FullRuntime, loads: Callable[[int], bool]) -> int:
    """Return the number before the first that is refused."""
    tried = itertools.islice(itertools.count(least), 64)
    highest = next((value - 1 for value in tried if not loads(value)), None)
    if highest is None or highest < least:
        what = "loads every model, whatever version it has" if highest is None else "does not load the simplest model"
        raise SourcesError("no-model-limits", what, where=f"ONNX Runtime {runtime.version}")
    return highest


def _loads(
    runtime: FullRuntime,
    folder: Path,
    *,
    opset: int = LEAST_OPSET,
    ml_opset: int = LEAST_ML_OPSET,
    ir_version: int = LEAST_IR_VERSION,
) -> bool:
    model = folder / "model.onnx"
    model.write_bytes(_model(opset, ml_opset, ir_version))
    request = {"do": "load", "model": str(model)}
    return not run_script(runtime, "models.py", request, folder=folder, where=f"opset {opset}")


def _model(opset: int, ml_opset: int, ir_version: int) -> bytes:
    """Return a model that hands over what it gets, stamped as said, whether or not there is such a stamp."""
    from onnx import parser  # noqa: PLC0415 - slow to import

    stamps = f'ir_version: {ir_version}, opset_import: ["": {opset}, "ai.onnx.ml": {ml_opset}]'
    model = parser.parse_model(f"<{stamps}> identity (float[1] x) => (float[1] y) {{ y = Identity(x) }}")
    content: bytes = model.SerializeToString()
    return content


UPSTREAM: Final = Repository(owner="microsoft", name="onnxruntime")


def upstream_client(mirrors: Mirrors) -> GitHub:
    """Return a client of the GitHub that has ONNX Runtime; only github.com itself gets its token."""
    api = mirrored(API, mirrors)
    token = find_token() if (api, find_service()) == (API, Service()) else None
    return GitHub(Site(service=Service(api=api), repository=UPSTREAM), token)


def released_versions(client: GitHub) -> tuple[str, ...]:
    """Return the numbers of all releases that are neither drafts nor pre-releases, oldest first."""
    found = everything(client, f"{client.repository.path}/releases", Release)
    stable = {each.tag_name.removeprefix("v") for each in found if not (each.draft or each.prerelease)}
    return tuple(sorted((each for each in stable if release_number(each)), key=_number))


def pin_new_versions(released: Iterable[str], console: Console, *, mirrors: Mirrors = ()) -> VersionsUpdate:
    """Pin every released version newer than the newest pinned one, completing that; failures are recorded."""
    last = newest_pinned()
    done, refused = [], []
    for version in wanted_versions(released, last):
        with console.step(f"pin ONNX Runtime {version}") as step:
            try:
                pin_version(version, step.note, mirrors)
                done.append(version)
            except (Interrupted, StorageError):
                raise
            except Diagnostic as diagnostic:
                refused.append(refused_by(version, diagnostic))
                step.note(f"not pinned: {diagnostic}")
    newer = tuple(version for version in done if version != last)
    return VersionsUpdate(last=last, pinned=newer, refused=tuple(refused))


def wanted_versions(released: Iterable[str], last: str) -> tuple[str, ...]:
    """Return those of the released versions that are to be pinned, oldest first."""
    known = versions_file()["versions"]
    newer = (version for version in released if release_number(version) and _number(version) >= _number(last))
    whole = (version for version in newer if "known_broken" not in known.get(version, {}))
    return tuple(sorted((version for version in whole if not _is_whole(version)), key=_number))


def pin_version(version: str, announce: Callable[[str], None], mirrors: Mirrors = ()) -> tuple[Path, ...]:
    """Pin the sources of a version, and what else a new one takes; nothing is written before all is found out."""
    if version in versions_file()["versions"]:
        known_version(version)
        return (pin_sources(version, mirrors=mirrors, announce=announce)[0],)
    if release_number(version) is None:
        what, hint = f"{version!r} is no release", "give a number such as 1.24.4"
        raise SpecError("unknown-version", what, where="--version", hint=hint)
    requirements = converter_text(version, announce)
    announce("try which models it loads")
    limits = model_limits(full_runtime(version, requirements))
    file, ndk = pin_sources(version, mirrors=mirrors, announce=announce)
    converter = writable_pins_folder() / "requirements" / f"onnxruntime-{version}.txt"
    write_atomically(converter, requirements)
    written = with_version(shipped_text(VERSIONS_FILE), version, limits, ndk)
    write_atomically(writable_pins_folder() / VERSIONS_FILE, written)
    return (file, converter, writable_pins_folder() / VERSIONS_FILE)


def _is_whole(version: str) -> bool:
    """Whether a version is pinned with the ids of its files, so that an archive of it can be checked, too."""
    commit = runtime_pins(version).commit if version in versions_file()["versions"] else None
    return commit is not None and commit.tree is not None


def _number(version: str) -> tuple[int, ...]:
    number = release_number(version)
    assert number is not None
    return number


NEWEST: Final = "newest"


def build_versions(request: Request, folder: Path, console: Console) -> tuple[VerifyReport, ...]:
    """Build a buildspec with the versions in a folder's record and leave their reports there, the last one's first.

    That a version cannot be built is written into the record and is no error.
    """
    update = read_update(folder)
    if update is None:
        hint = "run: invoke pins.update --latest"
        raise SourcesError("no-record", "there is no list of versions to build", where=str(folder), hint=hint)
    reports, unbuilt = [], []
    for version, name in _to_build(update).items():
        built = _built(replace(request, version=version), console)
        if isinstance(built, Diagnostic):
            unbuilt.append(refused_by(version, built))
            continue
        (report,) = built
        write_atomically(folder / name / JSON_NAME, to_json(report))
        reports.append(report)
    write_update(replace(update, unbuilt=tuple(unbuilt)), folder)
    return tuple(reports)


def _to_build(update: VersionsUpdate) -> dict[str, str]:
    """Return the versions that are compared, each with the name of its folder."""
    return {update.last: "last"} | ({update.newest: NEWEST} if update.newest != update.last else {})


def read_built(update: VersionsUpdate, folder: Path) -> tuple[VerifyReport, ...]:
    """Return the reports that `build_versions` left in a folder, be it interrupted."""
    unbuilt = {each.version for each in update.unbuilt}
    files = (folder / name / JSON_NAME for version, name in _to_build(update).items() if version not in unbuilt)
    return tuple(read_report(file) for file in files if file.is_file())


def build_each(request: Request, versions: Iterable[str], console: Console) -> tuple[Outcome, ...]:
    """Build a buildspec with several versions, each in a folder below the request's; failures stop no other."""
    outcomes: list[Outcome] = []
    error: Diagnostic | None = None
    for version in dict.fromkeys(map(exact_version, versions)):
        built = _built(replace(request, version=version, output=request.output / version), console)
        if isinstance(built, Diagnostic):
            outcomes.append(refused_by(version, built))
            error = built
        else:
            outcomes += built
    if error and all(isinstance(each, Refused) for each in outcomes):
        raise error
    return tuple(outcomes)


def _built(request: Request, console: Console) -> tuple[VerifyReport, ...] | Diagnostic:
    """Return the reports, or what the build ended with if that is the version's fault."""
    try:
        return build(request, console)
    except (Interrupted, StorageError):
        raise
    except Diagnostic as diagnostic:
        console.warn(f"ONNX Runtime {request.version} cannot be built: {diagnostic}")
        return diagnostic


def proposal_body(folder: Path) -> str:
    """Return Markdown about the record and the reports in a folder."""
    update = read_update(folder)
    if update is None:
        return "Nothing was built with these pins.\n"
    return "\n".join((*_sections(update), _results(read_built(update, folder))))


def _results(reports: tuple[VerifyReport, ...]) -> str:
    if len(reports) == 2:
        return versions_markdown(compared(reports))
    if not reports:
        return "There are no results of the demo.\n"
    return f"These are the results of the demo with {reports[0].ort_version}.\n\n{step_summary(reports)}"


def _sections(update: VersionsUpdate) -> Iterator[str]:
    if update.pinned:
        yield f"New versions of ONNX Runtime, pinned by their digests: {', '.join(update.pinned)}.\n"
        yield (
            "Buildspecs keep their versions, and the default version does not change. There is no translation-unit "
            "index for a new version, so building it starts from that of another and compiles more files. To make one, "
            f"run `invoke pins.index --version {update.newest}` on this branch and commit what it writes.\n"
        )
    else:
        yield f"No version of ONNX Runtime after {update.last} was pinned.\n"
    if update.refused:
        yield f"Not pinned:\n\n{_refusals(update.refused)}\n"
    if update.unbuilt:
        versions = " and ".join(each.version for each in update.unbuilt)
        yield f"**The demo could not be built with {versions}:**\n\n{_refusals(update.unbuilt)}\n"


def _refusals(refused: tuple[Refused, ...]) -> str:
    rows = [(each.version, f"`{each.reference}`", each.what, each.why) for each in refused]
    headings = (*columns("text", "version"), *columns("markdown", "reference"), *columns("text", "what", "why"))
    return Table(columns=headings, rows=rows).markdown()


@dataclass(frozen=True, kw_only=True)
class IndexMade:
    """The index as written to `path`, and what it came to for the buildspec that proved it.

    `same_bytes` is false when the two libraries differ in the linker's own tables.
    """

    path: Path
    index: UnitIndex
    units: CompiledUnits
    same_bytes: bool


def make_unit_index(request: Request, console: Console) -> tuple[IndexMade, ...]:
    """Build each target in full, write its index, and check that a pruned library of the buildspec is the same."""
    planned = planned_for(request, console)
    made = []
    for target in planned.plan.targets:
        with console.step(f"index {target.identifier}") as step:
            executor = executor_for(planned, target, request, step)
            everything = with_arguments(
                replace(
                    target.job,
                    operator_config=render_config(RequiredOperators(no_operators_means_all=True)),
                    without_types=(),
                    few_bits=(),
                )
            )
            # All operators with all types: what they need is what any fewer of them can need.
            with executor.on_tree(everything) as selective:
                require_success(everything, selective.compile_all(), executor.log)
                index = selective.index()
            step.note(f"{counted(len(index.units), 'file')}, {counted(len(index.kernels), 'operator')}")
            # With the same arguments, ML operators and all: in the same tree, so that little is compiled again.
            units, same = _proved(executor, replace(everything, operator_config=target.job.operator_config), index)
            path = writable_pins_folder() / "units" / f"{index.variant.stem}.json"
            write_atomically(path, render_index(index))
        made.append(IndexMade(path=path, index=index, units=units, same_bytes=same))
    return tuple(made)


def _proved(executor: Executor, job: BuildJob, index: UnitIndex) -> tuple[CompiledUnits, bool]:
    """Link the job's library from all and from selected units; whether only the linker's own tables differ."""
    library, library_map = (executor.log.parent / name for name in ("unpruned.so", "unpruned.map"))
    with executor.on_tree(job) as selective:
        linked = selective.upstream.paths.build / job.expected_outputs[0]
        linked_map = selective.upstream.paths.link_map
        require_success(job, selective.compile_all(), executor.log)
        finish(job, selective.upstream.paths)
        executor.inputs.finish(job, selective.upstream.paths)
        library.write_bytes(linked.read_bytes())
        library_map.write_bytes(linked_map.read_bytes() if linked_map.is_file() else b"")
        outcome, units = selective.compile_selected(index, every_kernel=True)
        require_success(job, outcome, executor.log)
        finish(job, selective.upstream.paths)
        executor.inputs.finish(job, selective.upstream.paths)
        found = differences(library, linked)
        passes = (
            not found
            or (linked_map.is_file() and differs_in_order_alone(found, library_map, linked_map))
            or differs_in_what_was_not_written(found, library, linked)
        )
    if units is None or not passes:
        what = "the library of the selected files differs from that of all files"
        why = "\n".join(found) or "the selected files do not link"
        raise BuildError("pruning-differs", what, where=job.target.identifier, why=why, hint=f"compare {library}")
    library.unlink()
    library_map.unlink()
    return units, not found
