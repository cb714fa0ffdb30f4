"""The table of what steps bring: for a terminal, and as Markdown."""

from io import StringIO

from preparation.report import HEADINGS, markdown, rows, table

from ortrim.base.console import Console
from ortrim.report.figures import NONE
from preparation_samples import both_turn, change, preparation_record


def cells(*columns: str, **changes: object) -> tuple[str, ...]:
    """Return some cells of the row of a model that was measured in three rounds, on a machine that was ever slower."""
    rounds = (both_turn(number, slower=float(number)) for number in (1, 2, 3))
    (row,) = rows(preparation_record(*rounds, changes=(change(**changes),)))
    return tuple(row[HEADINGS.index(column)] for column in columns)


def test_sizes_are_shown_before_and_after() -> None:
    """To the byte, the spec's library with them."""
    assert cells("model", "ONNX, bytes", "nodes", "operator types", ".ort, bytes", "library, bytes") == (
        "demo: net", "2,850,000 → 2,200,000", "63 → 51", "14 → 12", "2,300,000 → 2,100,000", "1,300,000 → 1,200,000",
    )  # fmt: skip


def test_ratios_are_of_after_to_before_within_a_round() -> None:
    """A machine that is slow for a while slows both."""
    assert cells("load", "p50", "peak RSS", "rounds") == ("0.750 ±0.000", "0.750 ±0.000", "0.750 ±0.000", "3")


def test_outputs_and_the_largest_difference_are_reported() -> None:
    """A model without steps has no difference."""
    assert cells("outputs", "difference") == ("16 of 16", "2.5e-06")
    assert cells("outputs", "difference", outputs_agree=3, largest_difference=None) == ("3 of 16", NONE)


def test_rounds_of_other_libraries_do_not_count() -> None:
    """Nothing was measured yet of those that there are now."""
    assert cells("load", "p50", "peak RSS", "rounds", key="new") == (NONE, NONE, NONE, "0")


def test_a_library_that_is_not_in_the_record_is_a_dash() -> None:
    """Somebody changed the file."""
    assert cells("library, bytes", spec="other") == (f"{NONE} → {NONE}",)


def test_a_model_named_like_its_spec_is_named_once() -> None:
    """The other specs' are named with it."""
    assert cells("model", spec="net") == ("net",)


def test_a_model_measured_beside_other_work_is_marked() -> None:
    """With the sign that the text explains."""
    (row,) = rows(preparation_record(both_turn(busy_processors=2.0)))
    assert row[0] == "demo: net*"


def test_the_markdown_says_how_it_is_read_and_where_it_was_measured() -> None:
    """One row for each model; names stay text."""
    text = markdown(preparation_record(both_turn(), changes=(change(), change(model="a|b<i>"))))
    assert "A processor, 2 cores, Linux 6.1." in text
    lines = text.splitlines()
    assert lines[-4].startswith("| model | ONNX, bytes |")
    assert lines[-2].startswith("| demo: net | 2,850,000 → 2,200,000 | 63 → 51 |")
    assert lines[-1].startswith("| demo: a\\|b&lt;i&gt; |")


def test_the_table_shows_every_model() -> None:
    """And no control characters of their names."""
    text = StringIO()
    console = Console(stdout=text, stderr=text, environment={}, width=300)
    console.render(table(preparation_record(changes=(change(model="one"), change(model="two\x1b[31m")))))
    assert "demo: one" in text.getvalue()
    assert "16 of 16" in text.getvalue()
    assert "\x1b[31m" not in text.getvalue()
