"""ONNX Runtime for real, in a tree that stays: what is compiled for the same model, for another, and for other types.

The caches of sources, tools and compiled objects are the user's, so that an empty tree is full in a minute; what counts
is what ninja does, not how long it takes.
"""

import io
import json
import re
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from ortrim.base.command import run
from ortrim.base.console import Console
from ortrim.base.files import sha256_of
from ortrim.compiling.executor import Executor
from ortrim.compiling.plan import BuildJob
from ortrim.compiling.relink import read_objects
from ortrim.compiling.selective import SelectiveBuild, variant_of
from ortrim.compiling.toolchains import PRECOMPILED_MARK
from ortrim.compiling.translation_units import select_units, shipped_index, symbolic_path
from ortrim.compiling.workspace import JobPaths, job_environment, result_of
from ortrim.models.operators import (
    OperatorId,
    OperatorTypes,
    RequiredOperators,
    merge,
    parse_config,
    render_config,
    required_operators,
)
from ortrim.pipeline.building import executor_for
from ortrim.planning.planned import planned_for
from ortrim.planning.planner import with_arguments
from ortrim.planning.request import Request
from own_caches import own_cache

pytestmark = [pytest.mark.build, pytest.mark.network]

DEMO: Final = Path(__file__).parents[2] / "buildspecs" / "silero-vad.toml"
SHARED: Final = ("apt", "compiler", "conversions", "downloads", "models", "packages", "sources", "zig")
COMPILATION: Final = re.compile(r"^\[\d+/\d+\] Building \w+ object (.*)$")
CPU: Final = "${sources}/onnxruntime/onnxruntime/core/providers/cpu"
REGISTRATIONS: Final = f"{CPU}/cpu_execution_provider.cc"
LEFT_OUT: Final = "${hooks}/unreached.c"


def added(job: BuildJob, *operators: tuple[OperatorId, OperatorTypes]) -> BuildJob:
    types = {(operator.domain, operator.name): allowed for operator, allowed in operators}
    more = required_operators((operator for operator, _ in operators), types)
    config = render_config(merge(parse_config(job.operator_config), more))
    return with_arguments(replace(job, operator_config=config))


def onnx_operator(opset: int, name: str, **types: str) -> tuple[OperatorId, OperatorTypes]:
    inputs = tuple((int(place[1:]), (allowed,)) for place, allowed in types.items())
    return OperatorId(domain="ai.onnx", opset=opset, name=name), OperatorTypes(inputs=inputs)


def selected(operators: RequiredOperators, job: BuildJob) -> set[str]:
    """Return what the shipped index, which is of all types, says that a library with these operators takes."""
    index = shipped_index(variant_of(replace(job, without_types=())))
    assert index is not None
    return set(select_units(index, operators))


@dataclass(frozen=True, kw_only=True)
class Site:
    """The demo's job and its executor, with a cache of their own."""

    job: BuildJob
    executor: Executor

    def compile(self, job: BuildJob) -> tuple[set[str], tuple[str, ...]]:
        """Compile a job in its tree; return the units that were compiled, and the last lines that were printed."""
        with self.executor.on_tree(job) as selective:
            outcome, units = selective.compile_needed()
            assert outcome.code == 0, outcome.lines[-20:]
            assert units is not None, "the translation-unit index does not fit"
            return units_of(selective, outcome.lines), outcome.lines[-3:]


def units_of(selective: SelectiveBuild, lines: Iterable[str]) -> set[str]:
    """Return the units whose compilation ninja has printed."""
    paths = selective.upstream.paths
    commands = json.loads(run((paths.tools / "bin" / "ninja", "-t", "compdb"), cwd=paths.configured).stdout)
    files = {entry["output"]: entry["file"] for entry in commands}
    places = {"sources": str(paths.sources), "build": str(paths.build), "hooks": str(paths.hooks)}
    made = [found[1].strip("'") for line in lines if (found := COMPILATION.match(line))]
    return {symbolic_path(files[output], str(paths.configured), **places) or output for output in made}


@contextmanager
def empty_cache(folder: Path) -> Iterator[None]:
    with own_cache(folder, *SHARED) as environment, pytest.MonkeyPatch.context() as patch:
        patch.setenv("ORTRIM_CACHE", environment["ORTRIM_CACHE"])
        yield


def make_site(output: Path) -> Site:
    request = Request(spec=DEMO, target="linux-x64", output=output)
    console = Console(stdout=io.StringIO(), stderr=io.StringIO(), environment={})
    planned = planned_for(request, console)
    (target,) = planned.plan.targets
    with console.step("build") as step:
        return Site(job=target.job, executor=executor_for(planned, target, request, step))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with empty_cache(tmp_path_factory.mktemp("cache")):
        site = make_site(tmp_path_factory.mktemp("output"))
        site.executor.run(site.job)
        yield site


@pytest.fixture(scope="module")
def same_again(site: Site) -> tuple[set[str], tuple[str, ...]]:
    return site.compile(site.job)


@pytest.fixture(scope="module")
def softmax(site: Site) -> BuildJob:
    return added(site.job, onnx_operator(13, "Softmax", i0="float"))


@pytest.fixture(scope="module")
def compiled_for_softmax(site: Site, softmax: BuildJob, same_again: tuple[set[str], tuple[str, ...]]) -> set[str]:
    """Compile it in the demo's tree, after nothing was changed."""
    return site.compile(softmax)[0]


def test_the_same_model_compiles_nothing(same_again: tuple[set[str], tuple[str, ...]]) -> None:
    """CMake configures, because build.py does so always; ninja finds nothing to do, not even a link."""
    compiled, last = same_again
    assert compiled == set()
    assert "ninja: no work to do." in last


def marked_flags(paths: JobPaths) -> set[tuple[str, tuple[str, ...]]]:
    """Return each precompiled header and kind with the different flags of the sources that use it."""
    commands = json.loads(run((paths.tools / "bin" / "ninja", "-t", "compdb"), cwd=paths.configured).stdout)
    marked = [shlex.split(entry["command"]) for entry in commands if PRECOMPILED_MARK in entry["command"]]
    found = set()
    for words in marked:
        (mark,) = (word.removeprefix(PRECOMPILED_MARK) for word in words if word.startswith(PRECOMPILED_MARK))
        flags = (
            word for before, word in pairwise(words)
            if word[:2] in {"-D", "-I", "-U", "-m", "-s"} or "-isystem" in {before, word}
        )  # fmt: skip
        found.add((mark, tuple(word for word in flags if not word.startswith(PRECOMPILED_MARK))))
    return found


def test_any_of_the_marked_sources_may_come_first(
    site: Site, same_again: tuple[set[str], tuple[str, ...]], tmp_path: Path
) -> None:
    """Whichever precompiles the header finds all that the header includes: on many processors the order is chance."""
    assert same_again
    with site.executor.on_tree(site.job) as selective:
        paths = selective.upstream.paths
        environment = job_environment(paths, site.job.toolchain)
        groups = marked_flags(paths)
        shipped = {file.stem for file in (paths.hooks / "precompiled").iterdir()}
        assert {kind.partition("-")[0] for kind, _ in groups} == shipped
        # Hot and cold; MLAS also with AVX2; what both of protobuf's libraries list has its options twice.
        assert sorted(kind.partition("-")[0] for kind in {kind for kind, _ in groups}) == [
            "common", "cxx", "mlas", "mlas", "onnxruntime", "onnxruntime", "protobuf", "protobuf",
        ]  # fmt: skip
        for kind, flags in groups:
            source = str(paths.hooks / "precompiled" / f"{kind.partition('-')[0]}.h")
            words = (*flags, "-w", "-x", "c++", "-c", source, "-o", str(tmp_path / "out.o"))
            done = run((paths.wrappers / "c++", *words), cwd=paths.configured, environment=environment)
            assert done.returncode == 0, done.stderr


def test_one_more_operator_compiles_its_own_files(
    site: Site, softmax: BuildJob, compiled_for_softmax: set[str]
) -> None:
    """Its kernels with what they need, the registrations that now name them, what is left out; no other kernel."""
    before, after = (selected(parse_config(job.operator_config), job) for job in (site.job, softmax))
    assert f"{CPU}/math/softmax.cc" in compiled_for_softmax
    assert compiled_for_softmax == (after - before) | {REGISTRATIONS, LEFT_OUT}
    assert len(compiled_for_softmax) < 10


def test_one_more_type_compiles_the_kernels_that_have_it(site: Site, compiled_for_softmax: set[str]) -> None:
    site.compile(site.job)
    for job in (added(site.job, onnx_operator(13, "Gather", i0="int32_t", i1="int64_t")), site.job):
        assert site.compile(job)[0] - {LEFT_OUT} == {f"{CPU}/tensor/gather.cc"}


def test_sources_define_the_kernels_that_are_registered(
    site: Site, same_again: tuple[set[str], tuple[str, ...]]
) -> None:
    assert same_again
    assert 0 < len(kernels_of(site, site.job)) < 20
    more = added(site.job, onnx_operator(14, "Sub", i0="float"))
    compiled, _ = site.compile(more)
    assert compiled - {LEFT_OUT} == {f"{CPU}/math/element_wise_ops.cc", REGISTRATIONS}
    assert all("_Sub_" in name for name in kernels_of(site, more) ^ kernels_of(site, site.job))
    assert any("_Sub_" in name for name in kernels_of(site, more))


def kernels_of(site: Site, job: BuildJob) -> frozenset[str]:
    """Return what `element_wise_ops.cc` defines that creates kernels, compiled for a job."""
    site.compile(job)
    with site.executor.on_tree(job) as selective:
        objects = read_objects(selective.upstream.paths, (f"{CPU}/math/element_wise_ops.cc",))
    return frozenset(name for entry in objects for name in entry.defined if "BuildKernelCreateInfo" in name)


def test_the_library_does_not_depend_on_what_was_in_the_tree(
    site: Site, softmax: BuildJob, compiled_for_softmax: set[str], tmp_path: Path
) -> None:
    grown = site.executor.run(softmax)
    (tmp_path / "cache").mkdir()
    with empty_cache(tmp_path / "cache"):
        fresh = make_site(tmp_path / "output").executor.run(softmax)
    assert fresh.folder != grown.folder
    assert result_of(fresh.folder).units == grown.units
    assert sha256_of(fresh.library) == sha256_of(grown.library)
