import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.parity.measurements import Unit
from ortrim.report import figures
from ortrim.report.charts import ticks
from ortrim.report.figures import LETTERS, symbol_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"), (640, "640 B"), (999.6, "1.00 kB"), (1587296, "1.59 MB"), (20571088, "20.6 MB"),
        (25276502016, "25.3 GB"), (None, figures.NONE), (math.nan, "nan"), (math.inf, "inf"), (10**400, "inf"),
    ],
)  # fmt: skip
def test_bytes_are_decimal_with_three_digits(value: float | None, text: str) -> None:
    assert figures.bytes_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 ms"), (0.1271, "0.127 ms"), (16.24, "16.2 ms"), (1234, "1230 ms"), (math.nan, "nan")]
)
def test_milliseconds_have_three_digits(value: float, text: str) -> None:
    assert figures.ms_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (999, "999"),
        (934_760, "934.8 k"),
        (999_960, "1.000 M"),
        (5_949_348, "5.949 M"),
        (1.2e10, "12.00 G"),
        (None, figures.NONE),
        (math.inf, "inf"),
    ],
)
def test_instructions_have_four_digits(value: float | None, text: str) -> None:
    """A thousandth is what a count varies by, and what a budget may be about."""
    assert figures.instructions_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0 runs"), (0.5, "0.5 runs"), (1.0, "1 run"), (12, "12 runs"), (None, figures.NONE), (math.nan, "nan")],
)
def test_runs_are_counted(value: float | None, text: str) -> None:
    assert figures.runs_text(value) == text


@pytest.mark.parametrize(
    ("ratio", "spread", "text"),
    [
        (0.0772, None, "7.7 %"), (1.08, 0.02, "108 % ± 2.2"), (0.5, 0.4, "50.0 % ± 20"),
        (None, 0.1, figures.NONE), (math.nan, 0.1, "nan"), (1.0, math.nan, "100 %"), (0.0, None, "0 %"),
    ],
)  # fmt: skip
def test_shares_are_percentages(ratio: float | None, spread: float | None, text: str) -> None:
    assert figures.share_text(ratio, spread) == text


@pytest.mark.parametrize(
    ("budget", "unit", "is_ratio", "text"),
    [
        (0.09, "bytes", True, "≤ 9 %"), (0.4, "bytes", True, "≤ 40 %"), (1.15, "ms", True, "≤ 115 %"),
        (12e6, "bytes", False, "≤ 12 MB"), (0.2, "ms", False, "≤ 0.2 ms"), (100, "ms", False, "≤ 100 ms"),
        (0.0, "runs", False, "≤ 0 runs"), (None, "ms", False, figures.NONE), (math.inf, "ms", False, "≤ inf"),
    ],
)  # fmt: skip
def test_budgets_are_written_as_their_author_would(
    budget: float | None, unit: Unit, *, is_ratio: bool, text: str
) -> None:
    assert figures.budget_text(budget, unit, is_ratio=is_ratio) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1e-4, "1e-04"), (1.19e-6, "1.2e-06"), (0.02, "0.02"), (math.nan, "nan"), (math.inf, "inf")],
)
def test_differences_are_short(value: float, text: str) -> None:
    """Small differences have an exponent, so that they can be compared at a glance."""
    assert figures.difference_text(value) == text


@given(st.text(), st.integers(min_value=3, max_value=80))
def test_a_shortened_text_fits_and_keeps_its_ends(text: str, limit: int) -> None:
    """No text comes out longer than the limit, and one that fits is left alone."""
    shown = figures.shortened(text, limit)
    assert len(shown) <= limit
    assert shown == text if len(text) <= limit else (shown[0], shown[-1]) == (text[0], text[-1])


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_any_float_can_be_written(value: float) -> None:
    for text in (
        figures.bytes_text(value),
        figures.ms_text(value),
        figures.runs_text(value),
        figures.share_text(value, value),
        figures.difference_text(value),
    ):
        assert text


@given(st.floats(min_value=0, max_value=1e6), st.floats(min_value=1e-6, max_value=1e6))
def test_ticks_are_few_and_inside(low: float, span: float) -> None:
    found = list(ticks(low, low + span, 5))
    assert found == sorted(found)
    assert len(found) <= 12
    assert all(low - span * 1e-6 - 1e-9 <= tick <= low + span * (1 + 1e-6) + 1e-9 for tick in found)


LONG_ARGUMENT = "std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char>> const&"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("onnxruntime::Relu<float>::Compute() const", "onnxruntime::Relu<float>::Compute() const"),
        (f"onnxruntime::Conv<float>::Compute({LONG_ARGUMENT}) const", "onnxruntime::Conv<…>::Compute(…) const"),
        (f"(anonymous namespace)::parse({LONG_ARGUMENT})", "(anonymous namespace)::parse(…)"),
        (f"onnxruntime::Loop::operator()({LONG_ARGUMENT})", "onnxruntime::Loop::operator()(…)"),
        (f"std::__1::operator<< <char>({LONG_ARGUMENT})", "std::__1::operator<< <…>(…)"),
    ],
)
def test_a_long_name_loses_what_is_in_brackets(name: str, shown: str) -> None:
    assert symbol_text(name) == shown


@given(st.text(alphabet="<>()a:->\x1b\n operator", max_size=400))
def test_any_name_is_short_and_printable(name: str) -> None:
    """Brackets that do not match, or none at all, never make a name longer than the limit or steer a terminal."""
    shown = symbol_text(name)
    assert len(shown) <= LETTERS
    assert "\x1b" not in shown
