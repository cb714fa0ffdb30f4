"""A build that is spread over the jobs of a workflow: plan once, compile each target, deliver what belongs together."""

from pathlib import Path
from typing import Final

from ortrim.console import Console
from ortrim.core.buildspec import RuntimeSpec
from ortrim.core.plan import BuildPlan, PlannedTarget
from ortrim.core.reports import VerifyReport
from ortrim.core.targets import APPLE, TARGETS, OperatingSystem, Target
from ortrim.errors import UsageError
from ortrim.github.payload import decode_plan
from ortrim.pins.runtime import runtime_pins
from ortrim.pipeline.converted import Request
from ortrim.pipeline.planned import make_planned
from ortrim.pipeline.targets import build, verify_again
from ortrim.pipeline.workflow_jobs.compiled import compile_targets
from ortrim.pipeline.workflow_jobs.dispatched import accept
from ortrim.pipeline.workflow_jobs.handover import add_reports, checked_out_commit, hand_over
from ortrim.pipeline.workflow_jobs.transfer import import_compiled
from ortrim.workflows.inputs import Inputs

PLAN_VARIABLE: Final = "ORTRIM_PLAN"
ON_PHONE: Final = "android-x86_64"
"""The only ABI for which a runner of GitHub's can emulate a phone with its own processor."""
MARK: Final = "on-emulator"


def plan_run(inputs: Inputs, console: Console) -> BuildPlan:
    """Return the plan of a run: the one that came with it, if this ortrim makes the same, or that of its buildspec."""
    if inputs.plan:
        return accept(decode_plan(inputs.plan), console).plan
    return make_planned(_request(inputs, inputs.target), console).plan


def compile_planned(text: str, identifiers: str, destination: Path, console: Console) -> tuple[Path, ...]:
    """Compile targets of an encoded plan and leave an archive of each in `destination`; no model is needed.

    Raises `UsageError` `no-such-target`, and as `accept` and building do.
    """
    accepted = accept(decode_plan(text), console)
    wanted = _wanted(accepted.plan, identifiers)
    return compile_targets(wanted, accepted.sources.folder, destination, console)


def deliver_compiled(
    inputs: Inputs, identifiers: str, source: Path, destination: Path, console: Console
) -> tuple[VerifyReport, ...]:
    """Package and verify targets that the archives in `source` hold compiled, and hand all over in `destination`.

    An Android package's x86-64 library is verified a second time on the phone that `adb` knows. Raises what importing,
    packaging and verifying raise.
    """
    request = _request(inputs, identifiers)
    planned = make_planned(request, console)
    import_compiled(planned.plan.targets, source)
    reports = build(request, console)
    hand_over(planned, destination, checked_out_commit(Path()))
    if ON_PHONE not in identifiers.split(","):
        return reports
    on_phone = _request(inputs, ON_PHONE, devices=("adb",))
    further = verify_again(on_phone, console)
    add_reports(make_planned(on_phone, console), destination, MARK)
    return (*reports, *further)


def targets_named(identifiers: str) -> tuple[Target, ...]:
    """Return the targets of identifiers with commas between. Raises `UsageError` `no-such-target`."""
    names = identifiers.split(",")
    unknown = [name for name in names if name not in TARGETS]
    if unknown:
        hint = f"choose among: {', '.join(TARGETS)}"
        raise UsageError("no-such-target", f"{unknown[0]!r} is no target", where="--target", hint=hint)
    return tuple(TARGETS[name] for name in names)


def ndk_versions(text: str, targets: tuple[Target, ...]) -> tuple[str, ...]:
    """Return the versions of the NDK that targets are compiled with, by an encoded plan, or by default without one."""
    if not any(target.system is OperatingSystem.ANDROID for target in targets):
        return ()
    return _versions("ndk", text, targets, runtime_pins(RuntimeSpec().version).ndk)


def xcode_versions(text: str, targets: tuple[Target, ...]) -> tuple[str, ...]:
    """Return the versions of Xcode that targets are compiled with, by an encoded plan, or by default without one."""
    if not any(target.system in APPLE for target in targets):
        return ()
    pins = runtime_pins(RuntimeSpec().version).apple
    return _versions("xcode", text, targets, pins.xcode if pins else None)


def _versions(kind: str, text: str, targets: tuple[Target, ...], default: str | None) -> tuple[str, ...]:
    if not text:
        return () if default is None else (default,)
    identifiers = ",".join(target.identifier for target in targets)
    toolchains = [target.job.toolchain for target in _wanted(decode_plan(text), identifiers)]
    return tuple(sorted({toolchain.version for toolchain in toolchains if toolchain.kind == kind}))


def _wanted(plan: BuildPlan, identifiers: str) -> tuple[PlannedTarget, ...]:
    wanted = tuple(target for target in plan.targets if target.job.target.identifier in identifiers.split(","))
    if not wanted:
        what = f"the plan has no target {identifiers}"
        hint = f"choose among: {', '.join(target.job.target.identifier for target in plan.targets)}"
        raise UsageError("no-such-target", what, where="--target", hint=hint)
    return wanted


def _request(inputs: Inputs, target: str, devices: tuple[str, ...] = ()) -> Request:
    return Request(
        spec=Path(inputs.spec),
        target=target,
        profile=inputs.profile,
        elsewhere=True,
        on_macs=True,
        devices=devices,
    )
