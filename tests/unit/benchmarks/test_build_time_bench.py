"""Single cases: where they start from, and what they do in a process of their own."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from build_time.bench import Bench
from build_time.cases import CASES, COLD_CACHE, Case
from build_time.meter import Cost
from build_time.subject import Pair, Subject, all_operators
from build_time.worker import Built, Done, Work

from ortrim.base.json import from_json
from ortrim.build.plan import BuildJob, digest
from ortrim.errors import BuildError
from sample_plans import FOREST, sample_plan

CASE = {case.name: case for case in CASES}
COST = Cost(
    wall_seconds=12.5, cpu_seconds=20, other_cpu_seconds=0.5, peak_process_bytes=3, peak_total_bytes=4, complete=True
)
Works = list[tuple[str, Path]]


class Steps:
    """A step that remembers what it was told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.told: list[tuple[float, float, str]] = []

    def note(self, text: str) -> None:
        """Take note."""
        self.notes.append(text)

    def progress(self, done: float, total: float, text: str = "") -> None:
        """Take note."""
        self.told.append((done, total, text))


@pytest.fixture
def pair(job: BuildJob, tmp_path: Path) -> Pair:
    """Return two specs."""
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "x.cc").touch()
    own = Subject(name="demo", file=tmp_path / "demo.toml", job=job, plan_digest="p" * 64, sources=tmp_path / "sources")
    other = replace(own, name="other", file=tmp_path / "other.toml", job=sample_plan(operators=FOREST).targets[0].job)
    return Pair(own=own, other=other, commit="abc")


@pytest.fixture
def bench(pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Return a bench with a user's cache of its own."""
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    return Bench(pair=pair, folder=tmp_path / "bench" / "now", output=tmp_path / "output", jobs=2)


@pytest.fixture
def works(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Works:
    """Let no work be done but a mark in the cache; return what was asked for."""
    asked: Works = []

    def work(_: Bench, case: Case, cache: Path, __: object) -> Done:
        asked.append((f"{case.name} other" if case.other else case.name, cache))
        (cache / "compiler").mkdir(exist_ok=True)
        (cache / "compiler" / str(len(asked))).touch()
        return Done(cost=COST, steps=7, built=Built(units=(1, 2)))

    monkeypatch.setattr(Bench, "work", work)
    return asked


Prepare = Callable[[str], tuple[Path, list[str]]]


@pytest.fixture
def prepare(bench: Bench) -> Prepare:
    """Return a function that prepares a case and returns its cache and what was said."""

    def prepared(name: str) -> tuple[Path, list[str]]:
        steps = Steps()
        return bench.prepare(CASE[name], steps), steps.notes  # type: ignore[arg-type]

    return prepared


@pytest.mark.parametrize("name", ["upstream", "ortrim", "unpruned", "cold-cache"])
def test_a_clean_build_starts_from_nothing(prepare: Prepare, works: Works, name: str) -> None:
    """Not even from what the case before left."""
    (prepare(name)[0] / "trees").mkdir()
    cache, notes = prepare(name)
    assert not (cache / "trees").exists()
    assert (cache / "packages").is_dir()
    assert (works, notes) == ([], [])


@pytest.mark.parametrize("name", ["one-more", "three-more", "another-model"])
def test_a_changed_model_starts_from_what_one_build_left(prepare: Prepare, works: Works, name: str) -> None:
    """In the same folder, and without what other cases did there since."""
    cache, notes = prepare(name)
    assert [work for work, _ in works] == ["cold-cache"]
    assert "builds once first" in notes[0]
    (cache / "compiler" / "later").touch()
    again, notes = prepare(name)
    assert (again, notes) == (cache, [])
    assert [path.name for path in (again / "compiler").iterdir()] == ["1"]


def test_another_folder_has_the_objects_alone(bench: Bench, prepare: Prepare, works: Works) -> None:
    """As on a second machine."""
    cache, _ = prepare("warm-cache")
    assert cache == bench.folder / "elsewhere"
    assert (cache / "compiler" / "1").is_file()


def test_what_is_kept_for_other_commits_goes(bench: Bench, prepare: Prepare, works: Works) -> None:
    """It would fill the disk."""
    (bench.folder.parent / "old").mkdir(parents=True)
    prepare("ortrim")
    assert not (bench.folder.parent / "old").exists()


def test_switching_back_comes_after_the_other_spec(prepare: Prepare, works: Works) -> None:
    """Both were built before."""
    prepare("switch-back")
    assert [work for work, _ in works] == ["cold-cache", "before switch-back", "before switch-back other"]
    assert works[1][1] == works[2][1] != works[0][1]


def test_nothing_changed_comes_after_the_same_spec(prepare: Prepare, works: Works) -> None:
    """The first of the two commands is not measured."""
    prepare("nothing-changed")
    assert [work for work, _ in works] == ["cold-cache", "before nothing-changed"]


def test_a_measurement_says_what_was_measured(bench: Bench, prepare: Prepare, works: Works) -> None:
    """Names, costs and the state of the machine."""
    cache, _ = prepare("ortrim")
    found = bench.measure(CASE["ortrim"], cache, 2, 0.7, Steps())  # type: ignore[arg-type]
    assert (found.spec, found.case, found.round, found.commit) == ("demo", "ortrim", 2, "abc")
    assert (found.cost.wall_seconds, found.steps, found.units, found.busy_processors) == (12.5, 7, (1, 2), 0.7)
    assert (found.key, found.operator_types) == (bench.pair.key(CASE["ortrim"]), 2)
    assert found.disturbed
    assert not cache.exists()


def test_the_first_build_with_a_cache_is_what_later_cases_start_from(bench: Bench, works: Works) -> None:
    """It is not done twice."""
    cache = bench.prepare(COLD_CACHE, Steps())  # type: ignore[arg-type]
    bench.measure(COLD_CACHE, cache, 1, 0.0, Steps())  # type: ignore[arg-type]
    assert (bench.state / "compiler" / "1").is_file()
    bench.prepare(CASE["one-more"], Steps())  # type: ignore[arg-type]
    assert len(works) == 1


def test_keys_tell_measurements_apart(bench: Bench) -> None:
    """By the job and ortrim's commit; upstream's recipe knows nothing of the commit."""
    keys = {case.name: bench.pair.key(case) for case in CASES}
    later = {case.name: replace(bench.pair, commit="def").key(case) for case in CASES}
    assert [name for name in keys if keys[name] == later[name]] == ["upstream"]
    assert keys["ortrim"] == keys["cold-cache"] == f"{digest(bench.pair.own.job)[:16]}-abc"
    assert len({keys[name] for name in ("ortrim", "one-more", "three-more", "another-model", "switch-back")}) == 5


def test_the_points_of_the_graph_have_growing_operators(bench: Bench) -> None:
    """Of the list beside the benchmark."""
    configs = [bench.pair.job(Case(name="x", text="", first=count)).operator_config for count in (1, 5)]
    assert configs[0] == "ai.onnx;14;Add\n"
    assert configs[1].count(",") + configs[1].count("\n") == 5


def test_the_list_of_operators_begins_with_the_demos() -> None:
    """And names each only once."""
    names = [(operator.domain, operator.name) for operator in all_operators()]
    assert len(set(names)) == len(names) > 200
    assert {"Conv", "Gemm", "If", "FusedConv"} <= {name for _, name in names[:20]}
    assert {domain for domain, _ in names} == {"ai.onnx", "com.microsoft"}


def test_work_is_done_in_a_process_with_the_cases_cache(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real worker, with a program in the place of `invoke build`."""
    program = "import os; print('cache', os.environ['ORTRIM_CACHE'])"
    monkeypatch.setattr("build_time.bench.PROGRAM", program)
    done = bench.work(CASE["nothing-changed"], tmp_path / "case", Steps())  # type: ignore[arg-type]
    assert done.cost is not None
    assert done.cost.wall_seconds > 0
    log = tmp_path / "output" / "logs" / "demo-nothing-changed.log"
    assert log.read_text() == f"cache {tmp_path / 'case'}\n"


def test_a_case_that_fails_is_named(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the program's own words."""
    monkeypatch.setattr("build_time.bench.PROGRAM", "raise SystemExit('broken')")
    with pytest.raises(BuildError) as caught:
        bench.work(CASE["nothing-changed"], tmp_path / "case", Steps())  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.where) == ("case-failed", "demo, nothing-changed")
    assert "broken" in caught.value.why


@pytest.mark.parametrize("script", ["raise ValueError('inside')", "print('1 3 a.o')"])
def test_a_worker_that_leaves_no_result_is_a_failure(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    """A defect of the benchmark itself shows its traceback."""
    (tmp_path / "defective.py").write_text(script)
    monkeypatch.setattr("build_time.bench.BENCHMARKS", tmp_path)
    monkeypatch.setattr("build_time.bench.WORKER", "defective")
    steps = Steps()
    with pytest.raises(BuildError) as caught:
        bench.work(CASE["ortrim"], tmp_path / "case", steps)  # type: ignore[arg-type]
    assert caught.value.code == "worker-failed"
    assert ("inside" in caught.value.why) or steps.told == [(1, 3, "a.o")]


def test_the_request_says_how_the_case_is_built(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other spec's job with its operators; the sources lie in the cache, as `invoke build` has them."""
    requests: list[Work] = []

    def stream(words: tuple[str, ...], *_: object, **__: object) -> int:
        requests.append(from_json(Work, Path(words[3]).read_bytes()))
        return 1

    monkeypatch.setattr("build_time.bench.stream", stream)
    for name in ("another-model", "warm-cache", "three-more", "upstream"):
        with pytest.raises(BuildError):
            bench.work(CASE[name], tmp_path / "case", SimpleNamespace())  # type: ignore[arg-type]
    other, _, more, upstream = requests
    assert other.job == bench.pair.other.job
    assert {work.sources.parent for work in requests} == {tmp_path / "case" / "sources"}
    assert (more.sources / "x.cc").is_file()
    assert "Softmax" in more.job.operator_config
    assert (more.cached, upstream.cached, upstream.recipe) == (True, False, "upstream")
