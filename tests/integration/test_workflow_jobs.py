"""Every script of the workflows that can run within CI's time, as the committed files say it, in a clean clone."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from fake_programs import FakePrograms, fake_programs
from github_service import GitHubService
from github_state import Release, VirtualClock
from ndk_layout import lay_out_ndk
from ortrim.base.cache import cache_folder
from ortrim.base.checksums import SUMS
from ortrim.github.jobs import mark_delivery, with_sums
from ortrim.github.plan_input import decode
from ortrim.package.manifest import ATTESTED as ATTESTED_MARK
from ortrim.pin_updates.new_versions import read_update
from ortrim.pins.shipped import action_pins, image_pins
from ortrim.platforms.android.ndk import REPOSITORY, SDK_VARIABLES, VARIABLES
from ortrim.sources.commits import git
from pin_sources import DIGEST, REDIRECTED, add_hub, googles_list, repositories
from workflow_runner import ROOT, SETUP, Runner, clean_clone, read_workflows, scripts, take_packages_of_the_tests
from workflow_scripts import BY_ACT, BY_ITSELF, NOT_HERE, page

pytestmark = [pytest.mark.network, pytest.mark.needs("git")]

DATA: Final = ROOT / "tests" / "unit" / "pins" / "data"
PAGE: Final = ROOT / "docs" / "dev" / "workflow-scripts.md"
NEW: Final = "1.99.0"
CLEAN: Final = "as-it-was-cloned"
"""A tag of the clone: a runner's own checkout may have no branch."""
ATTESTED: Final = "!github.event.repository.private || vars.ATTEST == 'true'"
UNTAGGED: Final = next(iter(action_pins()))


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = clean_clone(tmp_path_factory.mktemp("clean"))
    take_packages_of_the_tests(made, REDIRECTED)
    git(made, "tag", CLEAN)
    return made


@pytest.fixture(scope="module")
def workflows(clone: Path) -> dict[str, Any]:
    return read_workflows(clone)


@pytest.fixture
def runner(clone: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Runner]:
    """Return a runner in the clone, which is as it was again afterwards; a test runs all scripts listed for it."""
    for name in [name for name in os.environ if name.startswith(("GIT_", "GITHUB_", "GH_", "ORTRIM_", "ANDROID_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    for name in ("output", "summary", "env", "path"):
        (clone.parent / name).unlink(missing_ok=True)
    made = Runner(
        clone=clone, values={"github.token": "ghs_run", "vars.DEBIAN_MIRROR": "https://mirror.invalid/debian"}
    )
    yield made
    git(clone, "reset", "--quiet", "--hard", CLEAN)
    git(clone, "clean", "--quiet", "-ffdx", "--exclude=.venv")
    assert {script for script, test in BY_ITSELF.items() if test == request.function.__name__} <= made.ran


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakePrograms:
    """Have a machine on which nothing is really installed."""
    return fake_programs(tmp_path / "programs", monkeypatch, "apt-get", "sudo", "install")


@pytest.fixture
def hub(tmp_path: Path, programs: FakePrograms, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a `gh`, and a docker that knows one digest; return the file of releases and pull requests."""
    for name, value in add_hub(programs, tmp_path / "hub.json", tags=("v0.1.0",)).items():
        monkeypatch.setenv(name, value)
    return tmp_path / "hub.json"


def run(runner: Runner, workflows: dict[str, Any], file: str, job: str, *only: str, **options: Any) -> None:
    found = workflows[file]["jobs"][job]
    names = {step["name"] for step in found["steps"] if "run" in step and (not only or step["name"] in only)}
    running = {f"{file}: {job}: {name}" for name in names}
    assert running <= BY_ITSELF.keys()
    cache = options.pop("cache", runner.clone.parent / "cache")
    runner.do(found, options.pop("matrix", {}), cache, only=sorted(names), **options)
    runner.ran |= running


def test_a_run_is_planned(runner: Runner, workflows: dict[str, Any]) -> None:
    """The demo for all its targets, with a matrix for later jobs that the next step could read."""
    run(runner, workflows, SETUP, "action")
    runner.values["toJSON(inputs)"] = json.dumps({"target": "linux-*"})
    run(runner, workflows, "build.yml", "plan", cache=cache_folder("builds").parent)
    sent = decode(runner.values["needs.plan.outputs.plan"]).given.spec
    compiled = [entry["target"] for entry in runner.matrix(workflows["build.yml"]["jobs"]["compile"])]
    assert compiled == [target.id for target in sent.targets]
    assert compiled == runner.values["needs.plan.outputs.targets"].split(",")
    assert "linux-riscv64" in compiled


def test_inputs_that_are_not_possible_end_the_run(runner: Runner, workflows: dict[str, Any]) -> None:
    """In the first step, with the code of usage."""
    run(runner, workflows, SETUP, "action")
    runner.values["toJSON(inputs)"] = json.dumps({"target": "linux-x64; reboot"})
    run(runner, workflows, "build.yml", "plan", codes=(2,))
    assert "bad-workflow-inputs" in runner.printed[-1].stderr


def test_ci_prepares_its_machine(runner: Runner, workflows: dict[str, Any], programs: FakePrograms) -> None:
    """With what emulates, where that is missing, and with nothing else."""
    run(runner, workflows, "ci.yml", "test", "Prepare this machine", matrix={"runner": "ubuntu-24.04"})
    assert "prepare for linux-armhf" in runner.printed[-1].stdout
    installing = [call for call in programs.calls if "apt-get" in call[:2] and "install" in call]
    words = {word for call in installing for word in call if not word.startswith("-")}
    assert words <= {"sudo", "apt-get", "install", "qemu-user-static", "debian-archive-keyring"}


def test_ci_checks_everything(runner: Runner, workflows: dict[str, Any], programs: FakePrograms) -> None:
    (runner.clone / "bootstrap").write_text('#!/bin/sh\necho "called: $*"\n')
    git(runner.clone, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "--quiet", "--all", "--message", "called")
    run(runner, workflows, "ci.yml", "test", "Lint, types, tests")
    called = [line for line in runner.printed[-1].stdout.splitlines() if line.startswith("called: ")]
    words = [line.removeprefix("called: ").partition(" --durations")[0] for line in called]
    assert words == [
        "python --version",
        "ruff check",
        "ruff format --check",
        "mypy",
        "invoke build",
        "pytest",
        "pytest tests/integration",
    ]


def test_ci_tests_fresh_systems(runner: Runner, workflows: dict[str, Any], programs: FakePrograms) -> None:
    """In containers that see the checkout and nothing of this machine's environment but who is to run them."""
    programs.add("docker")
    (first, *_) = workflows["ci.yml"]["jobs"]["fresh"]["strategy"]["matrix"]["include"]
    run(runner, workflows, "ci.yml", "fresh", matrix=first)
    (call,) = [call for call in programs.calls if call[0] == "docker"]
    given = ["--volume", f"{runner.clone.resolve()}:/given:ro", "--env", "ACCOUNT", first["image"]]
    assert call == ["docker", "run", "--rm", "--init", *given, "/given/.ci/fresh", "--inside"]


@pytest.fixture
def sdk(programs: FakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have Android's SDK without an NDK, whose phone has started at once; tests are found, and not run."""
    folder = tmp_path / "sdk"
    monkeypatch.setenv("ANDROID_HOME", str(folder))
    for name in ("cmdline-tools/latest/bin/sdkmanager", "cmdline-tools/latest/bin/avdmanager", "platform-tools/adb"):
        programs.add(folder / name)
    programs.add("chmod", "start-stop-daemon")
    programs.answer("adb", "shell", stdout="1\n")
    monkeypatch.setenv("ANDROID_AVD_HOME", str(tmp_path / "avd"))
    monkeypatch.setenv("PYTEST_ADDOPTS", "--collect-only --quiet -p no:cacheprovider")
    return folder


@pytest.mark.needs("javac")
@pytest.mark.parametrize("index", [0, 1])
def test_ci_has_tests_with_each_ndk(
    runner: Runner, workflows: dict[str, Any], programs: FakePrograms, sdk: Path, index: int
) -> None:
    job = workflows["ci.yml"]["jobs"]["android"]
    version = job["strategy"]["matrix"]["ndk"][index]
    assert version.startswith(("27.", "28.")[index])
    lay_out_ndk(sdk / "ndk" / "26.3.11579264", "26.3.11579264")
    program = sdk / "cmdline-tools" / "latest" / "bin" / "sdkmanager"
    lay_out_ndk(sdk.parent / "installed", version)
    program.write_text(f'#!/bin/sh\n[ "$2" = "ndk;{version}" ] && mv "{sdk.parent}/installed" "{sdk}/ndk/{version}"\n')
    run(runner, workflows, "ci.yml", "android", matrix={"ndk": version})
    assert str(sdk / "ndk" / version) in (runner.clone.parent / "env").read_text().splitlines()
    assert "tests/integration/test_android_ndk.py::" in runner.printed[-1].stdout


def test_ci_has_a_test_with_bionic(runner: Runner, workflows: dict[str, Any], sdk: Path) -> None:
    job = workflows["ci.yml"]["jobs"]["android-without-ndk"]
    assert job["env"] == dict.fromkeys((*SDK_VARIABLES, *VARIABLES), "")
    run(runner, workflows, "ci.yml", "android-without-ndk", "Tests that need bionic")
    assert "test_android_app.py::test_the_cpp_compiles_for_android" in runner.printed[-1].stdout


@pytest.mark.needs("javac")
def test_ci_runs_an_app_on_each_phone(
    runner: Runner, workflows: dict[str, Any], programs: FakePrograms, sdk: Path
) -> None:
    """Three images are there; whichever is started, later steps reach it, and the test is there."""
    job = workflows["ci.yml"]["jobs"]["android-app"]
    levels = job["strategy"]["matrix"]["api"]
    assert levels == [24, 29, 35]
    for level in levels:
        run(runner, workflows, "ci.yml", "android-app", matrix={"api": level})
        (image,) = [call[-1] for call in programs.calls if "emulator" in call[2:] and f"android-{level};" in call[-1]]
        assert image.endswith(";x86_64")
        assert "test_android_app.py::test_both_apis_give_parity_on_a_phone" in runner.printed[-1].stdout
    assert (runner.clone.parent / "path").read_text() == f"{sdk / 'platform-tools'}\n" * len(levels)


@pytest.mark.parametrize(("result", "code"), [("success", 0), ("failure", 19), ("skipped", 19)])
def test_ci_is_judged(runner: Runner, workflows: dict[str, Any], result: str, code: int) -> None:
    needs = workflows["ci.yml"]["jobs"]["required"]["needs"]
    results = {name: {"result": "success", "outputs": {}} for name in needs}
    runner.values["toJSON(needs)"] = json.dumps({**results, needs[-1]: {"result": result, "outputs": {}}})
    run(runner, workflows, "ci.yml", "required", codes=(code,))


def test_a_release_is_drafted_and_published(runner: Runner, workflows: dict[str, Any], hub: Path) -> None:
    for target in ("linux-x64", "linux-arm64", "linux-armhf"):
        folder = runner.clone / "deliveries" / f"delivered-silero-vad-{target}"
        folder.mkdir(parents=True)
        (folder / f"silero-vad-{target}.tar.gz").write_text(target)
        mark_delivery(folder, "parity-lost" if target == "linux-armhf" else "")
    mark = runner.clone / "deliveries" / f"{ATTESTED_MARK}delivered-silero-vad-linux-x64"
    mark.mkdir()
    shutil.copyfile(mark.with_name("delivered-silero-vad-linux-x64") / SUMS, mark / SUMS)
    runner.values["github.ref_name"] = "v0.1.0"
    runner.values[ATTESTED] = "true"
    run(runner, workflows, "release.yml", "draft")
    release = json.loads(hub.read_text())["releases"]["v0.1.0"]
    names = [asset["name"] for asset in release["assets"]]
    assert sorted(names) == ["SHA256SUMS", "silero-vad-linux-arm64.tar.gz", "silero-vad-linux-x64.tar.gz"]
    assert release["isDraft"]
    rows = ("linux-x64 | yes", "linux-armhf | no: parity-lost", "android | no: its jobs left nothing")
    unattested = "linux-arm64 | yes, but its attestation failed"
    assert [row for row in (*rows, unattested) if f"| silero-vad-{row} |" not in release["body"]] == []
    assert "Not attested" not in release["body"]
    runner.values[ATTESTED] = "false"
    (runner.clone / "deliveries" / "delivered-silero-vad-linux-x64" / "more.txt").write_text("more")
    with_sums(runner.clone / "deliveries" / "delivered-silero-vad-linux-x64")
    run(runner, workflows, "release.yml", "draft")
    again = json.loads(hub.read_text())["releases"]["v0.1.0"]
    assert {asset["name"] for asset in again["assets"]} == {*names, "more.txt"}
    assert "Not attested: the repository is private" in again["body"]
    run(runner, workflows, "release.yml", "publish")
    assert not json.loads(hub.read_text())["releases"]["v0.1.0"]["isDraft"]
    for job in ("draft", "publish"):
        run(runner, workflows, "release.yml", job, codes=(21,))
    assert not json.loads(hub.read_text())["releases"]["v0.1.0"]["isDraft"]
    assert "ghs_run" not in hub.read_text()


def test_a_tag_that_is_not_there_is_not_released(runner: Runner, workflows: dict[str, Any], hub: Path) -> None:
    """In the words of `gh`; nothing is drafted."""
    folder = runner.clone / "deliveries" / "delivered-x"
    folder.mkdir(parents=True)
    (folder / "x.tar.gz").write_text("x")
    with_sums(folder)
    (runner.clone / "CHANGELOG.md").write_text("## 0.2.0\n\n- more\n")
    runner.values |= {"github.ref_name": "v0.2.0", ATTESTED: "true"}
    run(runner, workflows, "release.yml", "draft", codes=(21,))
    assert "--verify-tag" in runner.printed[-1].stderr
    assert json.loads(hub.read_text())["releases"] == {}


def test_pins_are_updated_and_proposed(
    runner: Runner, workflows: dict[str, Any], hub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Actions, images, a version that upstream lists; then one pull request, with the reports' comparison."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(repositories(tmp_path / "hub", untagged=UNTAGGED)))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with GitHubService(VirtualClock()).running() as service, googles_list(tmp_path / "google") as google:
        service.token = "ghs_run"  # noqa: S105 - made up
        service.releases = [Release(id=1, tag=f"v{NEW}", files={}), Release(id=2, tag="v1.20.0", files={})]
        api = "https://api.github.com/repos/microsoft/onnxruntime"
        monkeypatch.setenv("REDIRECTED", json.dumps([[api, f"{service.url}/repos/octo/ort"], [REPOSITORY, google]]))
        run(runner, workflows, "update-pins.yml", "update", "Pin newer actions", codes=(14,))
        names = ("Pin newer images", "Pin newer versions of ONNX Runtime")
        run(runner, workflows, "update-pins.yml", "update", *names)
        assert service.lines() == ["GET /repos/octo/ort/releases 200"]
        assert service.objections == []
    require_refused(runner.clone / "artifacts" / "proposal")
    lay_out_reports(runner.clone / "artifacts" / "proposal")
    carry_over(runner.clone, workflows["update-pins.yml"]["jobs"])
    runner.values["toJSON(needs)"] = json.dumps({"update": {"result": "failure", "outputs": {}}})
    run(runner, workflows, "update-pins.yml", "propose")
    (pull,) = json.loads(hub.read_text())["pulls"]
    for words in (
        f"| {NEW} | `no-converter` |", "silero-vad for linux-x64", "run `invoke workflows` on this branch",
        "Not everything could be brought up to date",
    ):  # fmt: skip
        assert words in pull["body"]
    changed = git(runner.clone, "diff", "--name-only", CLEAN, f"origin/{pull['head']}").split()
    assert changed == ["src/ortrim/pins/actions.toml", "src/ortrim/pins/images.toml"]
    pins = git(runner.clone, "show", *(f"origin/{pull['head']}:{name}" for name in changed))
    assert pins.count("v99.0.0") == len(action_pins()) - 1
    assert pins.count(DIGEST) == len(image_pins().bases)


def require_refused(proposal: Path) -> None:
    """Check that the one new version was refused, for the right reason."""
    update = read_update(proposal)
    assert update is not None
    assert [(each.version, each.reference) for each in update.refused] == [(NEW, "no-converter")]


def carry_over(clone: Path, jobs: dict[str, Any]) -> None:
    """Have a clean checkout, with what the job before uploaded where the workflow unpacks it."""
    uploaded, there = (
        step["with"]["path"]
        for name, action in (("update", "upload-artifact@"), ("propose", "download-artifact@"))
        for step in jobs[name]["steps"]
        if action in step.get("uses", "")
    )
    for pattern in uploaded.split():
        for path in clone.glob(f"{pattern}**/*" if pattern.endswith("/") else pattern):
            target = clone / there / path.relative_to(clone)
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.is_file():
                shutil.copyfile(path, target)
    shutil.rmtree(clone / "artifacts")
    git(clone, "reset", "--quiet", "--hard", CLEAN)


def lay_out_reports(proposal: Path) -> None:
    for name in ("last", "newest"):
        (proposal / name).mkdir()
        (proposal / name / "report.json").write_bytes((DATA / f"against-{name}.json").read_bytes())


def test_no_script_is_forgotten(workflows: dict[str, Any]) -> None:
    """Each is run above or by act, or it is said what that takes."""
    run_here = BY_ITSELF.keys() | BY_ACT.keys()
    assert scripts(workflows) == run_here | NOT_HERE.keys()
    assert NOT_HERE.keys().isdisjoint(run_here)
    for tests, module in ((BY_ITSELF, Path(__file__)), (BY_ACT, Path(__file__).with_name("test_workflows_run.py"))):
        text = module.read_text(encoding="utf-8")
        assert [test for test in tests.values() if f"\ndef {test}(" not in text] == []


def test_the_page_of_scripts_is_up_to_date(workflows: dict[str, Any]) -> None:
    text = page(scripts(workflows))
    if os.environ.get("ORTRIM_WRITE_DOCS"):
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text
