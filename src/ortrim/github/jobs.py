"""A build that is spread over the jobs of a workflow: planned once, compiled for each target, verified, delivered."""

import shutil
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from ortrim.base.checksums import SUMS, FileEntry, checksums_text
from ortrim.base.command import last_lines, run
from ortrim.base.console import Console
from ortrim.base.files import sha256_of, storage_errors, write_atomically
from ortrim.base.json import to_json
from ortrim.binaries.apple import XCFRAMEWORK
from ortrim.buildspec.buildspec import RuntimeSpec
from ortrim.buildspec.targets import TARGETS, Target
from ortrim.compiling.plan import BuildPlan, PlannedTarget
from ortrim.devices import kinds
from ortrim.devices.harness_projects import COMMANDS, HARNESS
from ortrim.errors import PlanError, SourcesError, StorageError, ToolError, UsageError, VerifyError
from ortrim.github import plan_input
from ortrim.github.workflow_files import WorkflowInputs
from ortrim.package.manifest import FACTS, FAILED, DeliveryFacts
from ortrim.pins.runtime import runtime_pins
from ortrim.pipeline.building import PackageGroup, build, groups, native_executor, verify_again
from ortrim.pipeline.history import check_reports, regression_of
from ortrim.pipeline.transfer import export_compiled, import_compiled
from ortrim.planning.planned import Planned, planned_for, target_folder
from ortrim.planning.request import Request
from ortrim.platforms import Platform, platform_of
from ortrim.sources.commits import git
from ortrim.verify.failures import gravest_failure
from ortrim.verify.reports import VerifyReport

LOGS: Final = "logs"


def _compile(target: PlannedTarget, sources: Path, destination: Path, console: Console) -> Path:
    identifier = target.identifier
    with console.step(f"compile {identifier}") as step:
        platform = platform_of(target.job.target)
        executor = native_executor(sources, destination / LOGS / f"{identifier}.log", step, platform)
        result = executor.run(target.job)
        executor.run_runner(target.runner)
        platform.compile_beside(target.job, result, executor)
        archive = export_compiled(target, destination)
        step.note(f"{archive}: {archive.stat().st_size:,} bytes")
        return archive


PROOF: Final = ("manifest.json", "sbom.cdx.json")
REPORTS: Final = ("report.json", "report.md", "report.html")


def checked_out_commit(folder: Path) -> str:
    """Return the commit that a folder is checked out at, empty outside of a repository and without git."""
    try:
        return git(folder, "rev-parse", "--verify", "--quiet", "HEAD").strip()
    except (SourcesError, ToolError):
        return ""


def hand_over(planned: Planned, destination: Path, commit: str, failure: str = "") -> tuple[Path, ...]:
    """Copy packages, manifests, bills of materials and reports of a plan into a new folder, and return its files.

    `build.json` says which `commit` they were made of, empty where nobody knows. `failure` is as for `mark_delivery`.
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
    return mark_delivery(destination, failure)


def mark_delivery(folder: Path, failure: str) -> tuple[Path, ...]:
    """Write into a delivery the code of the error that keeps it out of releases, none for one that passed.

    Returns its files as `with_sums` does. Raises `StorageError`.
    """
    with storage_errors(folder):
        (folder / FAILED).unlink(missing_ok=True)
    if failure:
        write_atomically(folder / FAILED, f"{failure}\n")
    return with_sums(folder)


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
    write_atomically(folder / SUMS, checksums_text(entries))
    return (*files, folder / SUMS)


def _files(planned: Planned, group: PackageGroup) -> Iterator[tuple[Path, str]]:
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
        for proof in PROOF if (folder / name).is_dir() else ():  # an archive of symbols has no folder
            yield folder / name / proof, f"{name}.{proof}"
    for wheel in sorted(folder.glob("*.whl")):
        yield wheel, f"wheel/{wheel.name}"


def _assembled(folder: Path) -> Iterator[tuple[Path, str]]:
    for package in sorted(path for path in folder.iterdir() if path.is_dir()):
        for file in sorted(path for path in package.rglob("*") if path.is_file() and path != package / SUMS):
            inside = file.relative_to(package).as_posix()
            is_own = "/" in inside or inside.startswith(package.name)
            yield file, inside if is_own else f"{package.name}.{inside}"
            if inside.endswith(XCFRAMEWORK):  # Swift's package manager fetches it by an address of its own
                yield file, f"{package.name}{XCFRAMEWORK}"


def _named(planned: Planned, target: PlannedTarget) -> str:
    return f"ortrim-{planned.plan.spec_name}-{target.identifier}-{planned.plan.ort_version}"


PLAN_VARIABLE: Final = "ORTRIM_PLAN"
ON_PHONE: Final = "android-x86_64"
"""The only ABI for which a runner of GitHub's can emulate a phone with its own processor."""
MARK: Final = "on-emulator"
UNFINISHED: Final = "not-verified"
"""Stands in a delivery until everything was checked, so that a job that ends before releases nothing."""


def plan_run(inputs: WorkflowInputs, console: Console) -> tuple[BuildPlan, str]:
    """Return the plan of a run and the text from which its jobs make it again: what came along, or its buildspec's."""
    if inputs.plan:
        return plan_input.plan_again(inputs.plan, console)[0], inputs.plan
    planned = planned_for(_request(inputs, inputs.target), console)
    return planned.plan, plan_input.encode(
        planned.given, plan_input.remote_payload(planned.plan, planned.plan.targets), plan_input.MOST_OUTPUT_CHARACTERS
    )


def compile_planned(text: str, identifiers: str, destination: Path, console: Console) -> tuple[Path, ...]:
    """Compile targets of an encoded plan and leave an archive of each in `destination`; no model is needed.

    What a package needs beside the library comes along, so that whoever packages it needs no SDK either.
    """
    plan, tree = plan_input.plan_again(text, console)
    known = {target.identifier: target for target in plan.targets}
    wanted = _wanted(known, identifiers)
    return tuple(_compile(known[each], tree.folder, destination, console) for each in wanted)


def deliver_compiled(
    inputs: WorkflowInputs, identifiers: str, source: Path, destination: Path, console: Console
) -> tuple[VerifyReport, ...]:
    """Package and verify targets that the archives in `source` hold compiled, and hand all over in `destination`.

    An Android package's x86-64 library is verified a second time on the phone that `adb` knows. A delivery that did not
    pass, or that is worse than the accepted build, says so. Raises what importing, packaging and verifying raise.
    """
    request = _request(inputs, identifiers)
    planned = planned_for(request, console, to_run=True)
    import_compiled(planned.plan.targets, source)
    reports = build(request, console, planned)
    hand_over(planned, destination, checked_out_commit(Path()), UNFINISHED)
    if ON_PHONE in identifiers.split(","):
        on_phone = _request(inputs, ON_PHONE, devices=(kinds.ADB.name,))
        phoned = planned_for(on_phone, console, to_run=True)
        reports = (*reports, *verify_again(on_phone, console, phoned))
        add_reports(phoned, destination, MARK)
    failure = gravest_failure(reports) or regression_of(check_reports(Path(inputs.spec), reports))
    mark_delivery(destination, failure.code if failure else "")
    return reports


def targets_named(identifiers: str) -> tuple[Target, ...]:
    """Return the targets of identifiers with commas between."""
    names = identifiers.split(",")
    unknown = [name for name in names if name not in TARGETS]
    if unknown:
        hint = f"choose among: {', '.join(TARGETS)}"
        raise UsageError("no-such-target", f"{unknown[0]!r} is no target", where="--target", hint=hint)
    return tuple(TARGETS[name] for name in names)


def sdk_versions(platform: Platform, text: str, targets: tuple[Target, ...]) -> tuple[str, ...]:
    """Return the versions of a platform's SDK that its `targets` are compiled with, by an encoded plan.

    Without a plan that is the version pinned for the default ONNX Runtime; there are none without targets.
    """
    if not targets:
        return ()
    if not text:
        default = platform.pinned_sdk(runtime_pins(RuntimeSpec().version))
        return () if default is None else (default,)
    known = plan_input.handed_toolchains(plan_input.decode(text).given.spec)
    toolchains = [known[each] for each in _wanted(known, ",".join(target.identifier for target in targets))]
    return tuple(sorted({toolchain.version for toolchain in toolchains if toolchain.kind == platform.SDK}))


def _wanted(planned: Collection[str], identifiers: str) -> tuple[str, ...]:
    wanted = tuple(each for each in planned if each in identifiers.split(","))
    if not wanted:
        what, hint = f"the plan has no target {identifiers}", f"choose among: {', '.join(planned)}"
        raise UsageError("no-such-target", what, where="--target", hint=hint)
    return wanted


def _request(inputs: WorkflowInputs, target: str, devices: tuple[str, ...] = ()) -> Request:
    return Request(
        spec=Path(inputs.spec), target=target, profile=inputs.profile, elsewhere=True, on_macs=True, devices=devices
    )


TARGET: Final = "android-arm64-v8a"
"""What the phones of farms run."""
FARMED_MARK: Final = "on-farms"
TO_COMPILE: Final = ("farm-apks-missing", "farm-apks-outdated")
GRADLE_SECONDS: Final = 1800


def require_farm_target(inputs: WorkflowInputs, plan: BuildPlan) -> None:
    """Check that there is something to run on the farms that were asked for."""
    planned = {target.identifier for target in plan.targets}
    if inputs.devices and TARGET not in planned:
        what, hint = f"devices of farms run {TARGET}, which is not built", f"add it to the input target: {TARGET}"
        raise PlanError("no-farm-target", what, where=inputs.devices[0], hint=hint)


def compile_app(inputs: WorkflowInputs, source: Path, console: Console) -> tuple[Path, ...]:
    """Write the app that carries what is to run on farms, have Gradle compile it, and return its project's folders.

    `source` holds the archives of compiled targets.
    """
    request = _farmed_request(inputs)
    planned = planned_for(request, console, to_run=True)
    import_compiled(planned.plan.targets, source)
    for report in verify_again(request, console, planned):
        for device in report.devices:
            failure = device.failure
            if failure and failure.code not in TO_COMPILE:
                raise VerifyError(failure.code, failure.what, where=failure.where, why=failure.why, hint=failure.hint)
    folders = tuple(target_folder(planned, target) / HARNESS for target in planned.plan.targets)
    for folder in folders:
        with console.step("compile the app") as step:
            for command in COMMANDS:
                step.note(command)
                _gradle(command, folder)
    return folders


def verify_on_farms(
    inputs: WorkflowInputs, source: Path, destination: Path, console: Console
) -> tuple[VerifyReport, ...]:
    """Run the compiled app on every device of a farm, and leave the reports in `destination`."""
    request = _farmed_request(inputs)
    planned = planned_for(request, console, to_run=True)
    import_compiled(planned.plan.targets, source)
    reports = verify_again(request, console, planned)
    with storage_errors(destination):
        destination.mkdir(parents=True, exist_ok=True)
    add_reports(planned, destination, FARMED_MARK)
    return reports


def _gradle(command: str, folder: Path) -> None:
    done = run(command.split(), cwd=folder, timeout_seconds=GRADLE_SECONDS)
    if done.returncode != 0:
        why = last_lines(done.stderr or done.stdout, 8)
        hint = "the project's README.md says what Gradle needs"
        raise ToolError(
            "gradle-failed", f"ended with {done.returncode}", where=f"{command} in {folder}", why=why, hint=hint
        )


def _farmed_request(inputs: WorkflowInputs) -> Request:
    return _request(inputs, TARGET, inputs.devices)
