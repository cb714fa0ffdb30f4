"""`invoke pins.update` and its kin: the digests and the indices that builds rest on, and proposals of new ones."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from ortrim.base.console import Console
from ortrim.base.files import write_atomically
from ortrim.base.http import Mirrors, mirrors_in, site_mirrors
from ortrim.cli.options import request_from
from ortrim.cli.task import task
from ortrim.compiling.container_engines import first_that_works
from ortrim.errors import Diagnostic, UsageError
from ortrim.github.runner_setup import VARIABLE, require_success
from ortrim.github.workflow_files import FOLDER, released_specs, render_workflows, require_rendered
from ortrim.pin_updates.new_versions import (
    build_each,
    build_versions,
    make_unit_index,
    pin_new_versions,
    pin_version,
    proposal_body,
    released_versions,
    take_pins,
    upstream_client,
    write_update,
)
from ortrim.pin_updates.new_versions import propose as propose_pins
from ortrim.pin_updates.report import Outcome, Refused, compared, versions_markdown, versions_page, versions_tables
from ortrim.pin_updates.update import update_action_pins, update_image_pins, update_requirements
from ortrim.report.content import verdict_text
from ortrim.verify.reports import VerifyReport

PROPOSAL: Final = Path("artifacts/proposal")
"""What the steps of a workflow that proposes pins leave for each other."""


@task(
    help={
        "version": "ONNX Runtime version, for example 1.21.0",
        "latest": "pin every newer version of ONNX Runtime instead",
        "images": "pin the images for --executor container instead",
        "actions": "pin the actions of GitHub's workflows instead",
        "requirements": "pin the packages that prepare and compare install instead",
        "mirror": "use the mirror TO for URLs that begin with FROM (FROM=TO)",
    }
)
def update(
    console: Console,
    version: str = "",
    latest: bool = False,
    images: bool = False,
    actions: bool = False,
    requirements: bool = False,
    engine: str | None = None,
    mirror: str = "",
) -> None:
    """Pin sources, images, actions or packages by digests."""
    if [bool(version), latest, images, actions, requirements].count(True) != 1:
        hint = "give either a version, --latest, --images, --actions or --requirements"
        raise UsageError("bad-option", "this pins one kind of thing at a time", where="pins.update", hint=hint)
    written: tuple[Path, ...]
    if latest:
        written = (_pin_latest(console, _mirrors(mirror)),)
    elif actions:
        with console.step("pin the actions") as step:
            written = (update_action_pins(mirrors=_mirrors(mirror), announce=step.note),)
    elif requirements:
        with console.step("pin the packages") as step:
            written = update_requirements(step.note)
    elif images:
        with console.step("pin the images") as step:
            usable = first_that_works(engine, lambda _: None, step.note)
            written = (update_image_pins(usable, mirrors=_mirrors(mirror), announce=step.note),)
    else:
        with console.step(f"pin ONNX Runtime {version}") as step:
            written = pin_version(version, step.note, _mirrors(mirror))
    for path in written:
        console.result(str(path))


def _pin_latest(console: Console, mirrors: Mirrors) -> Path:
    with console.step("look for new versions of ONNX Runtime"):
        released = released_versions(upstream_client(mirrors))
    return write_update(pin_new_versions(released, console, mirrors=mirrors), PROPOSAL)


@task(
    help={
        "versions": "ONNX Runtime versions, separated by commas, such as 1.21.0,1.24,newest (default: the last and the "
        "newest that pins.update --latest found)",
    }
)
def compare(
    console: Console,
    spec: str | None = None,
    versions: str = "",
    target: str | None = None,
    jobs: str | None = None,
    output: str = "artifacts",
) -> None:
    """Build with several ONNX Runtimes, and compare."""
    if versions:
        folder = Path(output) / "versions"
        request = request_from(spec, target=target, jobs=jobs, output=str(folder))
        _compare(build_each(request, versions.split(","), console), folder, console)
        return
    for report in build_versions(request_from(spec, jobs=jobs), PROPOSAL, console):
        console.result(f"ONNX Runtime {report.ort_version}: {verdict_text(report)}")


def _compare(outcomes: Sequence[Outcome], folder: Path, console: Console) -> None:
    """Show the versions of each target beside each other, and write the same as Markdown and as a page."""
    for target in dict.fromkeys(each.target for each in outcomes if isinstance(each, VerifyReport)):
        comparison = compared([each for each in outcomes if isinstance(each, Refused) or each.target == target])
        console.render(versions_tables(comparison))
        for suffix, text in (("md", versions_markdown(comparison)), ("html", versions_page(comparison))):
            path = folder / f"{target}.{suffix}"
            write_atomically(path, text)
            console.result(str(path))


@task(help={"version": "ONNX Runtime version (default: the buildspec's)"})
def index(
    console: Console,
    spec: str | None = None,
    target: str | None = None,
    jobs: str | None = None,
    version: str | None = None,
) -> None:
    """Make the translation-unit index by a full build."""
    request = replace(request_from(spec, target=target, jobs=jobs), version=version)
    for made in make_unit_index(request, console):
        console.result(str(made.path))
        used = f"{made.units.compiled} of {made.units.total} files give the same library as all of them"
        console.result(used if made.same_bytes else f"{used}, the linker's own tables apart")


@task(help={"files": "folder with what another job pinned and built (default: this checkout)"})
def propose(console: Console, files: str | None = None) -> None:
    """Open a pull request with the pins that were updated."""
    if files is not None:
        take_pins(Path(files), Path())
    body = proposal_body(Path(files or "") / PROPOSAL)
    address = propose_pins(Path(), body + _failure_note() + _rendering_note())
    console.result(address or "nothing to propose: the pins have not changed, or were proposed before")


def _failure_note() -> str:
    """Return that something could not be brought up to date, empty when everything was, and outside of a workflow."""
    try:
        if needs := os.environ.get(VARIABLE):
            require_success(needs)
    except Diagnostic:
        return "\nNot everything could be brought up to date: see the log of the run of update-pins.yml.\n"
    return ""


def _rendering_note() -> str:
    """Return what is left to do for whoever may change workflows, empty when that is nothing."""
    try:
        require_rendered(render_workflows(released_specs(Path("buildspecs"))), FOLDER)
    except Diagnostic:
        return "\nThe workflows are still those of the old pins: run `invoke workflows` on this branch.\n"
    return ""


def _mirrors(mirror: str) -> Mirrors:
    return (*mirrors_in(mirror, "--mirror"), *site_mirrors())
