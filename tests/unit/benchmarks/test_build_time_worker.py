"""The worker: recipes, what they leave, and how failures come back."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from build_time.cases import Recipe
from build_time.meter import Cost
from build_time.worker import Built, Done, Work, do, main, steps_in

from ortrim.base.json import from_json, to_json
from ortrim.build.plan import BuildJob, CompiledUnits, CompilerCacheUse
from ortrim.errors import BuildError, ExitCode
from ortrim.platforms import platform_of

BUILD_PY = """
import os, sys
from pathlib import Path
print("configuring")
print("[1/2] Building a.o", flush=True)
print("[2/2] Linking libonnxruntime.so", flush=True)
out = Path(sys.argv[sys.argv.index("--build_dir") + 1]) / "MinSizeRel"
out.mkdir(parents=True)
(out / "libonnxruntime.so.1.21.0").write_text(" ".join(sys.argv[1:]))
Path(os.environ["ORTRIM_LINK_MAP"]).write_text("map")
"""


@pytest.fixture
def work(job: BuildJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Work:
    """Return work for a tree of sources whose `build.py` does next to nothing."""
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    script = tmp_path / "sources" / "onnxruntime" / "tools" / "ci_build" / "build.py"
    script.parent.mkdir(parents=True)
    script.write_text(BUILD_PY)
    monkeypatch.setattr("ortrim.pipeline.executors.packages_folder", lambda *_: tmp_path / "tools")
    # The meter makes its process adopt orphans and waits for all children: not here, where the tests run.
    monkeypatch.setattr("build_time.worker.cost_of", cost_of)
    return Work(
        recipe=Recipe.UPSTREAM,
        job=job,
        sources=tmp_path / "sources",
        cached=False,
        jobs=2,
        log=tmp_path / "build.log",
    )


def cost_of(work: Any, *, complete: bool = True) -> Cost:
    """Do the work at no cost."""
    work()
    return Cost(
        wall_seconds=1, cpu_seconds=1, other_cpu_seconds=0, peak_process_bytes=1, peak_total_bytes=1, complete=complete
    )


def test_upstreams_recipe_runs_its_own_script_with_its_own_arguments(work: Work) -> None:
    """From an empty folder to the library, with the phases in one call."""
    done = do(work)
    assert done.error == ""
    assert done.built.library is not None
    words = done.built.library.read_text()
    assert words.startswith("--update --build --build_dir ")
    assert words.endswith("--parallel 2")
    assert "--target" not in words
    assert "${" not in words
    assert done.built.link_map is not None
    assert done.built.link_map.read_text() == "map"


def test_the_steps_of_the_log_are_counted_and_shown(work: Work, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever started the worker sees how far it is."""
    assert do(work).steps == 2
    assert capsys.readouterr().out.splitlines() == ["1 2 Building a", "2 2 Linking libonnxruntime.so"]
    assert work.log.read_text().splitlines()[0] == "configuring"


def test_a_failed_recipe_says_why(work: Work) -> None:
    """With the first error of the log."""
    script = work.sources / "onnxruntime" / "tools" / "ci_build" / "build.py"
    script.write_text("print('x.cc:1:2: error: no such thing'); raise SystemExit(1)")
    done = do(work)
    assert (done.cost, done.built) == (None, Built())
    assert done.error.startswith("error: build-failed")
    assert "no such thing" in done.error


@pytest.mark.parametrize(
    ("recipe", "cached", "pruned"),
    [(Recipe.PRUNED, True, True), (Recipe.PRUNED, False, True), (Recipe.UNPRUNED, False, False)],
)
def test_ortrims_recipes_are_those_of_invoke_build(
    work: Work,
    monkeypatch: pytest.MonkeyPatch,
    recipe: Recipe,
    cached: bool,  # noqa: FBT001 - a column
    pruned: bool,  # noqa: FBT001 - a column
) -> None:
    """The same executor, told what the case is about."""
    asked: list[Any] = []

    class Executor:
        def __init__(self, **values: Any) -> None:
            asked.append(SimpleNamespace(**values))

        def run(self, job: BuildJob) -> SimpleNamespace:
            assert job == work.job
            asked[0].on_note("a note")
            asked[0].on_progress(1, 3, "a.o")
            return SimpleNamespace(
                library=Path("l"), link_map=None, units=CompiledUnits(compiled=2, total=9),
                compiler_cache=CompilerCacheUse(hits=1, requests=2),
            )  # fmt: skip

    monkeypatch.setattr("build_time.worker.NativeExecutor", Executor)
    done = do(replace(work, recipe=recipe, cached=cached))
    assert (asked[0].pruned, asked[0].cached, asked[0].parallelism.jobs) == (pruned, cached, 2)
    assert asked[0].inputs.sources == work.sources
    assert asked[0].inputs.finish == platform_of(work.job.target).finish
    assert done.built == Built(library=Path("l"), units=(2, 9), cache=CompilerCacheUse(hits=1, requests=2))


def command(work: Work, script: str) -> Work:
    """Return work that runs a Python script."""
    return replace(work, recipe=Recipe.COMMAND, command=(sys.executable, "-c", script))


@pytest.mark.parametrize("code", [ExitCode.OK, ExitCode.BUDGET])
def test_a_command_that_ends_well_leaves_its_words(work: Work, code: int) -> None:
    """A missed budget is not the benchmark's business."""
    done = do(command(work, f"print('said'); raise SystemExit({code})"))
    assert (done.error, done.built) == ("", Built())
    assert work.log.read_text() == "said\n"


@pytest.mark.parametrize("code", [ExitCode.UNEXPECTED, ExitCode.PARITY, ExitCode.BUILD])
def test_a_command_that_fails_is_no_measurement(work: Work, code: int) -> None:
    """Its last lines come along."""
    done = do(command(work, f"print('oh no'); raise SystemExit({code})"))
    assert f"exit code {int(code)}" in done.error
    assert "oh no" in done.error


def test_a_process_that_goes_on_is_no_measurement(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its CPU time would be missing."""
    monkeypatch.setattr("build_time.worker.cost_of", lambda work: cost_of(work, complete=False))
    assert "went on running" in do(work).error


def test_a_diagnostic_of_any_kind_comes_back(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the words of a user's build."""

    def fail(_: Work) -> Built:
        raise BuildError("x-failed", "what", hint="do this")

    monkeypatch.setattr("build_time.worker.build_upstream", fail)
    assert do(work).error == "error: x-failed\n  what\n  hint: do this"


def test_request_and_result_are_files(work: Work, tmp_path: Path) -> None:
    """What goes in and comes out survives JSON, digests included."""
    (tmp_path / "in").write_text(to_json(work))
    assert from_json(Work, (tmp_path / "in").read_bytes()) == work
    main(tmp_path / "in", tmp_path / "out")
    assert from_json(Done, (tmp_path / "out").read_bytes()).steps == 2


def test_a_log_with_several_runs_of_ninja_has_the_steps_of_all(tmp_path: Path) -> None:
    """A link that missed something is followed by another; lines that only look like steps are none."""
    (tmp_path / "log").write_text("[1/2] a\n[2/2] b\nx [1/2] c\n[1/1] d\n[1/x] e\n")
    assert steps_in(tmp_path / "log") == 3
    (tmp_path / "log").write_bytes(b"\xff\xfe\n[1/1] a\n")
    assert steps_in(tmp_path / "log") == 1
    assert steps_in(tmp_path / "none") == 0
