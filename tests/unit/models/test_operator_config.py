"""The required-operators configuration, read and written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operator_strategies import required_sets
from ortrim.errors import ExitCode, OperatorsError
from ortrim.models.operators import EMPTY, OperatorId, OperatorTypes, RequiredOperators, parse_config, render_config
from refusing import refused

SILERO = """\
# Generated from model/s:
# - conv/silero_vad_op18_ifless.ort
ai.onnx;11;Conv{"inputs": {"0": ["float"]}}
ai.onnx;13;Concat{"inputs": {"0": ["float"]}},Equal{"inputs": {"0": ["int64_t"]}},Squeeze,Unsqueeze
ai.onnx;14;Add{"inputs": {"0": ["float"]}},Reshape
com.microsoft;1;FusedConv
"""


def operator(name: str, opset: int = 11, domain: str = "ai.onnx") -> OperatorId:
    return OperatorId(domain=domain, opset=opset, name=name)


@given(required_sets)
def test_what_is_written_reads_back(required: RequiredOperators) -> None:
    assert parse_config(render_config(required)) == required


@given(st.text(alphabet=' \t\n\r;,{}[]":!#aA0x.\N{ARABIC-INDIC DIGIT ONE}', max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Whatever the text, the answer is a value that writes back or a diagnostic, never another error."""
    try:
        required = parse_config(text)
    except OperatorsError:
        return
    assert parse_config(render_config(required)) == required


@given(st.text(max_size=40))
def test_any_types_are_read_or_refused(text: str) -> None:
    try:
        parse_config("ai.onnx;1;Add{" + text + "}")
    except OperatorsError as error:
        assert error.exit_code == ExitCode.OPERATORS  # noqa: PT017 - both outcomes are right


def test_the_converters_output_is_read() -> None:
    """A configuration as upstream's converter writes it gives its operators and types."""
    required = parse_config(SILERO)
    assert operator("FusedConv", 1, "com.microsoft") in required.operators
    assert required.types_of("ai.onnx", "Equal") == OperatorTypes(inputs=((0, ("int64_t",)),))
    assert required.types_of("ai.onnx", "Squeeze").unrestricted
    assert render_config(required) == "".join(line + "\n" for line in SILERO.splitlines()[2:])


def test_several_opsets_share_a_line() -> None:
    assert parse_config("ai.onnx;11,12;Add , Relu").operators == (
        operator("Add"), operator("Relu"), operator("Add", 12), operator("Relu", 12),
    )  # fmt: skip


def test_types_on_several_lines_are_united() -> None:
    """Concatenated configurations keep the types of both, where upstream keeps only the last (issue 16742)."""
    text = 'ai.onnx;11;Add{"inputs": {"0": ["float"]}}\nai.onnx;13;Add{"inputs": {"0": ["double"]}}\n'
    assert parse_config(text).types_of("ai.onnx", "Add").inputs == ((0, ("double", "float")),)


def test_a_line_without_types_lifts_the_limit() -> None:
    """An operator named once without types keeps all types."""
    text = 'ai.onnx;11;Add{"inputs": {"0": ["float"]}}\nai.onnx;13;Add\n'
    assert parse_config(text).types == ()


def test_outputs_and_custom_types_are_read() -> None:
    text = (
        'ai.onnx;13;Cast{"inputs": {"0": ["bool"]}, "outputs": {"0": ["float", "int64_t"]}},'
        'OneHot{"custom": [["float", "int64_t", "int64_t"]]}\n'
    )
    required = parse_config(text)
    assert required.types_of("ai.onnx", "OneHot").custom == (("float", "int64_t", "int64_t"),)
    assert render_config(required) == text


def test_directives_are_read() -> None:
    """Global types and the meaning of an empty list are part of the grammar."""
    text = "!globally_allowed_types;bool,float\nai.onnx;11;Add\n"
    assert parse_config(text).globally_allowed_types == ("bool", "float")
    assert render_config(parse_config(text)) == text
    assert parse_config("!no_ops_specified_means_all_ops_are_required\n").everything


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "  \t\n"])
def test_nothing_requires_nothing(text: str) -> None:
    """Empty files and comments mean no operators."""
    assert parse_config(text) == EMPTY
    assert render_config(EMPTY) == ""


def test_windows_line_ends_are_taken() -> None:
    """A file that went through Windows reads the same."""
    assert parse_config("ai.onnx;11;Add\r\n") == parse_config("ai.onnx;11;Add\n")


@pytest.mark.parametrize(
    ("text", "reference", "place"),
    [
        ("ai.onnx;11", "config-syntax", "line 1, column 1"),
        ("Add", "config-syntax", "line 1, column 1"),
        (";11;Add", "config-syntax", "line 1, column 1"),
        ("ai onnx;11;Add", "config-syntax", "line 1, column 1"),
        ("\nai.onnx;11;", "config-syntax", "line 2, column 12"),
        ("ai.onnx;11;Add,", "config-syntax", "line 1, column 16"),
        ("ai.onnx;11;Add,,Relu", "config-syntax", "line 1, column 16"),
        ("ai.onnx;11;Add Relu", "config-syntax", "line 1, column 16"),
        ("ai.onnx;11;Add # comment", "config-syntax", "line 1, column 16"),
        ("ai.onnx;11;Add;Relu", "config-syntax", "line 1, column 15"),
        ("ai.onnx;11;Add}", "config-syntax", "line 1, column 15"),
        ("ai.onnx;;Add", "config-bad-opset", "line 1, column 9"),
        ("ai.onnx;0;Add", "config-bad-opset", "line 1, column 9"),
        ("ai.onnx;-1;Add", "config-bad-opset", "line 1, column 9"),
        ("ai.onnx;11,x;Add", "config-bad-opset", "line 1, column 12"),
        ("ai.onnx;99999999999999;Add", "config-bad-opset", "line 1, column 9"),
        ("ai.onnx;\N{ARABIC-INDIC DIGIT ONE};Add", "config-bad-opset", "line 1, column 9"),
        ("ai.onnx;11;Add{", "config-bad-types", "line 1, column 16"),
        ("ai.onnx;11;Add{}", "config-bad-types", "line 1, column 15"),
        ('ai.onnx;11;Add{"inputs": {}}', "config-bad-types", "line 1, column 15"),
        ('ai.onnx;11;Add{"inputs": {"0": []}}', "config-bad-types", "line 1, column 15"),
        ('ai.onnx;11;Add{"inputs": {"0": "float"}}', "config-bad-types", "line 1, column 15"),
        ('ai.onnx;11;Add{"inputs": {"0": [1]}}', "config-bad-types", "line 1, column 15"),
        ('ai.onnx;11;Add{"inputs": {"-1": ["float"]}}', "config-bad-types", "line 1, column 15"),
        ('ai.onnx;11;Add{"inputs": {"00": ["float"]}}', "config-bad-types", "line 1, column 15"),
        ('ai.onnx;11;Add{"inputs": {"0": ["float"], "0": ["bool"]}}', "config-bad-types", "line 1, column 15"),
        ('ai.onnx;11;Add{"inputs": ["float"]}', "config-bad-types", "line 1, column 15"),
        ('ai.onnx;11;Add{"input": {"0": ["float"]}}', "config-bad-types", "line 1, column 15"),
        ('ai.onnx;11;OneHot{"custom": {"0": ["float"]}}', "config-bad-types", "line 1, column 18"),
        ('ai.onnx;11;Add{"inputs": ' + "[" * 100_000, "config-bad-types", "line 1, column 15"),
        ('ai.onnx;11;Add{"inputs": ' + "1" * 5000 + "}", "config-bad-types", "line 1, column 15"),
        ('ai.onnx;11;Add{"inputs": {"0": ["int32"]}}', "config-unknown-type", "line 1, column 15"),
        ("!globally_allowed_types;float,flaot", "config-unknown-type", "line 1, column 31"),
        ("!globally_allowed_types;", "config-unknown-type", "line 1, column 25"),
        ("!globally_allowed_types", "config-unknown-directive", "line 1, column 1"),
        (" !all_ops", "config-unknown-directive", "line 1, column 2"),
        ("!globally_allowed_types;float\n!globally_allowed_types;bool", "config-repeated-global-types", "line 2"),
        (
            '!globally_allowed_types;float\nai.onnx;11;Add{"inputs": {"0": ["float"]}}',
            "config-mixed-types",
            "line 2, column 15",
        ),
    ],
)
def test_bad_configurations_are_refused_with_their_place(text: str, reference: str, place: str) -> None:
    error = refused(OperatorsError, parse_config, text, "my.config")
    assert error.code == reference
    assert error.where.startswith(f"my.config: {place}")


def test_a_misspelt_type_gets_a_suggestion() -> None:
    error = refused(OperatorsError, parse_config, 'ai.onnx;11;Add{"inputs": {"0": ["int32"]}}')
    assert error.hint == "did you mean 'int32_t'?"
