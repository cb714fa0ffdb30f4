"""Words that stand in `resources/rules`: what loading does not notice of them."""

import pytest

from ortrim.analysis.lint import rules
from ortrim.base.files import shipped_words
from ortrim.models import refusals
from ortrim.platforms.android import gates as android
from ortrim.platforms.apple import gates as apple

CODES = {
    "aar": [rule.code for rule in android.RULES],
    "lint": [rule.code for rule in rules.RULES],
    "refusals": [cause.code for cause in refusals.CAUSES],
    "xcframework": [rule.code for rule in apple.RULES],
}


@pytest.mark.parametrize("name", CODES)
def test_all_words_are_of_a_rule_that_there_is(name: str) -> None:
    assert [code for code in shipped_words(f"rules/{name}") if code not in CODES[name]] == []


def test_lint_knows_each_level_and_refusals_each_key() -> None:
    assert {rule.level for rule in rules.RULES} == {"error", "advice"}
    keys = [key for words in shipped_words("rules/refusals").values() for key in words]
    assert set(keys) == {"words", "what", "hint", "converted"}
    assert set(shipped_words("rules/refusals")) >= refusals._CONVERTING
