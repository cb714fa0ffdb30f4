"""The table of C functions: what is kept of it, and what of upstream's text it is made from."""

import pytest

from ortrim.compiling.mechanisms import INFERENCE, api_table
from ortrim.errors import BuildError, ExitCode

SOURCE = """
// static constexpr OrtApi ort_api_0 = { &OrtApis::CreateStatus, };
static constexpr OrtApiBase ort_api_base = {
    &OrtApis::GetApi};

static constexpr OrtApi ort_api_1_to_21 = {
    // NOTE: the order &OrtApis::MustNotChange, ever
    &OrtApis::CreateStatus,
    &OrtApis::GetErrorCode,
    &OrtApis::GetErrorMessage,
    &OrtApis::Run,
    &OrtApis::CreateIoBinding, /* &OrtApis::Old, */
#if !defined(ORT_MINIMAL_BUILD)
    &OrtApis::EnableProfiling,
#endif
    &OrtApis::SessionOptionsAppendExecutionProvider,
    &OrtApis::ReleaseStatus,
    // End of Version 1
};
static_assert(offsetof(OrtApi, Run) / sizeof(void*) == 3);
"""


def refused(text: str) -> list[str]:
    """Return the functions that a table refuses, in its order."""
    return [line.split("(")[1].rstrip(")") for line in text.splitlines() if line.startswith("ORTRIM_REFUSED")]


def test_inference_keeps_what_runs_models_in_upstreams_order() -> None:
    """Programs find a function by its place, so that upstream's order and its conditions stay."""
    assert api_table(SOURCE, "inference", providers=False).splitlines() == [
        "ORTRIM_KEPT(CreateStatus)",
        "ORTRIM_KEPT(GetErrorCode)",
        "ORTRIM_KEPT(GetErrorMessage)",
        "ORTRIM_KEPT(Run)",
        "ORTRIM_REFUSED(CreateIoBinding)",
        "#if !defined(ORT_MINIMAL_BUILD)",
        "ORTRIM_REFUSED(EnableProfiling)",
        "#endif",
        "ORTRIM_REFUSED(SessionOptionsAppendExecutionProvider)",
        "ORTRIM_KEPT(ReleaseStatus)",
    ]


def test_names_are_kept_beside_what_tells_of_errors() -> None:
    """A list of names is all that is kept, but for what says why a function refuses."""
    assert refused(api_table(SOURCE, ("CreateIoBinding",), providers=False)) == [
        "Run",
        "EnableProfiling",
        "SessionOptionsAppendExecutionProvider",
    ]


def test_names_add_to_inference() -> None:
    """A list may begin with a set."""
    assert "CreateIoBinding" not in refused(api_table(SOURCE, ("inference", "CreateIoBinding"), providers=False))
    assert "Run" not in refused(api_table(SOURCE, ("inference", "CreateIoBinding"), providers=False))


def test_all_refuses_nothing() -> None:
    """`all` is upstream's own table."""
    assert refused(api_table(SOURCE, "all", providers=False)) == []


def test_a_library_with_providers_can_be_told_of_them() -> None:
    """An execution provider that nobody could name would be of no use."""
    assert "SessionOptionsAppendExecutionProvider" not in refused(api_table(SOURCE, "inference", providers=True))


def test_a_function_that_is_not_there_is_named_with_one_like_it() -> None:
    """A misspelt name ends the build before anything is compiled."""
    with pytest.raises(BuildError) as caught:
        api_table(SOURCE, ("inference", "CreateIOBinding"), providers=False)
    assert (caught.value.code, caught.value.exit_code) == ("unknown-c-function", ExitCode.BUILD)
    assert "CreateIOBinding" in caught.value.what
    assert caught.value.hint == "did you mean CreateIoBinding?"


@pytest.mark.parametrize(
    "text",
    [
        "",
        SOURCE.replace("static constexpr OrtApi ort_api_1", "static const OrtApi ort_api_1"),
        SOURCE + SOURCE.replace("1_to_21", "22"),
        SOURCE.replace("&OrtApis::Run,", "nullptr,"),
        SOURCE.replace("&OrtApis::Run,", "&Other::Run,"),
    ],
    ids=["no source", "no such table", "two tables", "an entry without a function", "an entry of another kind"],
)
def test_a_table_that_cannot_be_read_is_none(text: str) -> None:
    """Where another version writes its table in another way, all functions stay."""
    assert api_table(text, "inference", providers=False) == ""


def test_what_a_function_makes_can_be_released() -> None:
    """Nothing leaks for want of its Release function."""
    made = {name.removeprefix("Release") for name in INFERENCE if name.startswith("Release")}
    assert made >= {"Env", "Session", "SessionOptions", "RunOptions", "Value", "MemoryInfo", "TypeInfo", "Status"}
