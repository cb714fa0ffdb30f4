from dataclasses import replace
from typing import Any

import pytest

from bench_samples import sample_report
from ortrim.base.console import Console
from ortrim.bench.points import entries_of
from ortrim.report import history_pages
from ortrim.report.figures import NONE
from ortrim.report.history import BenchEntry, BuildEntry, Measure
from sample_builds import sample_entry

HOSTILE = "<script>alert('1')</script>\x1b[2J"


def several(count: int) -> tuple[BuildEntry, ...]:
    return tuple(
        sample_entry(file_bytes=1_700_000 + 1000 * number, recorded_at=f"2026-11-{number % 28 + 1:02d}T12:00:00+00:00")
        for number in range(count)
    )


def test_a_build_is_held_against_the_one_before_of_its_kind() -> None:
    """Another target between two builds changes nothing; the first of a kind has nothing to be compared with."""
    first, second = several(2)
    table = history_pages.history_table(
        (first, sample_entry(target="linux-arm64"), second, replace(second, verdict="fail"))
    )
    assert [row[4] for row in table.rows] == [NONE, NONE, "+1,000 (+0.1 %)", "same"]
    assert history_pages.change_text(sample_entry(file_bytes=5), sample_entry(file_bytes=0)) == "+5"


def test_a_line_has_the_figures_of_the_first_device() -> None:
    """Of several cases the slowest is shown, of several devices the first; what was not measured is a dash."""
    (line,) = history_pages.history_table([sample_entry()]).rows
    assert (*line[6:9],) == ("10.0 MB", "8.77 ms", "0.322 ms")
    (nowhere,) = history_pages.history_table([sample_entry(measures=())]).rows
    assert (*nowhere[6:9],) == (NONE, NONE, NONE)


def test_the_table_has_the_newest_first_within_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """Only the last builds of each kind are shown, and it is said how many are not."""
    Console(environment={"COLUMNS": "80"}).render(history_pages.history_tables(several(20), 3))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    shown = [line for line in lines if line.startswith("2026-11")]
    assert [line.split()[2] for line in shown] == ["1,719,000", "1,718,000", "1,717,000"]
    assert "17 earlier builds not shown" in lines


def test_curves_are_of_one_device_and_model() -> None:
    entries = (sample_entry(), sample_entry(measures=()), sample_entry())
    found = history_pages.curves(entries, "p50")
    assert [(curve.label, [number for number, _ in curve.points]) for curve in found] == [
        ("silero, host", [0, 2]),
        ("silero, qemu-user", [0, 2]),
    ]
    assert found[0].points[0][1] == 0.322


def test_the_page_has_a_plot_for_each_measure() -> None:
    """Sizes by family and three measures; each kind of build has its own."""
    page = history_pages.history_page((*several(90), sample_entry(target="linux-arm64")))
    assert page.count("<svg") == 2 * 4
    assert "linux-arm64" in page
    assert len(history_pages.series((*several(3), sample_entry(target="linux-arm64")))) == 2


def test_each_point_names_its_training_run() -> None:
    page = history_pages.history_page([sample_entry(training_run="wandb 7<b>")])
    assert "training run wandb 7&lt;b&gt;" in page
    assert "training run" not in history_pages.history_page([sample_entry()])


def benches(day: int, **changes: Any) -> tuple[BenchEntry, ...]:
    found = entries_of(sample_report(threads_is_2=0.5))
    day_of = {"recorded_at": f"2026-11-{day:02d}T12:00:00+00:00"}
    return tuple(replace(each, **{**day_of, **changes}) for each in found)


def test_benches_have_plots_of_their_own() -> None:
    """A line for each choice of settings, over benches; with the model and its training run at each point."""
    entries = (*benches(1, training_run="run <1>"), *benches(2, model_sha256="f" * 64))
    (kind,) = history_pages.bench_kinds(entries)
    assert kind["name"] == "bench · demo · linux-x64 · net · built"
    assert [each["heading"].split(",")[0] for each in kind["measures"]].count("Latency") == 2
    picture = kind["measures"][0]["picture"]
    assert picture.count("<circle") == 2 * len(kind["measures"][0]["curves"])
    assert [label.split(",")[0] for _, label in kind["measures"][0]["curves"]][:2] == ["default", "arena=false"]
    page = history_pages.history_page([], entries)
    assert page.count("<svg") == len(kind["measures"]) == 4
    for text in ("and 2 benches", "training run run &lt;1&gt;", "model ffffffffffff", "default, "):
        assert text in page, text


def test_figures_of_another_machine_are_another_line() -> None:
    (one,) = history_pages.bench_kinds(benches(1))
    (two,) = history_pages.bench_kinds((*benches(1), *benches(2, cpu="another")))
    lines = [len(kind["measures"][0]["curves"]) + kind["measures"][0]["left_out"] for kind in (one, two)]
    assert lines == [4, 8]


def test_one_build_and_none_are_pages() -> None:
    """A single point is drawn; a build that knows nothing of components or devices has no pictures."""
    assert history_pages.history_page([sample_entry()]).count("<svg") == 4
    bare = history_pages.history_page([sample_entry(components=(), measures=())])
    assert "<svg" not in bare
    assert "Nothing is known of the components." in bare
    assert history_pages.history_page([]).count("<section") == 0


def test_hostile_names_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    measure = Measure(device=HOSTILE, model=HOSTILE, case=HOSTILE, measure="p50", unit="ms", value=1.0)
    ugly = sample_entry(spec=HOSTILE, target=HOSTILE, recorded_at=HOSTILE, verdict=HOSTILE, measures=(measure,))
    page = history_pages.history_page(
        [ugly], benches(1, spec=HOSTILE, model=HOSTILE, recorded_at=HOSTILE, training_run=HOSTILE)
    )
    assert "<script" not in page
    assert "\x1b" not in page
    Console(environment={}).render(history_pages.history_tables([ugly], 5))
    assert "\x1b" not in capsys.readouterr().out
