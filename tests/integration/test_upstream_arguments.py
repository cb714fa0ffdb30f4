"""The arguments of every plan, read by upstream's own `build.py` of the pinned version: no NDK, no compiler."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from ortrim.base.command import Completed, run
from ortrim.base.json import from_json
from ortrim.base.scripts import ISOLATED_PYTHON, environment_with, packages_folder
from ortrim.binaries.macho.files import read_macho
from ortrim.buildspec.buildspec import AndroidSpec, AppleSpec
from ortrim.buildspec.targets import ABIS, CATALYST, TARGETS
from ortrim.compiling.dead_kernels import FLOAT16, KINDS
from ortrim.compiling.plan import BuildJob, BuildPlan
from ortrim.compiling.upstream import require_known
from ortrim.compiling.upstream_arguments import FLAGS
from ortrim.errors import BuildError
from ortrim.pins.runtime import SourcePin, runtime_pins
from ortrim.pins.shipped import tool_requirements
from ortrim.planning.planner import with_arguments
from ortrim.platforms.apple.arguments import zig_apple_toolchain
from ortrim.sources.sources import fetch_sources
from refusing import refused
from sample_plans import MODELS, SOURCES, sample_plan, system_gcc

pytestmark = pytest.mark.network

PLANS: Final = Path(__file__).parents[1] / "unit" / "platforms" / "data" / "plans"
GOLDEN: Final = sorted(PLANS.glob("*.json"))
PROVIDERS: Final = tuple(
    SourcePin(name=name, version="1", kind="upstream", digest="c" * 64, licence="MIT")
    for name in ("cpuinfo", "fxdiv", "pthreadpool", "xnnpack", "coremltools", "fp16", "psimd")
)

SCRIPT: Final = '''
"""Reads arguments as upstream's build.py does, and prints what it understood.

Abbreviations are off: a flag that was renamed would otherwise be taken for the beginning of its new name.
"""
import argparse, functools, json, sys
sys.path.insert(0, sys.argv[1])
argparse.ArgumentParser.__init__ = functools.partialmethod(argparse.ArgumentParser.__init__, allow_abbrev=False)
import build
sys.argv = ["build.py", *json.loads(sys.argv[2])]
print(json.dumps(vars(build.parse_arguments()), default=str))
'''


class Upstream:
    """The sources of the pinned version, and a Python with what its build.py imports."""

    def __init__(self, folder: Path) -> None:
        self.sources = fetch_sources(runtime_pins("1.21.0"), "auto").folder / "onnxruntime"
        self.environment = environment_with(packages_folder("tools", tool_requirements()))
        self.script = folder / "read.py"
        self.script.write_text(SCRIPT)

    def call(self, *arguments: str) -> Completed:
        folder = self.sources / "tools" / "ci_build"
        return run([*ISOLATED_PYTHON, self.script, folder, json.dumps(arguments)], environment=self.environment)

    def read(self, *arguments: str) -> dict[str, Any]:
        """Return what build.py understands of arguments, all of which it must take."""
        done = self.call(*arguments)
        assert done.returncode == 0, done.stderr
        understood: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return understood

    def cmake(self) -> str:
        files = [*self.sources.glob("cmake/**/*.cmake"), self.sources / "cmake" / "CMakeLists.txt"]
        return "\n".join(file.read_text(encoding="utf-8") for file in files)


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Upstream:
    return Upstream(tmp_path_factory.mktemp("upstream"))


def variants() -> Iterator[BuildJob]:
    """Yield jobs with what the golden plans leave at its default."""
    models = (replace(MODELS[0], style="runtime"),)
    yield sample_plan(exceptions=True, profile="upstream").targets[0].job
    yield sample_plan(toolchain=system_gcc()).targets[0].job
    yield sample_plan(unused_types=KINDS).targets[0].job
    yield sample_plan("android-arm64-v8a", android=AndroidSpec(api=30, stl="c++_shared")).targets[0].job
    sources = (*SOURCES, *PROVIDERS)
    for target in ("android-x86_64", "linux-x64"):
        yield sample_plan(target, providers=("xnnpack",), models=models, sources=sources).targets[0].job
    cross = zig_apple_toolchain(TARGETS["macos-x86_64"], "13.3", "0.17.0")
    yield sample_plan("macos-x86_64", toolchain=cross).targets[0].job
    for target in ("ios-simulator-x86_64", "macos-arm64", CATALYST):
        chosen = AppleSpec(ios_deployment_target="16.0", macos_deployment_target="14.0", framework="static")
        plan = sample_plan(target, apple=chosen, providers=("coreml",), models=models, sources=sources)
        yield plan.targets[0].job


JOBS: Final = {
    **{path.stem: from_json(BuildPlan, path.read_text()).targets[0].job for path in GOLDEN},
    **{f"variant {number}": job for number, job in enumerate(variants())},
}


def test_there_is_a_plan_for_every_target() -> None:
    assert set(TARGETS) <= set(JOBS)


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_upstream_understands_every_argument(upstream: Upstream, job: BuildJob) -> None:
    """Every flag is one of its own, by its whole name, with a value of the right type."""
    understood = upstream.read(*job.arguments)
    definitions = [word for words in understood["cmake_extra_defines"] for word in words]
    assert definitions == list(job.arguments[job.arguments.index("--cmake_extra_defines") + 1 :])
    assert understood["minimal_build"] == (["extended"] if job.providers else [])
    assert understood["config"] == ["MinSizeRel"]
    assert understood["android"] == (job.android is not None)
    for name, flag in FLAGS.items():
        assert understood[flag.removeprefix("--")] == (name in job.providers)
    ours = {FLOAT16}  # which upstream cannot leave out
    assert tuple(understood["disable_types"]) == tuple(kind for kind in job.without_types if kind not in ours)


@pytest.mark.parametrize("job", [job for job in JOBS.values() if job.android], ids=lambda job: job.target.identifier)
def test_upstream_understands_what_is_meant_for_android(upstream: Upstream, job: BuildJob) -> None:
    """ABI, level and C++ library are those of the plan, and build.py would go on with them."""
    assert job.android is not None
    understood = upstream.read(*job.arguments)
    assert understood["android_abi"] == ABIS[job.target.architecture]
    assert understood["android_api"] == job.android.api
    assert understood["android_cpp_shared"] == (job.android.stl == "c++_shared")
    assert understood["android_ndk_path"] == understood["android_sdk_path"] == "${ndk}"


@pytest.mark.parametrize("job", [job for job in JOBS.values() if job.apple], ids=lambda job: job.target.identifier)
def test_upstream_understands_what_is_meant_for_apple(upstream: Upstream, job: BuildJob) -> None:
    """It is asked for none of Apple's systems, of which CMake is told by definitions, but for what is inside."""
    assert job.apple is not None
    understood = upstream.read(*job.arguments)
    assert (understood["ios"], understood["macos"], understood["apple_deploy_target"]) == (False, None, None)
    assert understood["cmake_generator"] == "Ninja"


@pytest.mark.parametrize(
    ("flag", "renamed"),
    [
        ("--android_abi", "--android_architecture"),
        ("--android_abi", "--android_ab"),
        ("--minimal_build", "--minimal"),
        ("--include_ops_by_config", "--include_ops"),
        ("--enable_reduced_operator_type_support", "--enable_reduced_types"),
    ],
)
def test_a_flag_that_upstream_does_not_have_is_refused(upstream: Upstream, flag: str, renamed: str) -> None:
    arguments = (renamed if word == flag else word for word in JOBS["android-arm64-v8a"].arguments)
    done = upstream.call(*arguments)
    assert done.returncode == 2
    assert "unrecognized arguments" in done.stderr
    assert renamed in done.stderr


@pytest.mark.parametrize(("flag", "value"), [("--android_abi", "mips"), ("--android_api", "r24")])
def test_a_value_that_upstream_does_not_take_is_refused(upstream: Upstream, flag: str, value: str) -> None:
    """The ABIs' names and the level's type are upstream's to say."""
    arguments = list(JOBS["android-x86"].arguments)
    arguments[arguments.index(flag) + 1] = value
    done = upstream.call(*arguments)
    assert (done.returncode, f"argument {flag}: invalid" in done.stderr) == (2, True)


def test_upstream_still_wants_xcodes_generator_for_phones(upstream: Upstream) -> None:
    """Which is why it is told about phones by CMake's definitions; once it takes Ninja, `--ios` is the better way."""
    text = (upstream.sources / "tools" / "ci_build" / "build.py").read_text(encoding="utf-8")
    assert 'if (args.ios or args.visionos or args.macos == "MacOSX") and not args.cmake_generator == "Xcode":' in text


def test_upstream_still_hands_all_flags_of_c_to_mlas_as_one_word(upstream: Upstream) -> None:
    """Which newer clangs refuse for Mac Catalyst; once it does not, `--macos Catalyst` is the better way."""
    text = (upstream.sources / "cmake" / "onnxruntime_mlas.cmake").read_text(encoding="utf-8")
    assert "target_compile_options(onnxruntime_mlas PRIVATE ${CMAKE_C_FLAGS})" in text


def test_a_clang_of_today_refuses_that_word(tmp_path: Path) -> None:
    """And takes the triple alone, as the wrappers say it: the object is one of Mac Catalyst's."""
    zig, triple = packages_folder("tools", tool_requirements()) / "ziglang" / "zig", "arm64-apple-ios15.1-macabi"
    (tmp_path / "a.c").write_text("int one(void) { return 1; }\n")
    done = run((zig, "clang", "-c", f"--target={triple} -ffunction-sections", "a.c"), cwd=tmp_path)
    assert (done.returncode, "in target triple" in done.stderr) == (1, True)
    done = run((zig, "clang", "-c", "-target", triple, "-arch", "arm64", "a.c"), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    (image,) = read_macho(tmp_path / "a.o").images
    assert [build.words for build in image.builds] == ["ios maccatalyst 15.1"]


def test_every_definition_of_upstreams_is_one_that_its_cmake_reads(upstream: Upstream) -> None:
    text = upstream.cmake()
    for name in {word.partition("=")[0] for job in JOBS.values() for word in definitions_of(job)}:
        if name.startswith("onnxruntime_"):
            assert re.search(rf"\b{name}\b", text), name


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_the_sources_themselves_know_every_option(upstream: Upstream, job: BuildJob) -> None:
    require_known(job, upstream.sources, packages_folder("tools", tool_requirements()))


def test_an_option_of_another_version_is_refused(upstream: Upstream) -> None:
    newer = with_arguments(replace(JOBS["linux-x64"], ort_version="1.24.4"))
    error = refused(BuildError, require_known, newer, upstream.sources, packages_folder("tools", tool_requirements()))
    assert error.what == "ONNX Runtime 1.24.4 does not know --no_kleidiai, --no_sve"


def test_every_dependency_is_listed_by_the_name_with_which_it_is_declared(upstream: Upstream) -> None:
    """And lies where the list says, whichever system's patches it has."""
    text = upstream.cmake()
    declared = set(re.findall(r"(?:onnxruntime_fetchcontent|FetchContent)_declare\(\s*(\w+)", text, re.IGNORECASE))
    lines = (upstream.sources.parent / "dependencies.cmake").read_text(encoding="utf-8")
    places = re.findall(r'FETCHCONTENT_SOURCE_DIR_(\w+) "\$\{CMAKE_CURRENT_LIST_DIR\}/([^"]+)"', lines)
    assert {name for name, _ in places} <= {name.upper() for name in declared}
    assert all((upstream.sources.parent / folder).is_dir() for _, folder in places)
    assert "ABSEIL_CPP" in dict(places)


def definitions_of(job: BuildJob) -> tuple[str, ...]:
    return job.arguments[job.arguments.index("--cmake_extra_defines") + 1 :]
