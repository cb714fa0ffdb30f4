"""`act` as GitHub's runner: it reads the workflows of a clone, decides and runs their jobs on this machine."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ortrim.base.command import Completed, run
from ortrim.base.scripts import packages_folder
from ortrim.pins.shipped import action_pins
from ortrim.sources.commits import git
from workflow_runner import ROOT, clean_clone

ORTRIM: Final = "octo/ortrim@v1"
"""What another repository calls this one, and the tag of a release."""
PACKAGES: Final = """\
for root in "$GITHUB_ACTION_PATH" "$GITHUB_ACTION_PATH/../../.."; do
    [ ! -f "$root/bootstrap" ] || [ -d "$root/.venv" ] ||
        env -u BASH_ENV ACT_STAND_INS='{folder}' '{python}' '{program}' packages "$root"
done
"""
"""Run by each bash before anything else: an action of ortrim's finds the packages of the tests."""
REQUIREMENTS: Final = ROOT / "tests" / "integration" / "data" / "act.txt"
PROGRAM: Final = ROOT / "tests" / "support" / "act_actions.py"
LABELS: Final = ("ubuntu-24.04", "ubuntu-24.04-arm")
PATIENCE_SECONDS: Final = 7200
STAND_INS: Final = {
    "actions/checkout": ("checkout", "ref", "persist-credentials"),
    "actions/upload-artifact": ("upload", "name", "path", "if-no-files-found", "compression-level", "retention-days"),
    "actions/download-artifact": ("download", "name", "pattern", "path", "merge-multiple"),
    "actions/cache/restore": ("restore", "path", "key", "restore-keys"),
    "actions/cache/save": ("save", "path", "key"),
    "actions/attest": ("attest", "subject-checksums"),
    "pypa/gh-action-pypi-publish": ("publish",),
}
"""What does each action's work, and the inputs that it takes."""


@dataclass(frozen=True, kw_only=True)
class Act:
    """A clone, and the folder of what its runs leave: artifacts, notes of the stand-ins, the rest of a machine."""

    clone: Path
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    repositories: dict[str, Path] = field(default_factory=dict)

    @property
    def artifacts(self) -> Path:
        return self.folder / "artifacts"

    def notes(self, name: str) -> list[Any]:
        path = self.folder / f"{name}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def run(self, event: str, workflow: str, *words: str, payload: Mapping[str, object] | None = None) -> Completed:
        """Let an event trigger a workflow, and return how that ended and what was printed; each time is an attempt."""
        (self.folder / "uploaded").write_text("")
        return run(
            self._words(event, workflow, *words, payload=payload),
            cwd=self.clone,
            environment=self._machine(),
            timeout_seconds=PATIENCE_SECONDS,
        )

    def dispatch(self, workflow: str, *words: str, **inputs: str) -> Completed:
        return self.run("workflow_dispatch", workflow, *words, payload={"inputs": inputs})

    def start(self, event: str, workflow: str, *words: str) -> "subprocess.Popen[str]":
        (self.folder / "uploaded").write_text("")
        return subprocess.Popen(
            self._words(event, workflow, *words),
            cwd=self.clone,
            env=self._machine(),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def processes(self) -> list[str]:
        """Return the command lines of all processes that a run has started and that are still there."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if str(self.folder).encode() in (process / "environ").read_bytes():
                    found.append((process / "cmdline").read_text().replace("\0", " "))
        return found

    def commit(self) -> str:
        """Commit what was changed in the clone, push it, and return the commit."""
        own = ("-c", "user.name=x", "-c", "user.email=x@y")
        git(self.clone, "add", "--all")
        git(self.clone, *own, "commit", "--quiet", "--message", "for this test")
        git(self.clone, "push", "--quiet", "origin", "HEAD")
        return git(self.clone, "rev-parse", "HEAD").strip()

    def _words(
        self, event: str, workflow: str, *words: str, payload: Mapping[str, object] | None = None
    ) -> tuple[str, ...]:
        told = self.folder / "event.json"
        told.write_text(json.dumps(dict(payload or {})))
        program = packages_folder("act", REQUIREMENTS.read_text()) / "bin" / "act"
        platforms = [word for label in LABELS for word in ("-P", f"{label}=-self-hosted")]
        pinned = {f"{name}@{pin.commit}": self.folder / "actions" / name for name, pin in action_pins().items()}
        repositories = (pinned | self.repositories).items()
        actions = [word for name, path in repositories for word in ("--local-repository", f"{name}={path}")]
        environment = [word for name, value in self.environment.items() for word in ("--env", f"{name}={value}")]
        own = (
            *("--action-offline-mode", "--no-cache-server", "--no-skip-checkout", "--pull=false"),
            *("--concurrent-jobs", "1", "--remote-name", "github", "--defaultbranch", "main"),
            *("--eventpath", str(told), "-s", "GITHUB_TOKEN=ghs_run", *platforms, *actions, *environment),
        )
        return (str(program), event, "-W", f".github/workflows/{workflow}", *own, *words)

    def _machine(self) -> dict[str, str]:
        """Return the environment of a machine on which nobody has worked."""
        home = {"HOME": "home", "XDG_CONFIG_HOME": "home/.config", "XDG_CACHE_HOME": "home/.cache", "TMPDIR": "tmp"}
        kept = {"PATH", "LANG", "PIP_CERT", "PIP_FIND_LINKS", "PIP_INDEX_URL", "SSL_CERT_FILE"}
        own = {name: value for name, value in os.environ.items() if name in kept}
        return {**own, **{name: str(self.folder / path) for name, path in home.items()}, **self.environment}


def new_act(folder: Path, cache: Path, start_up: str = "") -> Act:
    """Return a runner for a clean clone, with a cache; `start_up` is run by each Python of a checkout as it starts."""
    clone = clean_clone(folder)
    point_to_itself(clone, "./{}")
    return act_for(clone, folder, cache, start_up)


def act_for(clone: Path, folder: Path, cache: Path, start_up: str = "") -> Act:
    """Return a runner for a repository whose `origin` is `origin.git` in the folder, as `new_act` does for this one."""
    for name in ("home", "tmp", "actions"):
        (folder / name).mkdir()
    (folder / "cache").symlink_to(cache)
    (folder / "start-up.py").write_text(start_up)
    git(clone, "remote", "add", "github", "https://github.com/octo/ort.git")
    for name, (work, *inputs) in STAND_INS.items():
        path = folder / "actions" / name / "action.yml"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(_action(name, work, inputs, folder)))
    return Act(clone=clone, folder=folder)


def point_to_itself(clone: Path, form: str) -> None:
    """Write what act has for `$/` into the workflows of a clone."""
    for path in (clone / ".github" / "workflows").glob("*.yml"):
        path.write_text(re.sub(r"uses: \$/(\S+)", lambda found: f"uses: {form.format(found[1])}", path.read_text()))


def use_packages_of_the_tests(act: Act) -> None:
    """Keep actions of ortrim's from installing their packages, which takes minutes."""
    path = act.folder / "packages.sh"
    path.write_text(PACKAGES.format(folder=act.folder, python=sys.executable, program=PROGRAM))
    act.environment["BASH_ENV"] = str(path)


def _action(name: str, work: str, inputs: list[str], folder: Path) -> dict[str, object]:
    """Return a composite action that hands its inputs to a program. JSON is YAML, too."""
    given = {f"INPUT_{each.upper()}": f"${{{{ inputs.{each} }}}}" for each in inputs}
    step = {
        "shell": "bash",
        "env": {**given, "ACT_STAND_INS": str(folder)},
        "run": f'"{sys.executable}" "{PROGRAM}" {work}',
    }
    described = {each: {"description": each, "required": False} for each in inputs}
    return {"name": name, "inputs": described, "runs": {"using": "composite", "steps": [step]}}
