"""Targets and the patterns that select them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.core.targets import TARGETS, matches


def test_identifiers_are_the_keys_and_begin_with_their_system() -> None:
    """A prefix such as `linux` selects the targets of a system, so that every identifier begins with it."""
    for identifier, target in TARGETS.items():
        assert target.identifier == identifier == f"{target.system}-{target.architecture}"


@pytest.mark.parametrize("identifier", TARGETS)
def test_a_target_matches_itself_and_its_system(identifier: str) -> None:
    """The full name and the part before the dash both select it; half a word does not."""
    system = identifier.split("-", maxsplit=1)[0]
    assert matches(identifier, identifier)
    assert matches(system, identifier)
    assert not matches(system[:-1], identifier)


@given(st.text())
def test_no_pattern_is_an_error(pattern: str) -> None:
    """Whatever is typed either selects a target or does not."""
    assert matches(pattern, "linux-x64") in {True, False}
