"""A stand-in for GitHub's runner: runs the scripts of a workflow's jobs, as the file says them, in a clean clone."""

import json
import os
import re
import sysconfig
import venv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ortrim.base.command import Completed, run
from ortrim.base.scripts import ISOLATED_PYTHON, environment_with, packages_folder
from ortrim.sources.commits import git
from program_files import write_program

ROOT: Final = Path(__file__).parents[2]
TOOLS: Final = ROOT / "tests" / "integration" / "data" / "workflow-tools.txt"
READER: Final = """\
import json, sys
from ruamel.yaml import YAML
reader = YAML(typ="safe", pure=True)
print(json.dumps([reader.load(open(path)) for path in sys.argv[1:]]))
"""
SETUP: Final = ".github/actions/setup/action.yml"
ACTIONS: Final = ("action.yml", SETUP)
EXPRESSION: Final = re.compile(r"\$\{\{ (.*?) \}\}")
COMMAND: Final = '#!/bin/sh\nexec python -P -c "from {} import {}; {}()" "$@"\n'
PROGRAMS: Final = {
    "invoke": ("invoke.main", "program.run"),
    "ortrim": ("ortrim.cli.program", "main"),
    "pytest": ("pytest", "console_main"),
}


def clean_clone(folder: Path) -> Path:
    """Return a clone of what is committed; its `origin` is a clone, too, so that what is pushed goes no further."""
    origin, clone = folder / "origin.git", folder / "clone"
    git(folder, "clone", "--quiet", "--bare", "--no-hardlinks", str(ROOT), str(origin))
    git(folder, "clone", "--quiet", str(origin), str(clone))
    return clone


def new_repository(folder: Path) -> Path:
    git(folder, "init", "--quiet", "--bare", "--initial-branch=main", "origin.git")
    git(folder, "clone", "--quiet", str(folder / "origin.git"), str(folder / "clone"))
    git(folder / "clone", "checkout", "--quiet", "-B", "main")
    return folder / "clone"


def take_packages_of_the_tests(clone: Path, start_up: str = "") -> None:
    """Let `./bootstrap` find its packages in place, those that run the tests: installing them takes a minute."""
    folder = clone.resolve() / ".venv"
    venv.create(folder, with_pip=False, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    (packages / "tests_start_up.py").write_text(start_up)
    own = sysconfig.get_path("purelib")
    (packages / "tests.pth").write_text(f"{clone.resolve() / 'src'}\n{own}\nimport tests_start_up\n")
    for name, (module, function) in PROGRAMS.items():
        write_program(folder / "bin" / name, COMMAND.format(module, function.partition(".")[0], function))
    (folder / "installed.lock").write_text(f"# {folder}\n{(clone / 'requirements-dev.lock').read_text()}")
    (folder / "installed.toml").write_bytes((clone / "pyproject.toml").read_bytes())


def read_workflows(clone: Path) -> dict[str, Any]:
    """Return the workflows of a clone as data, by their files' names, and its actions as workflows of one job."""
    tools = packages_folder("workflow-tools", TOOLS.read_text())
    files = sorted((clone / ".github" / "workflows").glob("*.yml"))
    paths = (*files, *(clone / name for name in ACTIONS))
    done = run((*ISOLATED_PYTHON, "-c", READER, *paths), environment=environment_with(tools))
    assert done.returncode == 0, done.stderr
    *workflows, own, setup = json.loads(done.stdout)
    actions = {name: {"jobs": {"action": action["runs"]}} for name, action in zip(ACTIONS, (own, setup), strict=True)}
    return {file.name: workflow for file, workflow in zip(files, workflows, strict=True)} | actions


def scripts(workflows: Mapping[str, Any]) -> set[str]:
    """Return every step with a script, as `file: job: step`."""
    return {
        f"{file}: {name}: {step['name']}"
        for file, workflow in workflows.items()
        for name, job in workflow["jobs"].items()
        for step in job.get("steps", ())
        if "run" in step
    }


@dataclass
class Runner:
    """A clone, what expressions come to there, and the environment that a machine of GitHub's has."""

    clone: Path
    values: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    printed: list[Completed] = field(default_factory=list)
    ran: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Make the files through which steps tell the runner something."""
        for name in ("output", "summary", "env", "path"):
            (self.clone.parent / name).touch()
        self.environment = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_OUTPUT": str(self.clone.parent / "output"),
            "GITHUB_STEP_SUMMARY": str(self.clone.parent / "summary"),
            "GITHUB_ENV": str(self.clone.parent / "env"),
            "GITHUB_PATH": str(self.clone.parent / "path"),
            "GITHUB_ACTION_PATH": str((self.clone / SETUP).parent),
            **self.environment,
        }

    def do(
        self,
        job: Mapping[str, Any],
        matrix: Mapping[str, Any],
        cache: Path,
        *,
        only: Sequence[str] = (),
        codes: Sequence[int] = (0,),
    ) -> None:
        """Run the scripts of a job, in order, with the environment that it says, and take its outputs."""
        self.values |= {f"matrix.{key}": str(value) for key, value in matrix.items()}
        for step in job["steps"]:
            if "run" in step and (not only or step["name"] in only):
                own = self._resolved({**job.get("env", {}), **step.get("env", {})})
                done = self._run(step["run"], {**os.environ, **self.environment, **own, "ORTRIM_CACHE": str(cache)})
                assert done.returncode in codes, f"{step['run']}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
                self.values |= {f"needs.plan.outputs.{name}": value for name, value in self._outputs()}

    def matrix(self, job: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        found = re.fullmatch(r"\$\{\{ fromJSON\((.*)\) \}\}", job["strategy"]["matrix"])
        assert found
        yield from json.loads(self.values[found[1]])["include"]

    def _resolved(self, environment: Mapping[str, str]) -> dict[str, str]:
        return {name: EXPRESSION.sub(lambda found: self.values[found[1]], value) for name, value in environment.items()}

    def _run(self, script: str, environment: Mapping[str, str]) -> Completed:
        kept = {name: value for name, value in environment.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
        added = (self.clone.parent / "path").read_text().splitlines()
        kept["PATH"] = os.pathsep.join([*reversed(added), kept["PATH"]])
        done = run(("bash", "--noprofile", "--norc", "-e", "-c", script), cwd=self.clone, environment=kept)
        self.printed.append(done)
        return done

    def _outputs(self) -> list[tuple[str, str]]:
        lines = (self.clone.parent / "output").read_text().splitlines()
        return [(lines[n].partition("<<")[0], lines[n + 1]) for n in range(0, len(lines), 3)]
