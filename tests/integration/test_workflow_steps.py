"""The steps of build.yml, as the committed file says them, in a clean clone: compiled and delivered on two machines."""

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from ortrim.errors import ExitCode
from ortrim.package.sums import SUMS, check_sums
from ortrim.storage.cache import cache_folder
from ortrim.tools.command import run
from ortrim.tools.environments import ISOLATED_PYTHON, environment_with, packages_folder
from ortrim.workflows.inputs import Inputs, read_inputs

pytestmark = [pytest.mark.build, pytest.mark.network, pytest.mark.slow]

ROOT: Final = Path(__file__).parents[2]
READER: Final = """\
import json, sys
from ruamel.yaml import YAML
print(json.dumps(YAML(typ="safe", pure=True).load(open(sys.argv[1]))))
"""
EXPRESSION: Final = re.compile(r"\$\{\{ (.*?) \}\}")
SHARED: Final = ("apt", "downloads", "packages", "sources", "zig")
"""Parts of the cache that hold only what was fetched."""


@dataclass
class Runner:
    """A stand-in for GitHub's runner: a clone, what expressions come to, and what steps wrote."""

    clone: Path
    values: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)

    def do(self, job: Mapping[str, Any], matrix: Mapping[str, Any], cache: Path) -> None:
        """Run the scripts of a job with the environment that it says, and take its outputs."""
        self.values |= {f"matrix.{key}": str(value) for key, value in matrix.items()}
        for step in job["steps"]:
            if "run" in step:
                own = self._resolved({**job.get("env", {}), **step.get("env", {})})
                self._run(step["run"], {**os.environ, **self.environment, **own, "ORTRIM_CACHE": str(cache)})
                self.values |= {f"needs.plan.outputs.{name}": value for name, value in self._outputs()}

    def matrix(self, job: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the entries of a job's matrix."""
        found = re.fullmatch(r"\$\{\{ fromJSON\((.*)\) \}\}", job["strategy"]["matrix"])
        assert found
        yield from json.loads(self.values[found[1]])["include"]

    def _resolved(self, environment: Mapping[str, str]) -> dict[str, str]:
        return {name: EXPRESSION.sub(lambda found: self.values[found[1]], value) for name, value in environment.items()}

    def _run(self, script: str, environment: Mapping[str, str]) -> None:
        # A machine that has other work misses deadlines, and then a delivery ends with the code of missed budgets.
        done = run(("bash", "--noprofile", "--norc", "-e", "-c", script), cwd=self.clone, environment=environment)
        assert done.returncode in {ExitCode.OK, ExitCode.BUDGET}, (
            f"{script}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        )

    def _outputs(self) -> list[tuple[str, str]]:
        lines = (self.clone.parent / "output").read_text().splitlines()
        return [(lines[n].partition("<<")[0], lines[n + 1]) for n in range(0, len(lines), 3)]


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """Return a runner that was asked for the demo, in a clone of what is committed."""
    clone = tmp_path / "clone"
    done = run(("git", "clone", "--quiet", "--no-hardlinks", ROOT, clone))
    assert done.returncode == 0, done.stderr
    made = Runner(clone=clone)
    for name in ("output", "summary"):
        (tmp_path / name).touch()
    made.environment = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }
    made.values = {"toJSON(inputs)": json.dumps({"target": "linux-x64"})}
    return made


@pytest.fixture
def other_machine(tmp_path: Path) -> Path:
    """Return the cache of a machine on which nothing was compiled."""
    folder = tmp_path / "cache"
    folder.mkdir()
    for name in SHARED:
        (folder / name).symlink_to(cache_folder(name))
    return folder


def own_cache() -> Path:
    """Return the user's cache, in which a demo that was built before need not be compiled again."""
    return cache_folder("builds").parent


@pytest.mark.needs("git")
def test_a_build_goes_through_all_jobs(runner: Runner, other_machine: Path) -> None:
    """Planned and compiled on one machine, packaged and verified on another, with the delivery whole in the end."""
    assert read_inputs(runner.values["toJSON(inputs)"]) == Inputs(
        spec=read_inputs("{}").spec, target="linux-x64", profile=None
    )
    tools = packages_folder("workflow-tools", (Path(__file__).parent / "data" / "workflow-tools.txt").read_text())
    file = runner.clone / ".github" / "workflows" / "build.yml"
    done = run((*ISOLATED_PYTHON, "-c", READER, file), environment=environment_with(tools))
    jobs = json.loads(done.stdout)["jobs"]
    runner.do(jobs["plan"], {}, own_cache())
    for entry in runner.matrix(jobs["compile"]):
        runner.do(jobs["compile"], entry, own_cache())
    shutil.rmtree(runner.clone / "artifacts", ignore_errors=True)
    for entry in runner.matrix(jobs["deliver"]):
        runner.do(jobs["deliver"], entry, other_machine)
    delivery = runner.clone / "delivery"
    check_sums(delivery)
    assert (delivery / SUMS).read_text().count("\n") == 6
    assert "silero-vad for linux-x64" in (runner.clone.parent / "summary").read_text()
