import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.report.figures import LETTERS, symbol_text

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
