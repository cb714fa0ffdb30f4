"""What a Mac alone can show: a simulator that runs the real runner, and Xcode that takes our project."""

import json
import platform
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import onnxruntime
import pytest

from failing_runs import run_refused
from fake_runtime import HEADERS, SOURCES, VALUES, fake_request
from ortrim.base.command import run
from ortrim.base.files import shipped_folder
from ortrim.base.tools import find_xcrun
from ortrim.buildspec.targets import TARGETS
from ortrim.devices.devicectl import phone_content
from ortrim.devices.harness import HarnessContent
from ortrim.devices.harness_projects import make_phone_harness
from ortrim.devices.host import MacHost
from ortrim.devices.kinds import on_mac_of
from ortrim.devices.simctl import SIMCTL, SimulatorDevice, list_simulators, open_simulator
from ortrim.parity.inputs import load_array
from ortrim.parity.runner import RunRequest
from ortrim.pins.runtime import runtime_pins
from ortrim.sources.sources import fetch_sources

pytestmark = [pytest.mark.network, pytest.mark.needs("xcrun")]
ARCHITECTURE: Final = platform.machine()
MINIMUM: Final = "15.1"
TRIPLES: Final = {
    "iphonesimulator": f"{ARCHITECTURE}-apple-ios{MINIMUM}-simulator",
    "macosx": f"{ARCHITECTURE}-apple-macos13.3",
}


def headers() -> Path:
    return fetch_sources(runtime_pins(onnxruntime.__version__), "auto").folder / HEADERS


def compiled(folder: Path, sdk: str) -> Path:
    """Compile the runner, and a library that behaves as its "model" says."""
    folder.mkdir()
    common = ("xcrun", "--sdk", sdk, "clang", "-target", TRIPLES[sdk], "-std=c11", "-O1", f"-I{headers()}")
    sources = sorted(shipped_folder("runner").glob("*.c"))
    _compile(common, *sources, "-o", folder / "runner")
    _compile(common, "-shared", SOURCES / "fake_runtime.c", "-o", folder / "libfake.so")
    return folder


def _compile(common: tuple[str, ...], *words: str | Path) -> None:
    done = run((*common, *words))
    assert done.returncode == 0, done.stderr


@pytest.fixture(name="programs", scope="module")
def fixture_programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("programs") / "simulator", "iphonesimulator")


@pytest.fixture(name="simulator", scope="module")
def fixture_simulator() -> Iterator[SimulatorDevice]:
    with closing(open_simulator("", ARCHITECTURE, announce=print)) as device:
        yield device


def checked(device: SimulatorDevice | MacHost, request: RunRequest) -> None:
    """Run what negates nothing and check that its outputs came back, with a footprint."""
    output = device.run(request)
    assert request.outputs is not None
    (saved,) = output.cases[0].outputs
    assert saved.file is not None
    found = load_array(request.outputs / "only" / saved.file)
    assert found.shape == VALUES.shape
    assert output.memory.peak_source == "phys_footprint"
    assert output.memory.peak_rss_bytes >= (output.memory.loaded_rss_bytes or 0) > 0


def test_a_run_in_a_simulator(simulator: SimulatorDevice, programs: Path, tmp_path: Path) -> None:
    """The runner's numbers come back, and the facts say whose they are."""
    checked(simulator, fake_request(tmp_path, programs, "good"))
    facts = simulator.facts()
    assert (facts.kind, facts.system) == ("simulator", "Darwin")
    assert facts.os_version.startswith("iOS ")
    assert facts.memory_bytes > 10**9


@pytest.mark.parametrize(
    ("behaviour", "reference"),
    [("crash", "runner-crashed"), ("abort", "runner-crashed"), ("refuse", "model-refused")],
)
def test_ends_in_a_simulator(
    simulator: SimulatorDevice, programs: Path, tmp_path: Path, behaviour: str, reference: str
) -> None:
    """Simctl tells of them as it is taken to."""
    assert run_refused(simulator, fake_request(tmp_path, programs, behaviour)).code == reference


def test_a_hanging_runner_is_ended_in_a_simulator(simulator: SimulatorDevice, programs: Path, tmp_path: Path) -> None:
    error = run_refused(simulator, fake_request(tmp_path, programs, "hang", seconds=3))
    assert error.code == "runner-timeout"
    assert str(tmp_path) not in run(("ps", "-axww", "-o", "args=")).stdout


def test_a_simulator_is_left_as_it_was_found() -> None:
    """One that was shut down is shut down again."""
    xcrun = find_xcrun(SIMCTL)
    before = {each.udid for each in list_simulators(xcrun, ARCHITECTURE) if each.booted}
    open_simulator("", ARCHITECTURE).close()
    assert {each.udid for each in list_simulators(xcrun, ARCHITECTURE) if each.booted} == before


def test_a_run_on_the_mac_itself(tmp_path: Path) -> None:
    checked(MacHost(), fake_request(tmp_path, compiled(tmp_path / "mac", "macosx"), "good"))
    assert MacHost().facts().os_version.startswith("macOS ")
    assert on_mac_of(TARGETS[f"ios-simulator-{ARCHITECTURE}"])


def test_xcode_compiles_the_app_and_its_test(programs: Path, tmp_path: Path) -> None:
    """For a simulator, which needs no signature."""
    request = fake_request(tmp_path, programs, "good")
    content: HarnessContent = phone_content((replace(request, outputs=None), request))
    place = tmp_path / "harness"
    harness = make_phone_harness(content, place, headers=headers(), architecture=ARCHITECTURE, minimum=MINIMUM)
    done = run(
        (
            *("xcodebuild", "build-for-testing", "-project", "Harness.xcodeproj", "-scheme", "Harness"),
            *("-destination", "generic/platform=iOS Simulator", "-derivedDataPath", "build", "CODE_SIGNING_ALLOWED=NO"),
        ),
        cwd=harness,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    products = harness / "build/Build/Products"
    app = products / "Release-iphonesimulator/Harness.app"
    assert json.loads((app / "ortrim/requests.json").read_text()) == json.loads(content.requests)
    assert [path.name for path in (app / "Frameworks").glob("libortrim_*.dylib")] == list(content.libraries)
    assert (products / "Release-iphonesimulator/HarnessUITests-Runner.app").is_dir()
    assert list(products.glob("*.xctestrun"))
