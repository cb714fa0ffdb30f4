"""The benchmark as a whole: what is wanted becomes cases of benches."""

from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from build_time.bench import Bench
from build_time.cases import CASES, Case
from build_time.measure import SPECS, Manner, Wanted, measure
from build_time.record import Measurement
from build_time.subject import Subject

from ortrim.base.cache import cache_folder, locked
from ortrim.base.console import Console
from ortrim.build.plan import BuildJob
from ortrim.errors import SpecError, StorageError, UsageError

Measure = Callable[..., Measurement]
Asked = list[tuple[str, str, int]]


@pytest.fixture
def asked(job: BuildJob, measured: Measure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Let planning and measuring cost nothing; return the (spec, case, round) that were measured."""
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    found: Asked = []

    def planned(spec: Path, _: Console) -> Subject:
        if not spec.is_file():
            raise SpecError("spec-missing", "there is no such file", where=str(spec))
        own = replace(job, operator_config=f"ai.onnx;{len(spec.stem)};Add\n")
        return Subject(name=spec.stem, file=spec, job=own, plan_digest="d" * 64, sources=tmp_path)

    def done(self: Bench, case: Case, _: Path, number: int, *__: object) -> Measurement:
        found.append((self.pair.own.name, case.name, number))
        return measured(
            spec=self.pair.own.name, case=case.name, round=number, key=self.pair.key(case), wall_seconds=60.0
        )

    monkeypatch.setattr("build_time.measure.planned_subject", planned)
    monkeypatch.setattr("build_time.session.packages_folder", lambda *_: tmp_path)
    monkeypatch.setattr("build_time.session.wait_for_rest", lambda *_: 0.0)
    monkeypatch.setattr(Bench, "prepare", lambda *_: tmp_path)
    monkeypatch.setattr(Bench, "measure", done)
    return found


def run(tmp_path: Path, *, plan_only: bool = False, **wanted: Any) -> str:
    """Measure and return what was printed."""
    text = StringIO()
    manner = Manner(output=tmp_path / "output", plan_only=plan_only)
    measure(Wanted(manner=manner, **wanted), Console(stdout=text, stderr=text, environment={}, width=200))
    return text.getvalue()


def test_all_cases_of_all_specs_are_measured_by_default(tmp_path: Path, asked: Asked) -> None:
    """Spec by spec, or the later ones would wait for hours."""
    run(tmp_path)
    assert len(asked) == 3 * len(CASES)
    assert [spec for spec, _, _ in asked] == [spec.stem for spec in SPECS for _ in CASES]


def test_a_part_can_be_asked_for(tmp_path: Path, asked: Asked) -> None:
    """Cases, specs and rounds."""
    run(tmp_path, specs=(SPECS[0],), cases="upstream,ortrim", rounds=2)
    assert asked == [("silero-vad", case, number) for number in (1, 2) for case in ("upstream", "ortrim")]


def test_a_graph_alone_measures_its_points(tmp_path: Path, asked: Asked) -> None:
    """With the demo's plan, and draws them."""
    text = run(tmp_path, graph=tmp_path / "docs" / "x.svg")
    assert {spec for spec, _, _ in asked} == {"silero-vad"}
    assert [case for _, case, _ in asked][:3] == ["operators-1", "operators-20", "operators-60"]
    assert (tmp_path / "docs" / "x.svg").read_text().startswith("<svg xmlns=")
    assert "build time by operator types" in text


def test_a_graph_beside_cases_has_upstreams_line(tmp_path: Path, asked: Asked) -> None:
    """When that was measured."""
    run(tmp_path, specs=(SPECS[0],), cases="upstream", graph=tmp_path / "x.svg")
    assert "upstream's recipe: 4 min 50 s" in (tmp_path / "x.svg").read_text()


def test_a_plan_draws_nothing(tmp_path: Path, asked: Asked) -> None:
    """And measures nothing."""
    text = run(tmp_path, plan_only=True, graph=tmp_path / "x.svg", cases="ortrim", specs=(SPECS[0],))
    assert asked == []
    assert "operators-253, round 1: to be measured" in text
    assert not (tmp_path / "x.svg").exists()
    assert not (tmp_path / "output").exists()


def test_a_bad_case_is_refused_before_anything(tmp_path: Path, asked: Asked) -> None:
    """Nothing is planned or written."""
    with pytest.raises(UsageError):
        run(tmp_path, cases="upstraem")
    assert (asked, (tmp_path / "output").exists()) == ([], False)


def test_a_bad_spec_is_refused_before_hours_have_passed(tmp_path: Path, asked: Asked) -> None:
    """All are planned first."""
    with pytest.raises(SpecError):
        run(tmp_path, specs=(SPECS[0], tmp_path / "none.toml"))
    assert asked == []


def test_an_output_that_cannot_be_written_is_refused_first(tmp_path: Path, asked: Asked) -> None:
    """Not after the first build."""
    (tmp_path / "output").write_text("in the way")
    with pytest.raises(StorageError):
        run(tmp_path)
    assert asked == []


def test_two_measurements_at_once_are_refused(tmp_path: Path, asked: Asked) -> None:
    """They would slow each other down, and work in the same folders; a plan may be looked at all the same."""
    with locked(cache_folder("benchmarks") / "session"):
        with pytest.raises(UsageError) as caught:
            run(tmp_path, cases="ortrim")
        run(tmp_path, cases="ortrim", plan_only=True)
    assert caught.value.code == "already-measuring"
    assert asked == []
    run(tmp_path, cases="ortrim", specs=(SPECS[0],))
    assert len(asked) == 1


def test_the_specs_are_there() -> None:
    """The demo, the multi-model spec and the transformer."""
    assert all(spec.is_file() for spec in SPECS)
