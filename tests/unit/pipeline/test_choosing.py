"""Names that a user gives of what a buildspec has."""

import pytest

from ortrim.errors import UsageError
from ortrim.planning.request import require_known
from refusing import refused


def test_known_names_pass() -> None:
    require_known("no-such-model", "--only", ("b", "a"), ("a", "b"))
    require_known("no-such-model", "--only", (), ())


@pytest.mark.parametrize(("name", "hint"), [("vda", "did you mean 'vad'?"), ("x" * 500, "there are: vad, ocr")])
def test_an_unknown_name_is_refused(name: str, hint: str) -> None:
    error = refused(UsageError, require_known, "no-such-model", "--only", ("vad", name), ("vad", "ocr"))
    assert (error.code, error.where, error.hint) == ("no-such-model", "--only", hint)
    assert len(error.what) < 130
