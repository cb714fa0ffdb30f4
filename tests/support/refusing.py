"""The one way in which tests expect a diagnostic."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import pytest

from ortrim.errors import Diagnostic, ExitCode

Refusal = TypeVar("Refusal", bound=Diagnostic)
Words = ParamSpec("Words")


def refused(
    kind: type[Refusal], act: Callable[Words, object], /, *words: Words.args, **options: Words.kwargs
) -> Refusal:
    """Call what has to end with a diagnostic of this class and its exit code, and return the diagnostic."""
    with pytest.raises(kind) as caught:
        act(*words, **options)
    assert kind.exit_code in {ExitCode.UNEXPECTED, caught.value.exit_code}
    return caught.value
