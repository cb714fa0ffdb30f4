"""The main job for real, through the command line: the demo is compiled, killed, resumed, packaged and verified."""

import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from ortrim.base.cache import cache_folder
from ortrim.base.command import Completed, run, stream
from ortrim.base.files import sha256_of
from ortrim.base.scripts import packages_folder
from ortrim.binaries.elf import read_library
from ortrim.pins.shipped import tool_requirements
from own_caches import FETCHED_OR_COMPILED, link_parts, own_cache
from static_programs import CLOSES, CRASHES, IN_C, IN_CXX, SAID_IN_C, SAID_IN_CXX, linked, said

pytestmark = [pytest.mark.alone, pytest.mark.build, pytest.mark.network]

ROOT: Final = Path(__file__).parents[2]
PUBLIC_API: Final = {"OrtGetApiBase", "OrtSessionOptionsAppendExecutionProvider_CPU"}
IN_THE_MIDDLE: Final = re.compile(r"build linux-\w+: [2-9]\d %")
NINJA_STEP: Final = re.compile(r"^\[(\d+)/(\d+)\]", re.MULTILINE)
BUILD_SECONDS: Final = 1800.0

# The glibc is the demo's: another would be another compiler, for which nothing was compiled before.
UNSEEN: Final = """
budgets = { library_ratio = 0.07, peak_rss_ratio = 0.4 }
targets = [{ id = "linux-x64", glibc = "2.28" }, { id = "linux-arm64", glibc = "2.28" }]

[[models]]
name = "digits"
path = "models/digits.onnx"

[[models.cases]]
name = "several"
dimensions = { batch = 3 }
"""

STATIC: Final = '[[targets]]\nid = "linux-x64"\nglibc = "2.28"\nlinkage = "static"\n'

Environment = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Interrupted:
    """A build that was killed: the highest step that ninja had reached, and of how many."""

    done: int
    total: int


@dataclass(frozen=True, kw_only=True)
class Built:
    """A finished build: its folder, its report, and what it had left to do after the interruption."""

    folder: Path
    report: dict[str, Any]
    package: Path
    remaining: int


def command(output: Path) -> list[str]:
    return [sys.executable, "-m", "invoke", "build", "--json", "--output", str(output)]


def build(output: Path, environment: Environment) -> Completed:
    return run(command(output), cwd=ROOT, environment=environment, timeout_seconds=BUILD_SECONDS)


def report_of(done: Completed) -> dict[str, Any]:
    """Return the one report that standard output holds."""
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)["reports"]
    assert isinstance(report, dict)
    return report


def device_of(report: dict[str, Any]) -> dict[str, Any]:
    (device,) = report["devices"]
    assert isinstance(device, dict)
    return device


def steps(folder: Path) -> tuple[int, int]:
    """Return how far ninja came, by the log of a build."""
    (log,) = folder.rglob("build.log")
    found = [(int(done), int(total)) for done, total in NINJA_STEP.findall(log.read_text())]
    return found[-1]


def processes_of(*folders: Path) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if any(str(folder).encode() in entry.read_bytes() for folder in folders):
                found.append(int(entry.parent.name))
        except OSError:
            continue  # ended meanwhile, or somebody else's
    return found


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def environment(cache: Path) -> Iterator[Environment]:
    """Give the environment of the builds, with a place of its own for what a killed build leaves there."""
    with own_cache(cache, *FETCHED_OR_COMPILED) as environment, tempfile.TemporaryDirectory(prefix="ortrim-") as folder:
        yield environment | {"TMPDIR": folder}
        for process in processes_of(cache, (cache / "trees").resolve()):
            os.kill(process, signal.SIGKILL)


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("output")


@pytest.fixture(scope="module")
def interrupted(output: Path, environment: Environment) -> Interrupted:
    """Start a build and kill it, and nothing but it, when a good part is compiled."""
    lines: list[str] = []

    def on_line(line: str) -> None:
        lines.append(line)
        if IN_THE_MIDDLE.search(line):
            os.kill(int(lines[0]), signal.SIGKILL)

    words = ["/bin/sh", "-c", 'echo $$; exec "$@"', "sh", *command(output)]
    assert stream(words, on_line, cwd=ROOT, environment=environment) == -signal.SIGKILL, lines
    done, total = steps(output)
    return Interrupted(done=done, total=total)


@pytest.fixture(scope="module")
def built(output: Path, environment: Environment, interrupted: Interrupted) -> Built:
    """Run the command of the killed build again, at once."""
    report = report_of(build(output, environment))
    folder = output / report["name"] / report["plan_digest"][:12] / report["target"]
    package = folder / report["package"].removesuffix(".tar.gz")
    return Built(folder=folder, report=report, package=package, remaining=steps(output)[1])


@pytest.fixture(scope="module")
def unpacked(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    assert run(("tar", "-x", "-f", built.folder / built.report["package"], "-C", folder)).returncode == 0
    (package,) = folder.iterdir()
    return package


def test_a_killed_build_goes_on(interrupted: Interrupted, built: Built, cache: Path) -> None:
    assert built.report["verdict"] == "pass"
    assert built.remaining < interrupted.total - interrupted.done / 2
    assert [entry.name for entry in (cache / "builds").iterdir() if "work" in entry.name and entry.is_dir()] == []
    assert list((cache / "builds").glob(".*.partial-*")) == []


def test_the_demo_is_small_and_lean(built: Built) -> None:
    """The library is at most 9 % of the official one, and peak memory at most 40 % of the baseline's."""
    lines = (*built.report["comparisons"], *device_of(built.report)["comparisons"])
    ratios = {line["measure"]: line["ratio"] for line in lines}
    assert ratios["library"] <= 0.09
    assert ratios["peak RSS"] <= 0.40
    assert built.report["baseline_size"]["file_bytes"] == 20_571_088
    assert (built.package / "lib" / "libonnxruntime.so").stat().st_size == built.report["size"]["file_bytes"]


def size_data(environment: Environment, *words: str | Path) -> dict[str, Any]:
    done = run((sys.executable, "-m", "invoke", "size", *words, "--json"), cwd=ROOT, environment=environment)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert isinstance(data, dict)
    return data


def test_every_byte_of_the_demo_is_accounted_for(built: Built, environment: Environment) -> None:
    """The packaged library finds the map of its build; its parts sum to the file, and hardly any belong nowhere."""
    file_bytes = (built.package / "lib" / "libonnxruntime.so").stat().st_size
    data = {by: size_data(environment, built.package, "--by", by) for by in ("component", "operator", "file", "symbol")}
    for each in data.values():
        assert each["link_map"].endswith("link.map")
        assert each["notes"] == []
        assert sum(entry["size_bytes"] for entry in each["entries"]) == each["file_bytes"] == file_bytes
    components = {entry["name"]: entry["size_bytes"] for entry in data["component"]["entries"]}
    assert set(components) > {"framework", "session", "c api", "mlas", "providers", "onnx", "protobuf", "libc++"}
    assert components.get("other", 0) < 500
    assert {"Conv", "If"} < {entry["name"] for entry in data["operator"]["entries"]}
    assert size_data(environment, "--diff", built.package, built.package)["entries"] == []


def test_the_demo_is_in_the_history(built: Built, output: Path, environment: Environment) -> None:
    words = (sys.executable, "-m", "invoke", "history", "--output", output, "--json")
    done = run(words, cwd=ROOT, environment=environment)
    assert done.returncode == 0, done.stderr
    first, *_ = json.loads(done.stdout)["builds"]
    assert first["plan_digest"] == built.report["plan_digest"]
    assert first["file_bytes"] == built.report["size"]["file_bytes"]
    assert {each["measure"] for each in first["measures"]} == {"load", "peak memory", "p50", "p99"}


def test_the_demo_is_in_parity(built: Built) -> None:
    """All outputs of all cases agree with the original model in the full runtime."""
    device = device_of(built.report)
    assert {line["verdict"] for line in device["parity"]} == {"pass"}
    assert {(line["case"], line["output"]) for line in device["parity"]} == {
        (case["case"], output) for case in device["runs"][0]["cases"] for output in ("output", "stateN")
    }
    assert len(device["parity"]) == 16


def test_the_library_is_one_to_ship(built: Built, unpacked: Path) -> None:
    """It exports the public API and nothing else, has no executable stack, and every other gate passes."""
    facts = read_library(unpacked / "lib" / "libonnxruntime.so")
    assert set(facts.exported) == PUBLIC_API
    assert not facts.executable_stack
    assert {gate["verdict"] for gate in built.report["gates"]} == {"pass"}


def test_the_package_is_what_it_says(unpacked: Path) -> None:
    """`sha256sum` agrees, and the manifest lists every file with its size and digest."""
    done = run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=unpacked)
    assert done.returncode == 0, done.stdout
    manifest = json.loads((unpacked / "manifest.json").read_text())
    listed = {entry["path"]: (entry["size_bytes"], entry["sha256"]) for entry in manifest["files"]}
    files = {path.relative_to(unpacked).as_posix(): path for path in unpacked.rglob("*") if path.is_file()}
    links = {name for name, path in files.items() if path.is_symlink()}
    assert set(files) == {*listed, *links, "manifest.json", "SHA256SUMS"}
    assert listed == {name: (files[name].stat().st_size, sha256_of(files[name])) for name in listed}
    (model,) = manifest["models"]
    assert listed["models/silero-vad.ort"][1] == model["ort_sha256"]


def test_the_package_names_no_folder_of_this_machine(unpacked: Path, cache: Path, output: Path) -> None:
    folders = {ROOT, cache, output, cache_folder("sources").parent, Path.home() / ".cache", Path(sys.prefix)}
    for path in unpacked.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert [folder for folder in folders if str(folder).encode() in content] == [], path.name


def test_a_run_with_nothing_to_do_does_nothing(built: Built, output: Path, environment: Environment) -> None:
    """It says so, gives the same report and writes no file."""
    before = {path: path.stat().st_mtime_ns for path in output.rglob("*") if path.is_file()}
    done = build(output, environment)
    assert "nothing has changed" in done.stderr
    assert report_of(done) == built.report
    assert {path: path.stat().st_mtime_ns for path in output.rglob("*") if path.is_file()} == before


def test_without_its_report_a_build_is_verified_again(built: Built, output: Path, environment: Environment) -> None:
    """Nothing is compiled, and the package stays the same."""
    package = sha256_of(built.folder / built.report["package"])
    (built.folder / "report.json").unlink()
    done = build(output, environment)
    assert "up to date (built before)" in done.stderr
    assert report_of(done)["verdict"] == "pass"
    again = json.loads((built.folder / "report.json").read_text())
    assert device_of(again)["parity"] == device_of(built.report)["parity"]
    assert sha256_of(built.folder / built.report["package"]) == package


def test_the_same_inputs_give_the_same_package(built: Built, cache: Path, tmp_path: Path) -> None:
    """Converted and packaged anew, elsewhere, with other permissions and in another time zone, the bytes are equal."""
    (tmp_path / "cache").mkdir()
    link_parts(
        tmp_path / "cache", {kind: cache / kind for kind in (*FETCHED_OR_COMPILED, "builds", "models", "runners")}
    )
    environment = {**os.environ, "ORTRIM_CACHE": str(tmp_path / "cache"), "TZ": "Pacific/Apia"}
    words = ["/bin/sh", "-c", 'umask 077; exec "$@"', "sh", *command(tmp_path / "elsewhere")]
    done = run(words, cwd=ROOT, environment=environment, timeout_seconds=BUILD_SECONDS)
    assert report_of(done)["plan_digest"] == built.report["plan_digest"]
    symbols, package = sorted((tmp_path / "elsewhere").rglob("*.tar.gz"))
    for each in (symbols, package):
        assert each.read_bytes() == (built.folder / each.name).read_bytes()


@pytest.fixture
def core(unpacked: Path, tmp_path: Path) -> Sequence[str | Path]:
    """Let a program crash in a kernel; return the words by which gdb reads the dump of its memory."""
    program = linked(unpacked, ("gcc",), CRASHES, tmp_path / "crashes")
    start = ("gdb", "-nx", "-batch", "-ex", f"set environment LD_LIBRARY_PATH {unpacked / 'lib'}")
    words = (*start, "-ex", "run", "-ex", f"generate-core-file {tmp_path / 'core'}", "--args", program)
    assert "SIGSEGV" in run((*words, unpacked / "models" / "silero-vad.ort")).stdout
    return ("gdb", "-nx", "-batch", "-iex", f"set solib-search-path {unpacked / 'lib'}", program, tmp_path / "core")


def frames(*words: str | Path) -> list[str]:
    """Return the functions of a stack as gdb names them, innermost first; `??` is one without a name."""
    told = run((*words, "-ex", "backtrace")).stdout
    return re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?([^ (]+)", told, re.MULTILINE)


@pytest.mark.needs("gcc", "gdb", "addr2line")
def test_the_symbols_name_a_crash_in_the_demo(
    built: Built, unpacked: Path, core: Sequence[str | Path], tmp_path: Path
) -> None:
    """From the kernel through `Run` to `main`, out of a dump. Without them none of it has a name, and `main` is missed.

    The manifest says which symbols they are.
    """
    bare = frames(*core)
    assert "main" not in bare
    assert not [name for name in bare if "Ort" in name or "onnxruntime" in name]
    symbols = tmp_path / "symbols"
    symbols.mkdir()
    archive = built.folder / f"{built.package.name}-symbols.tar.gz"
    assert run(("tar", "-x", "-f", archive, "-C", symbols)).returncode == 0
    found = frames(*core[:3], "-iex", f"set debug-file-directory {symbols}", *core[3:])
    assert found[-1] == "main"
    assert "OrtApis::Run" in found
    (kernel, *_) = (place for place, name in enumerate(found) if name.endswith("::Compute"))
    assert "??" not in found[kernel:]  # in front of it is the C library's own `memcpy`
    (file,) = symbols.rglob("*.debug")
    manifest = json.loads((unpacked / "manifest.json").read_text())
    assert manifest["symbols"]["path"] == file.relative_to(symbols).as_posix()
    assert manifest["symbols"]["sha256"] == sha256_of(file)


def test_the_symbols_name_no_folder_of_this_machine(built: Built, cache: Path, output: Path) -> None:
    assert built.report["verdict"] == "pass"
    contents = [path.read_bytes() for path in cache.glob("builds/*/libonnxruntime.so.sym")]
    assert contents
    for folder in (ROOT, cache, output, cache_folder("sources").parent, Path.home(), Path(sys.prefix)):
        assert not [content for content in contents if str(folder).encode() in content]


@pytest.fixture(scope="module")
def static(built: Built, environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("static")
    demo = (ROOT / "buildspecs" / "silero-vad.toml").read_text()
    (folder / "static.toml").write_text(demo.partition("[[targets]]")[0] + STATIC)
    words = [*command(folder / "output"), "--spec", str(folder / "static.toml")]
    report = report_of(run(words, cwd=ROOT, environment=environment, timeout_seconds=BUILD_SECONDS))
    (package,) = (folder / "output").rglob("*.tar.gz")  # and no symbols, which the application's link makes
    (log,) = (folder / "output").rglob("build.log")
    return Built(
        folder=package.parent,
        report=report,
        package=package.with_name(package.name.removesuffix(".tar.gz")),
        remaining=len(NINJA_STEP.findall(log.read_text())),
    )


def test_the_static_library_is_made_of_the_same_objects(static: Built, interrupted: Interrupted) -> None:
    """Hardly anything is left to compile, and nothing of the shared library is delivered."""
    assert static.remaining < interrupted.total / 10
    assert [path.name for path in (static.package / "lib").iterdir() if path.is_file()] == ["libonnxruntime.a"]
    assert static.report["artifacts"][1]["sha256"] == sha256_of(static.package / "lib" / "libonnxruntime.a")


def test_the_runner_that_links_the_archive_is_in_parity(static: Built, built: Built) -> None:
    """It runs every case of the model with outputs as right as the shared library's, and every gate passes."""
    assert static.report["verdict"] == "pass"
    assert {gate["verdict"] for gate in static.report["gates"]} == {"pass"}
    assert "static library hides all else" in {gate["name"] for gate in static.report["gates"]}
    parity = {(line["case"], line["output"]): line["verdict"] for line in device_of(static.report)["parity"]}
    assert parity == {(line["case"], line["output"]): "pass" for line in device_of(built.report)["parity"]}


@pytest.mark.needs("gcc")
def test_a_c_program_loads_the_library_twice_and_closes_it(built: Built, tmp_path: Path) -> None:
    """It leaves nothing behind that the process would call at its end."""
    program = linked(built.package, ("gcc", "-Wl,--as-needed"), CLOSES, tmp_path / "program")
    launcher = ("env", f"LD_LIBRARY_PATH={built.package / 'lib'}")
    assert said(program, built.package, *launcher) == "closed\nclosed\n"


@pytest.mark.needs("gcc")
def test_a_c_program_links_the_real_archive(static: Built, tmp_path: Path) -> None:
    """With the system's compiler and no C++ library; it opens the model."""
    assert said(linked(static.package, ("gcc",), IN_C, tmp_path / "program"), static.package) == SAID_IN_C


def test_a_cxx_program_links_the_real_archive(static: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own C++ library beside the one inside; it runs the model."""
    for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"):
        monkeypatch.setenv(name, str(cache_folder("zig")))
    zig = packages_folder("tools", tool_requirements()) / "ziglang" / "zig"
    compiler = (zig, "c++", "-target", "x86_64-linux-gnu.2.28")
    assert said(linked(static.package, compiler, IN_CXX, tmp_path / "program"), static.package) == SAID_IN_CXX


def unseen_model() -> onnx.ModelProto:
    """Return a small network for images with random weights that no other test knows."""
    chosen = np.random.default_rng(20)
    shapes = {"kernel": (8, 1, 3, 3), "bias": (8,), "weights": (8, 10), "offsets": (10,)}
    numbers = {name: chosen.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}
    nodes = [
        helper.make_node("Conv", ["image", "kernel", "bias"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "weights", "offsets"], ["g"]),
        helper.make_node("Softmax", ["g"], ["probabilities"], axis=1),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ("batch", 1, 28, 28))
    answer = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ("batch", 10))
    initializers = [numpy_helper.from_array(array, name) for name, array in numbers.items()]
    graph = helper.make_graph(nodes, "digits", [image], [answer], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)


def test_a_model_that_nobody_tried_goes_through(environment: Environment, tmp_path: Path) -> None:
    """An app team's folder, a model of opset 13, a buildspec of ten lines, and the installed program are enough."""
    program = shutil.which("ortrim", path=str(Path(sys.executable).parent))
    assert program
    (tmp_path / "models").mkdir()
    onnx.save(unseen_model(), tmp_path / "models" / "digits.onnx")
    (tmp_path / "unseen.toml").write_text(UNSEEN)
    words = [program, "build", "--spec", "unseen.toml", "--json"]
    done = run(words, cwd=tmp_path, environment=environment, timeout_seconds=BUILD_SECONDS)
    report = report_of(done)
    assert report["verdict"] == "pass"
    assert [(line["case"], line["shape"], line["verdict"]) for line in device_of(report)["parity"]] == [
        ("several", [3, 10], "pass")
    ]
    assert report["ort_version"] == onnxruntime.__version__
    symbols, package = sorted((tmp_path / "artifacts" / "unseen").rglob("*.tar.gz"))
    assert (package.name, symbols.name.removesuffix("-symbols.tar.gz")) == (report["package"], package.name[:-7])
