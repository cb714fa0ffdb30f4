"""A comparison of engines as it is shown and written."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from engine_samples import sample_comparison, sample_rows
from ortrim.base.json import from_json, to_json
from ortrim.bench import engines
from ortrim.parity.measurements import Verdict

BUSY = "Other programs were running"


def shown(comparison: engines.EngineComparison, width: int = 80) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=width).print(engines.engine_tables(comparison))
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_the_terminal_has_a_line_for_each_engine() -> None:
    """In 80 columns, with p50, p99, ratio, the processor's time, load, memory, library, difference."""
    lines = [" ".join(line.split()) for line in shown(sample_comparison())]
    assert lines[0] == "net, one: x 1x3x8, rate scalar"
    assert "onnxruntime 1.15 8.61 1 1.00 30.0 28.0 20.0 1e-06" in lines
    assert "trimmed 0.550 0.695 0.477 ±5% 0.500 30.0 5.0 20.0 1e-06" in lines
    assert "mnn 2.30 2.97 2 2.10 30.0 28.0 20.0 FAIL 0.4" in lines
    assert "mnn has no parity: y: 3 of 4 elements out of tolerance" in lines
    assert "ncnn cannot run (convert): pnnx ended with 255: | no [layer] <b>" in lines
    assert "ONNX Runtime 1.21.0, ONNX Runtime, trimmed 1.21.0, MNN 3.6.1" in lines


def test_no_line_is_longer_than_a_terminal() -> None:
    rows = tuple(
        replace(row, times=replace(row.times, ratio=1234.5, spread=0.999, peak_bytes=9_999_900_000))
        for row in sample_rows()
        if row.times
    )
    assert all("…" not in line and len(line) <= 80 for line in shown(sample_comparison(rows)))


def test_markdown_is_a_table_to_publish() -> None:
    """Engines with their versions and sizes, then each case; what cannot run has a row, and its reason below."""
    text = engines.engine_markdown(sample_comparison())
    assert "| ONNX Runtime, trimmed | 1.21.0 | \N{EN DASH} | 1.00 MB |" in text
    assert "## net, one: x 1x3x8, rate scalar" in text
    expected = (
        "| ONNX Runtime, trimmed 1.21.0 | 0.550 ms | 0.695 ms | 47.7 % ± 2.3 | 0.500 ms | 30.0 ms | 5.00 MB | 20.0 MB |"
    )
    assert expected in text
    assert "| ncnn | cannot run |  |  |  |  |  |  |  |" in text
    assert "- ncnn cannot run (convert): pnnx ended with 255: \\| no \\[layer\\] &lt;b&gt;" in text
    assert "- MNN 3.6.1 has no parity: y: 3 of 4 elements out of tolerance" in text


def test_every_row_of_a_markdown_table_has_every_cell() -> None:
    lines = [line for line in engines.engine_markdown(sample_comparison()).splitlines() if line.startswith("|")]
    case = lines[-6:]
    assert {line.replace("\\|", "").count("|") for line in case} == {10}


def test_json_reads_back() -> None:
    comparison = sample_comparison()
    assert from_json(engines.EngineComparison, to_json(comparison)) == comparison


@pytest.mark.parametrize(("load", "busy"), [(0.0, False), (1.9, False), (2.1, True), (50.0, True)])
def test_a_busy_machine_is_said(load: float, *, busy: bool) -> None:
    cores = 4
    found = sample_comparison(load_average=load)
    found = replace(found, machine=replace(found.machine, cores=cores))
    assert engines.is_busy(found) is busy
    assert (BUSY in engines.engine_markdown(found)) is busy
    assert any(BUSY in line for line in shown(found)) is busy


@pytest.mark.parametrize(
    ("parity", "text"),
    [
        (engines.EngineParity(verdict=Verdict.PASS, max_absolute=0.0), "0"),
        (engines.EngineParity(verdict=Verdict.FAIL, max_absolute=0.0, reason="another shape"), "FAIL"),
        (engines.EngineParity(verdict=Verdict.FAIL, max_absolute=0.25), "FAIL 0.25"),
        (engines.EngineParity(verdict=Verdict.NOT_JUDGED, max_absolute=0.0), "not judged"),
    ],
)
def test_parity_in_a_word(parity: engines.EngineParity, text: str) -> None:
    """The largest difference; no number for what could not be compared element by element."""
    assert engines.parity_text(parity) == text


def test_nothing_ran_at_all() -> None:
    rows = (
        engines.EngineRow(engine="onnxruntime", stage="load", reason="no"),
        engines.EngineRow(engine="evil[bold]", stage="run", reason="[red]"),
    )
    lines = shown(sample_comparison(rows))
    assert lines[:3] == [
        "net, one: x 1x3x8, rate scalar",
        "onnxruntime cannot run (load): no",
        "evil[bold] cannot run (run): [red]",
    ]
    assert "| ONNX Runtime 1.21.0 | cannot run |" in engines.engine_markdown(sample_comparison(rows))
