"""The app for device farms, compiled and run for real: in a plain Java virtual machine in the place of Android."""

import json
import re
import zipfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from android_tools import aapt2, framework
from failing_runs import error_of, output_of
from fake_runtime import VALUES, Programs, fake_request
from harness_java import JavaFarm, JavaHarness, android_jar, compile_for_android, compiled_harness, install
from ortrim.base.command import run
from ortrim.base.console import Console
from ortrim.binaries.elf import read_library
from ortrim.buildspec.buildspec import Budgets
from ortrim.cli.options import request_from
from ortrim.devices.device import Outcome
from ortrim.devices.farms.farm import FarmDevice, FarmJob, FarmRun, Tell
from ortrim.devices.harness import decode, harness_content, read_results
from ortrim.devices.harness_projects import make_harness
from ortrim.parity.inputs import load_array
from ortrim.parity.measurements import Verdict
from ortrim.parity.runner import Repetition, RunRequest
from ortrim.pipeline.building import executor_for
from ortrim.pipeline.verification import _subjects
from ortrim.planning.planned import planned_for
from ortrim.platforms.android.jni import Jdk, find_jdk
from ortrim.verify.measure import own_baseline
from ortrim.verify.target import Delivery, Task, verify_on
from sample_tasks import SIZE

pytestmark = [pytest.mark.network, pytest.mark.needs("apt-get", "dpkg-deb", "java", "javac")]
Requested = Callable[..., RunRequest]
TARGET: Final = "linux-x64"


@pytest.fixture(name="jdk", scope="module")
def fixture_jdk() -> Jdk:
    return find_jdk()


@pytest.fixture(name="harness", scope="module")
def fixture_harness(jdk: Jdk, tmp_path_factory: pytest.TempPathFactory) -> JavaHarness:
    return compiled_harness(jdk, tmp_path_factory.mktemp("classes"))


@pytest.fixture(name="farm")
def fixture_farm(harness: JavaHarness, tmp_path: Path) -> JavaFarm:
    return JavaFarm(harness, tmp_path / "farm")


@pytest.fixture(name="requested")
def fixture_requested(programs: Programs, tmp_path: Path) -> Requested:

    def make(behaviour: str, seconds: float = 60.0) -> RunRequest:
        return fake_request(tmp_path / behaviour, programs(TARGET), behaviour, seconds=seconds)

    return make


Ends = Callable[..., list[Outcome]]


@pytest.fixture(name="ends")
def fixture_ends(farm: JavaFarm, tmp_path: Path) -> Ends:
    """Run requests on the farm's phone, and return what each ended with."""
    return lambda *requests: list(phone(farm, tmp_path).run_all(requests))


def phone(farm: JavaFarm, folder: Path) -> FarmDevice:
    return FarmDevice(farm=farm, device="Pixel8-34", make_apks=farm.make_apks, folder=folder / "came")


@pytest.mark.build
def test_the_demo_passes_on_a_farm(farm: JavaFarm, programs: Programs, tmp_path: Path) -> None:
    """The trimmed library, the official one beside it, all cases of the demo: parity is that of the files that came."""
    request = request_from(None, target=TARGET, output=str(tmp_path / "artifacts"))
    console = Console()
    planned = planned_for(request, console, to_run=True)
    (target,) = planned.plan.targets
    with console.step("build") as step:
        result = executor_for(planned, target, request, step).run(target.job)
        subjects = _subjects(planned, target.job.target, step)
    task = Task(
        built=result,
        delivery=Delivery(
            archive=result.library, library=result.library, facts=read_library(result.library), gates=(), size=SIZE
        ),
        subjects=subjects,
        budgets=Budgets(peak_rss_ratio=0.9),
        baseline=own_baseline(planned.models.runtime),
        baseline_size=SIZE,
        runner=programs(TARGET) / "runner",
        folder=tmp_path / "outputs",
        repetition=Repetition(runs=3, warmup=1, seconds=0.2),
        trace=True,
    )
    with closing(phone(farm, tmp_path)) as device:
        report = verify_on(device, task)
    assert report.verdict is Verdict.PASS
    assert {output.verdict for output in report.parity} == {Verdict.PASS}
    assert {output.case for output in report.parity} == {case.name for case in planned.cases[0]}
    assert [run.library for run in report.runs] == ["ours", "baseline"]
    assert (tmp_path / report.traces[0]).is_file()
    assert report.host is not None
    assert (report.host.system, report.host.memory_bytes > 10**8) == ("Linux", True)


def test_the_files_are_those_that_the_runner_wrote(ends: Ends, requested: Requested, tmp_path: Path) -> None:
    """Whatever the files of a case are called; the phone keeps nothing of them."""
    request = requested("good")
    for name in ("_hidden", "in put", "ärger.gz"):
        (request.cases[0].folder / name).write_bytes(name.encode())
    output = output_of(ends(request)[0])
    assert output.cases[0].runs == 3
    assert np.array_equal(load_array(tmp_path / "good/outputs/only/output_000.npy"), 2 * VALUES)
    work = tmp_path / "farm" / "phone" / "work"
    assert [path for path in work.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("behaviour", "reference"),
    [
        ("crash", "runner-crashed"),
        ("abort", "runner-crashed"),
        ("kill", "runner-crashed"),
        ("illegal", "illegal-instruction"),
        ("refuse", "model-refused"),
        ("quit 42", "runner-failed"),
        ("quit 0", "runner-garbage"),
        ("half", "runner-garbage"),
        ("hang", "runner-timeout"),
        ("endless", "endless-output"),
    ],
)
def test_a_bad_end_is_reported_as_on_any_device(
    ends: Ends, requested: Requested, farm: JavaFarm, behaviour: str, reference: str
) -> None:
    """With the real runner, and the run behind it is well."""
    bad, good = requested(behaviour, 2 if behaviour == "hang" else 60), requested("good")
    first, second = ends(bad, good)
    assert error_of(first).code == reference
    assert output_of(second).status == "ok"


def test_a_runner_for_another_machine(ends: Ends, requested: Requested, tmp_path: Path) -> None:
    """It is not startable, and that the instrumentation fails makes no difference to what is said."""
    runner = tmp_path / "foreign"
    runner.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\0\xf3\0")
    request = replace(requested("good"), runner=runner)
    assert error_of(ends(request)[0]).code == "runner-not-startable"


def test_a_phone_that_throttled(requested: Requested, farm: JavaFarm, tmp_path: Path) -> None:
    farm.thermal = 3
    request = requested("good")
    device = phone(farm, tmp_path)
    assert len(list(device.run_all((request,)))) == 1
    assert device.heat == "the device throttles (thermal status 3, severe)"


def test_a_library_that_gradle_altered(farm: JavaFarm, requested: Requested, tmp_path: Path) -> None:
    """Is not measured: the runs are refused with both digests."""

    class Stripping(JavaFarm):
        """A farm whose app was packed with another library."""

        def run(self, job: FarmJob, tell: Tell) -> FarmRun:
            with zipfile.ZipFile(job.app, "a") as archive:
                name = next(name for name in archive.namelist() if "libortrim_" in name and "runner" not in name)
                with pytest.warns(UserWarning, match="Duplicate"):
                    archive.writestr(name, b"stripped")
            return super().run(job, tell)

    request = requested("good")
    device = phone(Stripping(farm.harness, tmp_path / "stripping"), tmp_path)
    error = error_of(next(device.run_all((request,))))
    assert error.code == "farm-run-missing"
    assert re.fullmatch(r"libortrim_\w+\.so is not what was sent: SHA-256 \w{64}, not \w{64}", error.why)


def test_the_log_carries_the_results(ends: Ends, requested: Requested, farm: JavaFarm, tmp_path: Path) -> None:
    """For farms that bring back nothing else: no line is too long, and what is read from them is all of it."""
    request = requested("good")
    ends(request)
    lines = farm.printed.splitlines()
    assert max(map(len, lines)) < 4000
    payload = decode(lines)
    assert payload is not None
    (tmp_path / "results.zip").write_bytes(payload)
    with zipfile.ZipFile(tmp_path / "results.zip") as archive:
        came = {name: archive.read(name) for name in archive.namelist()}
    folder = tmp_path / "came"
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert came == {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_it_says_how_far_it_is(ends: Ends, requested: Requested, farm: JavaFarm) -> None:
    """Before each run, so that a farm sees an instrumentation that goes on."""
    ends(requested("good"), requested("refuse"))
    told = [line.partition("progress: ")[2] for line in farm.printed.splitlines() if "progress: " in line]
    assert told == ["run 1 of 2", "run 2 of 2"]


def test_results_go_where_they_can(harness: JavaHarness, farm: JavaFarm, requested: Requested, tmp_path: Path) -> None:
    """The folder that is asked for may be out of the app's reach; then the next one is taken, and the log says so."""
    app, _ = farm.make_apks(harness_content((requested("good"),)))
    assets, native = install(app, tmp_path / "phone")
    (tmp_path / "file").write_bytes(b"")
    done = harness.run(assets, native, tmp_path / "work", tmp_path / "file" / "results", tmp_path / "second")
    assert done.returncode == 0, done.stderr
    assert f"results go to {tmp_path / 'second'}" in done.stdout
    assert json.loads((tmp_path / "second" / "results.json").read_text())["complete"] is True


def test_the_time_for_all_runs_ends(harness: JavaHarness, farm: JavaFarm, requested: Requested, tmp_path: Path) -> None:
    """A run under way is stopped, no other is begun, and what was done is there."""
    content = harness_content((requested("good"), requested("hang"), requested("good")))
    document = json.loads(content.requests) | {"seconds": 3}
    app, _ = farm.make_apks(replace(content, requests=json.dumps(document)))
    assets, native = install(app, tmp_path / "phone")
    done = harness.run(assets, native, tmp_path / "work", tmp_path / "results")
    assert done.returncode == 1
    results = json.loads((tmp_path / "results" / "results.json").read_text())
    assert [run["how"] for run in results["runs"]] == ["exit", "timeout"]
    assert results["problem"] == "after 2 of 3 runs their time was used up"
    assert results["complete"] is True


@pytest.mark.parametrize("document", ["", "[]", "{}", '{"schema": "ortrim-requests/2"}'])
def test_requests_that_cannot_be_read(harness: JavaHarness, tmp_path: Path, document: str) -> None:
    (tmp_path / "assets" / "ortrim").mkdir(parents=True)
    (tmp_path / "assets" / "ortrim" / "requests.json").write_text(document)
    done = harness.run(tmp_path / "assets", tmp_path, tmp_path / "work", tmp_path / "results")
    assert done.returncode == 1, done.stderr
    results = json.loads((tmp_path / "results" / "results.json").read_text())
    assert (results["runs"], results["problem"] != "") == ([], True)


def test_an_app_that_is_killed_leaves_what_was_done(
    harness: JavaHarness, farm: JavaFarm, requested: Requested, tmp_path: Path
) -> None:
    """Whole runs, in a file that can be read."""
    content = harness_content((requested("good"), requested("hang"), requested("good")))
    app, _ = farm.make_apks(content)
    assets, native = install(app, tmp_path / "phone")
    results = tmp_path / "results"
    # Android ends an app with all that it has started.
    kill = "kill -KILL $1 $(cat /proc/$1/task/*/children)"
    wait_and_kill = f"while [ ! -e {results}/runs/000 ]; do sleep 0.1; done; sleep 1; {kill}"
    words = harness.words(assets, native, tmp_path / "work", results)
    run(("sh", "-c", f'"$@" & p=$!; set -- $p; {wait_and_kill}; wait $p', "sh", *words), timeout_seconds=60)
    came = read_results(results, content, "here")
    assert ([each.how for each in came.runs], came.complete, came.host.system) == (["exit"], False, "Linux")


def test_all_of_it_compiles(jdk: Jdk, tmp_path: Path) -> None:
    """The screen, what asks Android, and the test that a farm starts, for the version of Java that Android has."""
    done = compile_for_android(jdk, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    made = {path.stem for path in (tmp_path / "classes" / "ortrim" / "harness").glob("*.class")}
    assert {"AndroidPlatform", "StartActivity", "RequestsTest", "Harness"} <= made


def test_it_asks_android_for_no_more_than_android_6_has(jdk: Jdk, tmp_path: Path) -> None:
    """Compiled against the real classes of API level 23, Java's own among them; what is newer is asked for by name."""
    android = android_jar()
    if android is None:
        pytest.skip("Debian's mirrors do not have Android's classes any more")
    done = compile_for_android(jdk, tmp_path, android)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_manifest_is_taken_by_androids_own_tool(requested: Requested, tmp_path: Path) -> None:
    """As Gradle hands it over: with the package's name and the levels in it."""
    content = harness_content((requested("good"),))
    project = make_harness(content, tmp_path / "project", abi="arm64-v8a", api=24)
    text = (project / "app/src/main/AndroidManifest.xml").read_text()
    (tmp_path / "AndroidManifest.xml").write_text(text.replace("<manifest ", '<manifest package="ortrim.harness" '))
    words = ("--manifest", tmp_path / "AndroidManifest.xml", "-I", framework(), "--min-sdk-version", "24")
    done = aapt2("link", *words, "--target-sdk-version", "35", "-o", tmp_path / "app.apk")
    assert done.returncode == 0, done.stderr
    told = aapt2("dump", "badging", tmp_path / "app.apk")
    assert "launchable-activity: name='ortrim.harness.StartActivity'" in told.stdout
    assert "uses-permission: name='android.permission.WRITE_EXTERNAL_STORAGE' maxSdkVersion='29'" in told.stdout
