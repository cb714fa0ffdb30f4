"""How tasks show plans and reports."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.table import Table

from ortrim.base.console import Console, printable
from ortrim.base.json import to_data, to_json
from ortrim.buildspec.targets import TARGETS
from ortrim.cli.boundary import ErrorData, as_data
from ortrim.compiling.plan import BuildPlan, digest
from ortrim.models.operators import RequiredOperators, parse_config
from ortrim.planning.prediction import Prediction
from ortrim.planning.request import Request
from ortrim.platforms import platform_of
from ortrim.report.terminal import terminal_report
from ortrim.verify.failures import gravest_failure
from ortrim.verify.reports import VerifyReport


def show_reports(
    console: Console, reports: tuple[VerifyReport, ...], *, json_mode: bool, errors: Sequence[ErrorData] = ()
) -> None:
    """Show each report as a table, or all of them as one JSON document with the `errors` that follow from them."""
    if json_mode:
        console.result(to_json({"reports": [to_data(report) for report in reports], "errors": list(errors)}))
        return
    for report in reports:
        console.render(terminal_report(report))


def conclude(console: Console, reports: tuple[VerifyReport, ...], *, json_mode: bool) -> None:
    """Show the reports and end with the gravest failure in them; as JSON, both are one document."""
    failure = gravest_failure(reports)
    show_reports(console, reports, json_mode=json_mode, errors=as_data(failure))
    if failure:
        raise failure


def show_next(console: Console, reports: tuple[VerifyReport, ...], request: Request) -> None:
    """Say how each package gets into an app, where to read about it, and how to build for another target."""
    found = {_package(report, request.output): platform_of(TARGETS[report.target]) for report in reports}
    for package, platform in found.items():
        console.note("in an app:")
        for line in platform.IN_AN_APP:
            console.note(f"  {line.format(package=package, folder=package.parent)}")
    others = [each for each in ("android", "ios", "linux-arm64") if not any(r.target.startswith(each) for r in reports)]
    console.note(f"for another target: invoke build {request.spec} --target {others[0]}")


def _package(report: VerifyReport, output: Path) -> Path:
    folder = output / report.name / report.plan_digest[:12] / report.target
    return Path(os.path.normpath(folder / report.package))


def show_plan(console: Console, plan: BuildPlan, expected: Sequence[Prediction], *, json_mode: bool) -> None:
    """Show a table of a plan's jobs, and what is expected of them; as JSON, each job whole."""
    if json_mode:
        console.document({**to_data(plan), "expected": to_data(tuple(expected))})
        return
    console.note(f"plan {digest(plan)[:12]}: {plan.spec_name}, ONNX Runtime {plan.ort_version}")
    for target in plan.targets:
        job = target.job
        table = Table(title=job.target.identifier, show_header=False, box=None, title_justify="left", padding=(0, 2))
        table.add_row("toolchain", f"{job.toolchain.kind} {job.toolchain.version} {job.toolchain.triple}")
        for heading, text in platform_of(job.target).described(job):
            table.add_row(heading, text)
        table.add_row("profile", f"{job.profile}, exceptions {'on' if job.exceptions else 'off'}")
        if job.providers:
            table.add_row("providers", ", ".join((*job.providers, "cpu")))
        table.add_row("sources", ", ".join(f"{pin.name} {pin.version}" for pin in job.sources))
        table.add_row("operators", printable(", ".join(_operators(parse_config(job.operator_config)))))
        table.add_row("build.py", f"{len(job.arguments)} words: --json shows them")
        console.render(table)
    for each in expected:
        console.note(each.text)


def _operators(required: RequiredOperators) -> Iterator[str]:
    """Yield each operator once, with the types that it is needed for."""
    if required.everything:
        yield "all"
    for domain, name in sorted({(each.domain, each.name) for each in required.operators}):
        types = required.types_of(domain, name)
        used = sorted({each for _, several in (*types.inputs, *types.outputs) for each in several})
        yield (name if domain == "ai.onnx" else f"{domain}:{name}") + (f" ({', '.join(used)})" if used else "")
