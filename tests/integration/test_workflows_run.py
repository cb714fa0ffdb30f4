"""The workflows as programs: `act` reads the committed files, decides which jobs there are, and runs them here."""

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from act_runner import ORTRIM, Act, act_for, new_act, point_to_itself, use_packages_of_the_tests
from cmake_application import new_application
from dispatched_work import DispatchedWork, stored
from fake_programs import fake_programs
from github_checks import check_requests
from github_fetching import FetchService
from github_service import TOKEN, GitHubService
from github_state import COMMIT, Artifact, Release, RemoteRun, VirtualClock, Workflow
from ortrim.base.cache import cache_folder
from ortrim.base.checksums import SUMS, check_sums
from ortrim.base.command import Completed, run
from ortrim.package.manifest import FACTS
from ortrim.platforms.android.ndk import REPOSITORY
from ortrim.sources.commits import git
from own_caches import link_parts
from package_index import package_index
from pin_sources import REDIRECTED, add_hub, googles_list, repositories
from workflow_runner import ROOT, clean_clone, new_repository
from workflow_scripts import ACTION, APP, BUILD, BY_ACT, CI, PINS, PUBLISH, RELEASE

pytestmark = [pytest.mark.build, pytest.mark.network, pytest.mark.needs("git")]

BUDGETS: Final = "budgets = { library_ratio = 0.06, peak_rss_ratio = 0.33, load_ratio = 0.45, deadline_ms = 10.0 }"
"""A line of the demo's buildspec: a machine that has other work misses deadlines."""
FETCHED: Final = ("apt", "downloads", "packages", "sources", "zig")
"""Parts of the cache that hold only what was fetched."""
PROGRAM: Final = "from ortrim.cli.program import main; main()"


@pytest.fixture
def act(tmp_path: Path) -> Act:
    """Return a runner that has the user's cache, in which a demo that was built before need not be compiled again."""
    made = new_act(tmp_path, cache_folder("builds").parent)
    link_fetched(tmp_path / "cache-of-deliver")
    replace_in(made.clone / "buildspecs" / "silero-vad.toml", BUDGETS, "budgets = { library_ratio = 0.06 }")
    made.commit()
    return made


def link_fetched(cache: Path) -> None:
    cache.mkdir()
    link_parts(cache, {kind: cache_folder(kind) for kind in FETCHED})


def replace_in(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1, old
    path.write_text(text.replace(old, new))


def require_success(done: Completed, test: str = "") -> None:
    """Check that a run ended well, and each script that is listed for a test."""
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
    for script in (script for script, named in BY_ACT.items() if named == test):
        file, job, step = script.split(": ", 2)
        shown = "ci" if job == "required" else job  # act has names, which begin with the job's in all others
        place = ".*" if job == "action" else rf"(\S+/)*{file.removesuffix('.yml')}/{shown}\b.*"
        assert re.search(rf"\[{place}\] +✅ +Success - Main {re.escape(step)} \[", done.stdout), script


def ended(done: Completed) -> dict[str, str]:
    lines = [line for line in done.stdout.splitlines() if "🏁" in line]
    return {line.partition("/")[2].partition("]")[0].strip(): line.rpartition(" ")[2] for line in lines}


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@contextmanager
def github_with(folder: Path) -> Iterator[tuple[FetchService, dict[str, str]]]:
    """Run the stand-in for GitHub's API; give the environment of an app's machine, on which nothing was ever built."""
    (folder / "app").mkdir()
    service = FetchService(VirtualClock())
    own = {"ORTRIM_CACHE": str(folder / "cache-of-app"), "GITHUB_API_URL": service.url, "GH_TOKEN": TOKEN}
    own |= dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
    rest = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "GH_"))}
    with service.running():
        yield service, {**rest, **own}
        check_requests(service)


def fetch(folder: Path, environment: dict[str, str], *words: str) -> dict[str, bytes]:
    argv = (sys.executable, "-c", PROGRAM, "fetch", "--repo", "octo/ort", *words)
    done = run(argv, cwd=folder / "app", environment=environment)
    assert done.returncode == 0, done.stderr
    return files_in(folder / "app" / "ortrim-runtime")


def left_by(act: Act, commit: str = COMMIT) -> tuple[Artifact, ...]:
    """Return the artifacts of a run as GitHub has them."""
    folders = sorted(act.artifacts.iterdir())
    return tuple(stored(number, folder.name, folder, commit) for number, folder in enumerate(folders, start=1))


def test_a_dispatched_build_is_fetched_by_an_app(act: Act, tmp_path: Path) -> None:
    """From the plan to artifacts that are whole; an app then has from the run what it delivered."""
    done = act.dispatch("build.yml", target="linux-x*")
    require_success(done, BUILD)
    assert ended(done) == dict.fromkeys(("plan", "compile linux-x64", "deliver linux-x64"), "succeeded")
    names = {"compiled-silero-vad-linux-x64", "delivered-silero-vad-linux-x64"}
    assert {path.name for path in act.artifacts.iterdir()} == names
    delivery, commit = act.artifacts / "delivered-silero-vad-linux-x64", git(act.clone, "rev-parse", "HEAD").strip()
    check_sums(delivery)
    assert commit in (delivery / FACTS).read_text()
    (key,) = act.notes("saved")
    assert key in act.notes("restored")[0]
    with github_with(tmp_path) as (service, environment):
        left = left_by(act, commit)
        service.template = lambda: RemoteRun(artifacts=left, commit=commit)
        number = service.start("build linux-x64 [1]").id
        service.clock.now += 10
        came = fetch(tmp_path, environment, "--run", str(number))
    delivered = files_in(delivery)
    assert {name: came[name] for name in delivered.keys() - {FACTS, SUMS}} == {
        name: content for name, content in delivered.items() if name not in {FACTS, SUMS}
    }


PAGE: Final = ROOT / "docs" / "guides" / "ci.md"
EXAMPLES: Final = ("runtimes", "runtime", "compile")


@pytest.fixture
def app(tmp_path: Path) -> Act:
    """Return a runner for an app's repository: a buildspec and the workflows of the guide; ortrim is in another."""
    (tmp_path / "program").mkdir()
    program = clean_clone(tmp_path / "program")
    point_to_itself(program, f"{ORTRIM.partition('@')[0]}/{{}}@{ORTRIM.partition('@')[2]}")
    clone = new_repository(tmp_path)
    spec = (ROOT / "buildspecs" / "silero-vad.toml").read_text().replace(BUDGETS, "")
    (clone / "app").mkdir()
    (clone / "app" / "speech.toml").write_text(spec.replace('name = "silero-vad"', 'name = "speech"', 1))
    workflows = clone / ".github" / "workflows"
    workflows.mkdir(parents=True)
    examples = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    for name, text in zip(EXAMPLES, examples, strict=True):
        assert f"name: {name}\n" in text
        assert len(text.splitlines()) <= 22
        (workflows / f"{name}.yml").write_text(text.replace("OWNER/", "octo/").replace(",android", ""))
    act = act_for(clone, tmp_path, cache_folder("builds").parent)
    act.commit()
    act.repositories[ORTRIM] = program
    for action in ("actions/checkout", "actions/upload-artifact"):
        act.repositories[f"{action}@v7"] = act.folder / "actions" / action
    return act


def test_an_app_calls_the_build(app: Act, tmp_path: Path) -> None:
    """As the guide says: the app's buildspec, by the ortrim of a tag; what it delivers is attested, and fetched."""
    use_packages_of_the_tests(app)
    done = app.run("push", "runtimes.yml")
    require_success(done, APP)
    names = ("plan", "compile linux-x64", "deliver linux-x64", "attest linux-x64")
    assert ended(done) == {f"build/{name}": "succeeded" for name in names}
    delivery, commit = app.artifacts / "delivered-speech-linux-x64", git(app.clone, "rev-parse", "HEAD").strip()
    check_sums(delivery)
    assert commit in (delivery / FACTS).read_text()
    assert len(app.notes("attested")) == 1
    with github_with(tmp_path) as (service, environment):
        left = left_by(app, commit)
        path, called = ".github/workflows/runtimes.yml", ("octo/ortrim/.github/workflows/build.yml@v1",)
        service.template = lambda: RemoteRun(artifacts=left, commit=commit, path=path, called=called)
        service.workflows["runtimes.yml"] = Workflow()
        service.start("Say more")
        service.clock.now += 10
        came = fetch(tmp_path, environment, "--latest", "--workflow", "runtimes.yml")
    assert came.keys() >= files_in(delivery).keys() - {FACTS, SUMS}


@pytest.mark.slow
def test_an_app_builds_in_one_job(app: Act) -> None:
    """As the guide says: what the jobs of the workflow do, one after the other, with packages that it installs."""
    app.environment["ORTRIM_CACHE"] = str(app.folder / "cache")
    require_success(app.run("push", "runtime.yml"), ACTION)
    check_sums(app.artifacts / "delivered-speech-linux-x64")


@pytest.mark.slow
def test_a_laptop_has_its_plan_compiled(app: Act, tmp_path: Path) -> None:
    """By the guide's workflow, with the inputs that `build --executor github` sends; the laptop does the rest."""
    use_packages_of_the_tests(app)

    def compile_there(inputs: dict[str, Any]) -> tuple[Artifact, ...]:
        require_success(app.dispatch("compile.yml", **inputs))
        return left_by(app)

    with github_with(tmp_path) as (service, environment):
        service.workflows = {"compile.yml": Workflow(inputs=frozenset({"target", "plan", "correlation_id"}))}
        workflow = DispatchedWork(service, compile_there, ("plan", "compile linux-x64"))
        link_fetched(tmp_path / "cache-of-app")
        words = ("build", "--spec", app.clone / "app" / "speech.toml", "--target", "linux-x64", "--executor", "github")
        argv = (sys.executable, "-c", PROGRAM, *words, "--repo", "octo/ort", "--workflow", "compile.yml")
        done = run(argv, cwd=tmp_path / "app", environment=environment, timeout_seconds=1800)
        assert workflow.errors == []
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    (report,) = (tmp_path / "app").glob("artifacts/speech/*/linux-x64/report.json")
    assert json.loads(report.read_text())["verdict"] == "pass"
    assert [path.name for path in app.artifacts.iterdir()] == ["compiled-speech-linux-x64"]


@pytest.mark.slow
@pytest.mark.needs("qemu-aarch64-static")
def test_a_build_for_arm64_is_verified_in_an_emulator(act: Act) -> None:
    """The runner for it has another label; here it is this machine, which verifies what it cannot run itself."""
    require_success(act.dispatch("build.yml", target="linux-arm64"))
    (report,) = (act.artifacts / "delivered-silero-vad-linux-arm64").glob("*.report.json")
    verdicts = {device["device"]: device["verdict"] for device in json.loads(report.read_text())["devices"]}
    assert {"qemu-user:cortex-a53", "qemu-user:cortex-a76"} <= verdicts.keys()
    assert set(verdicts.values()) == {"pass"}


@pytest.mark.slow
def test_a_compile_that_fails_ends_the_run(act: Act) -> None:
    source = act.clone / "runner" / "runner.c"
    source.write_text(f"{source.read_text()}\n#error broken on purpose\n")
    act.commit()
    done = act.dispatch("build.yml", target="linux-x*")
    assert done.returncode == 1
    assert ended(done) == {"plan": "succeeded", "compile linux-x64": "failed", "deliver linux-x64": "failed"}
    assert "broken on purpose" in done.stdout
    assert "::error title=not-compiled::linux-x64: there is no archive of it" in done.stdout
    assert "No files were found" not in done.stdout
    assert not list(act.artifacts.glob("*"))


@pytest.mark.needs("qemu-arm-static")
def test_a_push_is_tested_and_judged(act: Act) -> None:
    """On both machines, by what `.ci/run` says, which is a stand-in here; the other jobs are left out."""
    script, workflow = act.clone / ".ci" / "run", act.clone / ".github" / "workflows" / "ci.yml"
    replace_in(
        workflow, "needs: [test, fresh, android, android-without-ndk, android-app, apple, windows]", "needs: [test]"
    )
    jobs = ("test on ubuntu-24.04-1", "test on ubuntu-24.04-arm-2", "ci")  # act counts those of a matrix
    for code, how in ((1, "failed"), (0, "succeeded")):
        script.write_text(f"#!/bin/sh\nexit {code}\n")
        act.commit()
        done = act.run("push", "ci.yml", "-j", "required", payload={"ref": "refs/heads/main"})
        assert ended(done) == dict.fromkeys(jobs, how)
        assert ("::error title=job-failed::test: ended with failure" in done.stdout) is bool(code)
    require_success(done, CI)


DYING: Final = """\
import os, signal, sys
if "ci.deliver" in sys.orig_argv:
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_failed_job_is_run_again(act: Act) -> None:
    (act.folder / "start-up.py").write_text(DYING)
    done = act.dispatch("build.yml", target="linux-x*")
    assert ended(done) == {"plan": "succeeded", "compile linux-x64": "succeeded", "deliver linux-x64": "failed"}
    (compiled,) = act.artifacts.iterdir()
    before = files_in(compiled)
    (act.folder / "start-up.py").write_text("")
    require_success(act.dispatch("build.yml", "-j", "deliver", target="linux-x*"))
    assert files_in(compiled) == before
    check_sums(act.artifacts / "delivered-silero-vad-linux-x64")


PATIENCE_SECONDS: Final = 20


@pytest.mark.slow
def test_a_cancelled_run_leaves_no_process(tmp_path: Path) -> None:
    """Cancelled while it compiles: nothing is delivered, and compilers end although act kills the shell alone."""
    link_fetched(tmp_path / "fetched")
    act = new_act(tmp_path, tmp_path / "fetched")
    with act.start("workflow_dispatch", "build.yml") as process:
        assert process.stdout is not None
        assert any(" compiles " in line for line in process.stdout)
        await_true(lambda: any("ninja" in line for line in act.processes()))
        process.send_signal(signal.SIGINT)
        printed = process.stdout.read()
    assert process.returncode == 1
    assert "this step has been cancelled" in printed
    assert "Assemble, package, verify" not in printed
    assert not list(act.artifacts.glob("*"))
    await_true(lambda: not act.processes())


def await_true(question: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE_SECONDS
    while not question():
        assert time.monotonic() < ends
        time.sleep(0.1)


def test_a_signed_tag_is_published(act: Act, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index has what the build uploaded, byte for byte; of a tag that nobody signed nothing is built."""
    git(act.clone, "tag", "v0.1.0")
    git(act.clone, "push", "--quiet", "origin", "v0.1.0")
    pushed = {"ref": "refs/tags/v0.1.0"}
    programs = fake_programs(tmp_path / "programs", monkeypatch)
    act.environment.update(add_hub(programs, tmp_path / "hub.json", tags=("v0.1.0",)))
    done = act.run("push", "publish.yml", payload=pushed)
    assert ended(done)["build"] == "failed"
    assert "::error title=tag-not-signed::v0.1.0: is not signed" in done.stdout
    assert not act.artifacts.exists()
    act.environment["GH_STAND_IN_SIGNED"] = "v0.1.0"
    with package_index(tmp_path / "index") as act.environment["ACT_INDEX"]:
        done = act.run("push", "publish.yml", payload=pushed)
    require_success(done, PUBLISH)
    assert ended(done) == {"build": "succeeded", "publish": "succeeded"}
    uploaded = files_in(act.artifacts / "distributions")
    assert uploaded.keys() == {"ortrim-0.1.0-py3-none-any.whl", "ortrim-0.1.0.tar.gz"}
    assert files_in(tmp_path / "index") == uploaded


@pytest.mark.slow
def test_a_pushed_tag_is_released_and_fetched(act: Act, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Built, attested, drafted, published; an app then fetches from the release what the run delivered, and runs."""
    workflow = act.clone / ".github" / "workflows" / "release.yml"
    specs = "          - buildspecs/multi-model.toml\n          - buildspecs/silero-vad.toml\n"
    replace_in(
        workflow, specs + "          - buildspecs/transformer.toml\n", "          - buildspecs/silero-vad.toml\n"
    )
    replace_in(workflow, 'target: "*"', 'target: "linux-x64"')
    commit = act.commit()
    git(act.clone, "tag", "v0.1.0")
    git(act.clone, "push", "--quiet", "origin", "v0.1.0")
    programs = fake_programs(tmp_path / "programs", monkeypatch)
    act.environment.update(add_hub(programs, tmp_path / "hub.json", tags=("v0.1.0",)))
    require_success(act.run("push", "release.yml", payload={"ref": "refs/tags/v0.1.0"}), RELEASE)
    release = json.loads((tmp_path / "hub.json").read_text())["releases"]["v0.1.0"]
    assert not release["isDraft"]
    assert "| silero-vad-linux-x64 | yes |" in release["body"]
    files = {path.name: path.read_bytes() for path in (tmp_path / "hub.files").iterdir() if path.name != SUMS}
    (attested,) = act.notes("attested")
    assert {line.partition("  ")[2] for line in attested} >= files.keys()
    with github_with(tmp_path) as (service, environment):
        service.release("v0.1.0", files, commit)
        came = fetch(tmp_path, environment, "--release", "v0.1.0", "--spec", "silero-vad", "--target", "linux-x64")
    assert {name: came[name] for name in files} == files
    application = new_application(tmp_path)
    _, archive = sorted((tmp_path / "app" / "ortrim-runtime").glob("*.tar.gz"))  # its symbols lie beside it
    application.configure_with(archive)
    assert application.build_and_run() == "version 1.21.0\n"


@pytest.mark.slow
def test_pins_are_updated_by_schedule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Newer actions and images, a version that the index does not have, the demo built; then one pull request."""
    kept = {path.name: path for path in cache_folder("builds").parent.iterdir() if path.name != "downloads"}
    (tmp_path / "machine").mkdir()
    link_parts(tmp_path / "machine", kept)  # what is downloaded from stand-ins is nothing for the user's cache
    act = new_act(tmp_path, tmp_path / "machine", REDIRECTED)
    for path in (act.clone / "src" / "ortrim" / "pins").glob("onnxruntime-*-upstream.toml"):
        if "-1.21.0-" not in path.name:
            path.unlink()
    act.commit()
    act.environment.update(add_hub(fake_programs(tmp_path / "programs", monkeypatch), tmp_path / "hub.json"))
    settings = repositories(tmp_path / "hub")
    with GitHubService(VirtualClock()).running() as service, googles_list(tmp_path / "google") as google:
        service.token = "ghs_run"  # noqa: S105 - made up
        service.releases = [Release(id=1, tag="v1.99.0", files={})]
        api = "https://api.github.com/repos/microsoft/onnxruntime"
        redirected = json.dumps([[api, f"{service.url}/repos/octo/ort"], [REPOSITORY, google]])
        own = {"GIT_CONFIG_GLOBAL": str(settings), "REDIRECTED": redirected, "NO_PROXY": "127.0.0.1"}
        act.environment.update({**own, "ORTRIM_CACHE": str(tmp_path / "machine")})
        require_success(act.run("schedule", "update-pins.yml"), PINS)
        assert service.objections == []
    (pull,) = json.loads((tmp_path / "hub.json").read_text())["pulls"]
    assert "| 1.99.0 | `no-converter` |" in pull["body"]
    assert "silero-vad for linux-x64" in pull["body"]
    assert git(act.clone, "ls-remote", "origin", pull["head"])
