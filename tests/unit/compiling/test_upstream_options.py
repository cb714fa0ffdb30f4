"""What plans pass to upstream's build, against the names that each version of ONNX Runtime knows.

`data/upstream-options.json` has the options that `build.py --help` of a version lists on Linux, and the options that
its `cmake/CMakeLists.txt` declares: those of every version, and for the others the versions that have them.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from ortrim.buildspec.buildspec import AndroidSpec, AppleSpec
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.dead_kernels import KINDS
from ortrim.compiling.plan import BuildJob
from ortrim.compiling.upstream import definitions, listed_options, require_known
from ortrim.compiling.upstream_arguments import versioned_options
from ortrim.errors import BuildError, ExitCode
from ortrim.planning.planner import with_arguments
from sample_plans import MODELS, SAMPLE_APPLE, SOURCES, sample_plan
from workshop import GOOD, Workshop

RECORDED: Final[dict[str, Any]] = json.loads((Path(__file__).parent / "data" / "upstream-options.json").read_text())
SOURCES_OF_PROVIDERS: Final = ("cpuinfo", "fxdiv", "pthreadpool", "xnnpack", "kleidiai", "coremltools", "fp16", "psimd")
BUILD_PY: Final = """
import argparse
parser = argparse.ArgumentParser()
for name in {names}:
    parser.add_argument(name, help="replaces --older, which is gone; see also --other")
parser.parse_args()
"""


def known(kind: str, version: str) -> set[str]:
    """Return the recorded names of options or definitions that a version has; 1.28-dev for 1.28.0."""
    names: dict[str, Any] = RECORDED[kind]
    return {*names["everywhere"], *(name for name, versions in names["somewhere"].items() if version in versions)}


def jobs() -> Iterator[BuildJob]:
    """Yield a job of each target, and jobs with what these leave at its default."""
    sources = (*SOURCES, *(replace(SOURCES[0], name=name) for name in SOURCES_OF_PROVIDERS))
    runtime = (replace(MODELS[0], style="runtime"),)
    android = AndroidSpec(stl="c++_shared", providers=("nnapi", "xnnpack"))
    apple = AppleSpec(**(vars(SAMPLE_APPLE) | {"providers": ("coreml",)}))
    plans = (
        *map(sample_plan, TARGETS),
        sample_plan(exceptions=True, profile="upstream"),
        sample_plan(unused_types=KINDS),
        sample_plan("android-arm64-v8a", android=android, models=runtime, sources=sources),
        sample_plan("ios-arm64", apple=apple, models=runtime, sources=sources),
    )
    yield from (plan.targets[0].job for plan in plans)


@pytest.mark.parametrize("version", RECORDED["versions"])
def test_every_version_knows_what_plans_pass_to_it(version: str) -> None:
    """Options that were renamed, came later or went would end the build, or change nothing and say nothing."""
    number = version.replace("-dev", ".0")
    for job in jobs():
        arguments = with_arguments(replace(job, ort_version=number)).arguments
        assert {word for word in arguments if word.startswith("--")} <= known("options", version)
        assert set(definitions(arguments)) <= known("definitions", version)
        assert "onnxruntime_USE_TELEMETRY=OFF" in arguments


@pytest.mark.parametrize("version", RECORDED["versions"])
def test_a_version_is_passed_every_option_that_it_has_and_no_other(version: str) -> None:
    """KleidiAI's kernels and SVE's are left out wherever they would be compiled."""
    expected = {"--no_kleidiai", "--no_sve"} & known("options", version)
    assert set(versioned_options(version.replace("-dev", ".0"))) == expected


@pytest.mark.parametrize(
    ("version", "options"),
    [
        ("1.21.1", ()),
        ("1.22", ("--no_kleidiai",)),
        ("1.23.2", ("--no_kleidiai",)),
        ("1.32.0", ("--no_kleidiai", "--no_sve")),
    ],
)
def test_versions_between_the_recorded_ones_follow_those_before_them(version: str, options: tuple[str, ...]) -> None:
    """Numbers are compared, not text."""
    assert versioned_options(version) == options


def test_an_option_is_what_a_line_of_help_introduces() -> None:
    """Not what a description mentions, on the same line or wrapped, nor what the usage repeats."""
    text = (
        "usage: build.py [-h] [--one] [--two {a,b}]\n\noptions:\n"
        "  -h, --help            show this help\n"
        "  --one                 instead of --old\n"
        "  --two {a,b} [{a,b} ...]\n"
        "                        --three was its name\n"
        "  --compile-no-four, --compile_no_four\n\nGroup:\n  --five N  as --six\n"
    )
    assert listed_options(text) == {"--help", "--one", "--two", "--compile-no-four", "--compile_no_four", "--five"}


@pytest.fixture
def job() -> BuildJob:
    """Return a job with a few words."""
    words = ("--one", "value", "--two", "", "--cmake_extra_defines", "onnxruntime_A=ON", "CMAKE_AR=x", "ORTRIM_B=ON")
    return replace(sample_plan().targets[0].job, arguments=words)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return sources that know all that the job has."""
    (tmp_path / "tools" / "ci_build").mkdir(parents=True)
    (tmp_path / "cmake" / "external").mkdir(parents=True)
    (tmp_path / "cmake" / "CMakeLists.txt").write_text('option(onnxruntime_OTHER "other" OFF)\n')
    (tmp_path / "cmake" / "external" / "a.cmake").write_text("if(onnxruntime_A AND NOT onnxruntime_B_C)\n")
    list_options(tmp_path, "--one", "--two", "--cmake_extra_defines")
    return tmp_path


def list_options(tree: Path, *names: str) -> None:
    """Have the tree's build.py know these options."""
    (tree / "tools" / "ci_build" / "build.py").write_text(BUILD_PY.format(names=names))


def refused(job: BuildJob, tree: Path) -> BuildError:
    """Return why a job does not go with a tree."""
    with pytest.raises(BuildError) as caught:
        require_known(job, tree, tree)
    assert (caught.value.code, caught.value.exit_code) == ("unknown-upstream-option", ExitCode.BUILD)
    assert caught.value.where == "linux-x64"
    assert caught.value.hint
    return caught.value


def test_a_tree_that_knows_all_is_built(job: BuildJob, tree: Path) -> None:
    """Values, and definitions that are not upstream's, are none of its options."""
    require_known(job, tree, tree)


def test_an_option_that_the_tree_does_not_list_is_refused(job: BuildJob, tree: Path) -> None:
    """One that merely begins like a listed one too, and one that only a description mentions."""
    list_options(tree, "--one", "--two_more", "--cmake_extra_defines")
    assert refused(job, tree).what == "ONNX Runtime 1.21.0 does not know --two"
    error = refused(replace(job, arguments=("--older", "--one", "--other")), tree)
    assert error.what == "ONNX Runtime 1.21.0 does not know --older, --other"
    assert "--help" in error.why


@pytest.mark.parametrize("name", ["onnxruntime_GONE", "onnxruntime_B", "onnxruntime_a"])
def test_a_definition_that_no_cmake_file_names_is_refused(job: BuildJob, tree: Path, name: str) -> None:
    """CMake would only warn of it, at the end; the name counts as a whole."""
    error = refused(replace(job, arguments=(*job.arguments, f"{name}=OFF")), tree)
    assert error.what == f"ONNX Runtime 1.21.0 does not know {name}"
    assert "CMake" in error.why


@pytest.mark.parametrize("script", ["", "import nothing_of_that_name\n", "print('--one')\n"])
def test_a_build_py_that_lists_nothing_speaks_for_itself(job: BuildJob, tree: Path, script: str) -> None:
    """Its own error, when it is called to configure, says more."""
    (tree / "tools" / "ci_build" / "build.py").write_text(script)
    require_known(job, tree, tree)


def test_a_build_is_refused_before_anything_is_configured(workshop: Workshop) -> None:
    """And not asked about again once its tree is configured."""
    script = workshop.sources / "onnxruntime" / "tools" / "ci_build" / "build.py"
    list_options(workshop.sources / "onnxruntime", "--build_dir")
    with pytest.raises(BuildError) as caught:
        workshop.executor().run(workshop.job)
    assert caught.value.code == "unknown-upstream-option"
    assert "--include_ops_by_config" in caught.value.what
    assert not (workshop.tree / "out" / "MinSizeRel").exists()
    asked = "import sys\nif sys.argv[1] == '--help':\n    open(sys.argv[0] + '.asked', 'w').close()\n"
    workshop.write(GOOD, update="(configured / 'CMakeCache.txt').touch()")
    script.write_text(asked + script.read_text())
    workshop.executor(cached=False).run(workshop.job)
    mark = script.with_name("build.py.asked")
    mark.unlink()
    with workshop.executor(cached=False).on_tree(workshop.job):
        assert not mark.exists()
