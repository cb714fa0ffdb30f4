"""`invoke ci.plan` and the others: the steps of GitHub's workflows, which can be taken on any machine."""

import os
import sys
from pathlib import Path
from typing import Final

from ortrim.base.console import Console
from ortrim.cli.rendering import conclude, show_plan
from ortrim.cli.task import task
from ortrim.cli.tasks.history import show_checks
from ortrim.github import jobs, runner_setup, workflow_files
from ortrim.github.workflow_files import compile_jobs, deliver_jobs, matrix_json
from ortrim.pipeline.history import check_reports, regression_of
from ortrim.planning.request import host_target, require_host
from ortrim.platforms import by_platform
from ortrim.report.write import step_summary

COMPILED: Final = Path("compiled")
DELIVERY: Final = Path("delivery")
TARGET_HELP: Final = "identifiers of targets, separated by commas"


@task()
def setup(console: Console) -> None:
    """Step: let the steps that follow call this ortrim."""
    programs = Path(sys.executable).parent
    runner_setup.add_to_path(programs)
    console.result(str(programs))


@task()
def plan(console: Console) -> None:
    """Step: plan a run, and give its matrix to later jobs."""
    asked = workflow_files.read_inputs(os.environ.get(workflow_files.VARIABLE, ""))
    runner_setup.install_layout_emulator(host_target(), console.note)
    made, text = jobs.plan_run(asked, console)
    jobs.require_farm_target(asked, made)
    compiled = compile_jobs(made)
    show_plan(console, made, (), json_mode=False)
    runner_setup.write_output("targets", ",".join(each.target for each in compiled))
    runner_setup.write_output("plan", text)
    runner_setup.write_output("compiled", matrix_json(compiled))
    # A dispatched plan is compiled only: its models are elsewhere, and so is verification.
    runner_setup.write_output("delivered", "" if asked.plan else matrix_json(deliver_jobs(made)))
    console.result(matrix_json(compiled))


@task(
    help={
        "target": TARGET_HELP,
        "to-verify": "install and start only what runs the targets, not what compiles them",
        "ndk": "the version of Android's NDK to install, with which the steps that follow compile",
        "api": "API level of the emulated phone",
    }
)
def prepare(
    console: Console, target: str, to_verify: bool = False, ndk: str = "", api: int = runner_setup.DEFAULT_LEVEL
) -> None:
    """Step: install what compiles or runs targets."""
    with console.step(f"prepare for {target}") as step:
        targets = jobs.targets_named(target)
        by_system = by_platform(targets, lambda target: target)
        for platform, own in by_system:
            platform.require_package_tools(own)
        if to_verify:
            runner_setup.install_emulators(targets, require_host(), step.note)
            runner_setup.install_layout_emulator(require_host(), step.note)
        else:
            for platform, own in by_system:
                versions = (
                    (ndk,) if ndk and own else jobs.sdk_versions(platform, os.environ.get(jobs.PLAN_VARIABLE, ""), own)
                )
                runner_setup.prepare_sdk(platform, versions, own, step.note)
        if ndk:
            runner_setup.prefer_ndk(ndk)
        if to_verify and jobs.ON_PHONE in target.split(","):
            runner_setup.start_phone(api, step.note)


@task(help={"target": TARGET_HELP})
def compile(console: Console, target: str) -> None:  # noqa: A001 - the task's name
    """Step: compile targets into the folder compiled."""
    for archive in jobs.compile_planned(os.environ.get(jobs.PLAN_VARIABLE, ""), target, COMPILED, console):
        console.result(str(archive))


@task(help={"target": TARGET_HELP})
def deliver(console: Console, target: str) -> None:
    """Step: package and verify compiled targets."""
    asked = workflow_files.read_inputs(os.environ.get(workflow_files.VARIABLE, ""))
    reports = jobs.deliver_compiled(asked, target, COMPILED, DELIVERY, console)
    runner_setup.append_summary(step_summary(reports))
    conclude(console, reports, json_mode=False)
    found = check_reports(Path(asked.spec), reports)
    show_checks(found, console)
    if failure := regression_of(found):
        raise failure


@task()
def app(console: Console) -> None:
    """Step: compile the app that runs on device farms."""
    asked = workflow_files.read_inputs(os.environ.get(workflow_files.VARIABLE, ""))
    for folder in jobs.compile_app(asked, COMPILED, console):
        console.result(str(folder))


@task()
def farm(console: Console) -> None:
    """Step: verify on the devices of farms."""
    asked = workflow_files.read_inputs(os.environ.get(workflow_files.VARIABLE, ""))
    reports = jobs.verify_on_farms(asked, COMPILED, DELIVERY, console)
    runner_setup.append_summary(step_summary(reports))
    conclude(console, reports, json_mode=False)


@task()
def judge(console: Console) -> None:
    """Step: fail unless all jobs before it ended well."""
    names = runner_setup.require_success(os.environ.get(runner_setup.VARIABLE, ""))
    console.result(f"ended well: {', '.join(names)}")
