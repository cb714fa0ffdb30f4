"""How tasks show plans and reports."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from ortrim.base.console import Console, printable
from ortrim.base.json import to_data, to_json
from ortrim.build.plan import BuildPlan, digest
from ortrim.cli.boundary import ErrorData, as_data
from ortrim.pipeline.prediction import Prediction
from ortrim.pipeline.request import Request
from ortrim.pipeline.verification import gravest_failure
from ortrim.platforms import platform_of
from ortrim.report.terminal import terminal_report
from ortrim.spec.targets import TARGETS
from ortrim.verify.reports import VerifyReport


def show_reports(
    console: Console, reports: tuple[VerifyReport, ...], *, json_mode: bool, errors: Sequence[ErrorData] = ()
) -> None:
    """Show each report as a table, or all of them as one JSON document with the `errors` that follow from them."""
    if json_mode:
        data = {"reports": [to_data(report) for report in reports], "errors": list(errors)}
        console.result(json.dumps(data, indent=2, ensure_ascii=False))
        return
    for report in reports:
        console.render(terminal_report(report))


def conclude(console: Console, reports: tuple[VerifyReport, ...], *, json_mode: bool) -> None:
    """Show the reports and end with the gravest failure in them; as JSON, both are one document."""
    failure = gravest_failure(reports)
    show_reports(console, reports, json_mode=json_mode, errors=as_data(failure) if failure else [])
    if failure:
        raise failure


def show_next(console: Console, reports: tuple[VerifyReport, ...], request: Request) -> None:
    """Say how each package gets into an app, where to read about it, and how to build for another target."""
    found = {_package(report, request.output): platform_of(TARGETS[report.target]) for report in reports}
    for package, platform in found.items():
        console.note(f"in an app, see docs/start/{platform.NAME}.md:")
        for line in platform.IN_AN_APP:
            console.note(f"  {line.format(package=package, folder=package.parent)}")
    others = [each for each in ("android", "ios", "linux-arm64") if not any(r.target.startswith(each) for r in reports)]
    console.note(f"for another target: ortrim build {request.spec} --target {others[0]}")


def _package(report: VerifyReport, output: Path) -> Path:
    folder = output / report.name / report.plan_digest[:12] / report.target
    return Path(os.path.normpath(folder / report.package))


def show_plan(console: Console, plan: BuildPlan, expected: Sequence[Prediction], *, json_mode: bool) -> None:
    """Show what is expected of a plan and a table of its jobs with their arguments, or the plan as JSON."""
    if json_mode:
        console.result(to_json(plan))
        return
    console.note(f"plan {digest(plan)[:12]}: {plan.spec_name}, ONNX Runtime {plan.ort_version}")
    for each in expected:
        console.note(each.text)
    for target in plan.targets:
        job = target.job
        table = Table(title=job.target.identifier, show_header=False, box=None, title_justify="left", padding=(0, 2))
        table.add_row("toolchain", f"{job.toolchain.kind} {job.toolchain.version} {job.toolchain.triple}")
        for heading, text in platform_of(job.target).described(job):
            table.add_row(heading, text)
        table.add_row("profile", f"{job.profile}, exceptions {'on' if job.exceptions else 'off'}")
        table.add_row("sources", ", ".join(f"{pin.name} {pin.version}" for pin in job.sources))
        table.add_row("operators", printable(job.operator_config.strip()))
        table.add_row("build.py", " ".join(job.arguments))
        console.render(table)
