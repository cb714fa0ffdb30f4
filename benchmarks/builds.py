"""Builds that were made here before: their plan and library, and a runner for them."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ortrim.base.console import Console
from ortrim.cli.options import request_from
from ortrim.compiling.workspace import finished_build, result_of
from ortrim.errors import UsageError
from ortrim.pipeline.building import executor_for
from ortrim.planning.planned import Planned, planned_for


@dataclass(frozen=True, kw_only=True)
class Built:
    planned: Planned
    library: Path
    runner: Path

    @property
    def link_map(self) -> Path:
        return self.library.with_name("link.map")

    @property
    def headers(self) -> Path:
        return self.library.with_name("headers")


def find_build(spec: Path, console: Console, target: str | None = None, profile: str | None = None) -> Built:
    """Return the build of a buildspec for a target, by default this machine.

    Raises `UsageError` (`not-built`) and as planning does.
    """
    with TemporaryDirectory(prefix="ortrim-built-") as scratch:
        request = request_from(str(spec), target=target, profile=profile, output=scratch)
        planned = planned_for(request, console)
        (plan,) = planned.plan.targets
        folder = finished_build(plan.job)
        if not folder.is_dir():
            options = "".join(f" -{word} {value}" for word, value in (("t", target), ("p", profile)) if value)
            hint = f"run: invoke build -s {spec}{options}"
            raise UsageError("not-built", "it was not built here", where=str(spec), hint=hint)
        with console.step("compile the runner") as step:
            runner = executor_for(planned, plan, request, step).run_runner(plan.runner)
    return Built(planned=planned, library=result_of(folder).library, runner=runner)
