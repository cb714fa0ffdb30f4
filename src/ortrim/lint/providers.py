"""Rules about execution providers of phones, by the counts of upstream's own usability checker."""

from collections.abc import Iterator
from typing import Final

from ortrim.lint.facts import LintFacts, ProviderFacts
from ortrim.lint.findings import Shown

ENOUGH: Final = 0.75
"""Upstream's checker recommends a provider from there on, when the nodes are one partition."""
MOST_LISTED: Final = 6


def partitions(facts: LintFacts) -> Iterator[Shown]:
    """Find providers that take the model in pieces, or too little of it to be worth it."""
    for each in facts.providers or ():
        if each.partitions != 1 or each.supported < each.nodes * ENOUGH:
            yield Shown(place=each.name, words=_words(each))


def _words(facts: ProviderFacts) -> str:
    words = f"{facts.name} takes {facts.supported} of {facts.nodes} nodes in {_counted(facts.partitions)}"
    if (facts.fixed_supported, facts.fixed_partitions) != (facts.supported, facts.partitions):
        words += f"; with all shapes fixed {facts.fixed_supported} in {_counted(facts.fixed_partitions)}"
    if facts.unsupported:
        more = len(facts.unsupported) - MOST_LISTED
        words += f"; it has no {', '.join(facts.unsupported[:MOST_LISTED])}{f' and {more} more' if more > 0 else ''}"
    return words


def _counted(number: int) -> str:
    return f"{number} partition{'' if number == 1 else 's'}"
