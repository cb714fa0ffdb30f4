"""`measure.build` and `measure.footprint`: their options."""

import re
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import measuring
import pytest
from invoke.collection import Collection

from ortrim.errors import BuildError
from program_runs import Run

pytestmark = pytest.mark.usefixtures("checkout")


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch) -> list[SimpleNamespace]:
    """Put a stand-in in the place of the benchmark and return what it is asked for."""
    asked: list[SimpleNamespace] = []

    def do(request: SimpleNamespace, console: Any) -> dict[str, int]:
        asked.append(request)
        console.note("a table")
        if getattr(request, "cases", "") == "broken":
            raise BuildError("case-failed", "the case could not be measured", where="demo, upstream")
        return {"measured": 1}

    module = ModuleType("measure")
    vars(module).update(Wanted=SimpleNamespace, Manner=SimpleNamespace, measure=do)
    modules = {"build_time.measure": module, "footprint.measure": module}
    monkeypatch.setattr(measuring, "import_module", lambda name: modules[name])
    return asked


def test_without_options_everything_is_measured(ortrim: Run, wanted: list[SimpleNamespace]) -> None:
    """The default is what a release is measured with."""
    assert ortrim("measure.build").code == 0
    (request,) = wanted
    assert (request.specs, request.cases, request.rounds, request.graph, request.jobs) == ((), "", 1, None, None)
    manner = request.manner
    assert (manner.output, manner.again, manner.rest_seconds, manner.plan_only) == (
        Path("artifacts/benchmarks"), False, 180, False,
    )  # fmt: skip


def test_options_become_what_is_wanted(ortrim: Run, wanted: list[SimpleNamespace]) -> None:
    """The spec may be given more than once."""
    words = "--spec a.toml --spec b.toml --cases upstream,ortrim --rounds 3 --again --graph g.svg --jobs 2"
    ended = ortrim("measure.build", *words.split(), "--output", "out", "--rest", "0", "--plan-only")
    assert ended.code == 0
    (request,) = wanted
    assert request.specs == (Path("a.toml"), Path("b.toml"))
    assert (request.cases, request.rounds, request.graph, request.jobs) == ("upstream,ortrim", 3, Path("g.svg"), 2)
    assert vars(request.manner) == {
        "output": Path("out"), "again": True, "rest_seconds": 0, "plan_only": True,
    }  # fmt: skip


def test_the_footprint_is_of_five_models_and_all_profiles_unless_asked_otherwise(
    ortrim: Run, wanted: list[SimpleNamespace]
) -> None:
    """The benchmark itself knows which."""
    assert ortrim("measure.footprint").code == 0
    words = "--spec a.toml --spec b.toml --profiles size,speed --rounds 3 --jobs 2 --output out --rest 0"
    assert ortrim("measure.footprint", *words.split(), "--json").document() == {"measured": 1}
    default, asked = wanted
    assert (default.specs, default.profiles, default.rounds, default.jobs) == ((), "", 9, None)
    assert (default.output, default.rest_seconds) == (Path("artifacts/benchmarks"), 180)
    assert vars(asked) == {
        "specs": (Path("a.toml"), Path("b.toml")), "profiles": "size,speed", "rounds": 3, "jobs": 2,
        "output": Path("out"), "rest_seconds": 0,
    }  # fmt: skip


@pytest.mark.parametrize("task", ["measure.build", "measure.footprint"])
@pytest.mark.parametrize(
    ("option", "word"),
    [("rounds", "0"), ("rounds", "-1"), ("rounds", "two"), ("rounds", "1" * 5000), ("jobs", "0"), ("rest", "1.5")],
)
def test_numbers_that_make_no_sense_are_refused(
    ortrim: Run, wanted: list[SimpleNamespace], task: str, option: str, word: str
) -> None:
    """Before anything is planned."""
    ended = ortrim(task, f"--{option}", word)
    assert (ended.code, ended.out, wanted) == (2, "", [])
    assert ended.err.startswith("error: bad-option\n")
    assert f"--{option}: " in ended.err


def test_json_is_the_record_and_nothing_else(ortrim: Run, wanted: list[SimpleNamespace]) -> None:
    """Tables go to standard error."""
    ended = ortrim("measure.build", "--json")
    assert ended.document() == {"measured": 1}
    assert "a table" in ended.err


def test_a_failed_case_ends_with_the_code_of_builds(ortrim: Run, wanted: list[SimpleNamespace]) -> None:
    """A script can tell."""
    ended = ortrim("measure.build", "--cases", "broken")
    assert ended.code == 17
    assert "error: case-failed" in ended.err


@pytest.mark.parametrize("name", Collection.from_module(measuring).task_names)
def test_every_option_is_explained(ortrim: Run, name: str) -> None:
    """`--help` names each with a text."""
    ended = ortrim("--help", f"measure.{name}")
    assert (ended.code, ended.err) == (0, "")
    options = [line for line in ended.out.splitlines() if line.startswith("  -")]
    assert options
    assert all(re.match(r"  -.*?  +\S", line) for line in options)


def test_the_benchmark_is_found(ortrim: Run) -> None:
    """The real module, asked for a case that does not exist."""
    ended = ortrim("measure.build", "--cases", "none")
    assert (ended.code, ended.out) == (2, "")
    assert "--cases: there is no case 'none'" in ended.err
