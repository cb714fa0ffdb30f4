"""What is measured: each case, and what it starts from. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ortrim.base.console import counted
from ortrim.errors import UsageError


class Start(StrEnum):
    """What lies in the cache when a case begins; sources, tools and the compiler's own files always do."""

    EMPTY = "empty"
    BUILT = "built"
    """What one build of the spec left, with its build tree and its compiled objects."""
    ELSEWHERE = "elsewhere"
    """The compiled objects of a build of the spec, in another folder, beside another copy of the sources."""
    VERIFIED = "verified"
    """What `invoke build` left of this spec and of another."""


class Recipe(StrEnum):
    UPSTREAM = "upstream"
    PRUNED = "pruned"
    UNPRUNED = "unpruned"
    COMMAND = "command"


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    text: str
    start: Start = Start.EMPTY
    recipe: Recipe = Recipe.PRUNED
    cached: bool = True
    more: int = 0
    switches: bool = False
    other: bool = False
    first: int = 0
    repeated: bool = True


UPSTREAM: Final = Case(
    name="upstream", text="upstream's recipe, no compiler cache", recipe=Recipe.UPSTREAM, cached=False
)
ORTRIM: Final = Case(name="ortrim", text="ortrim, no compiler cache", cached=False)
UNPRUNED: Final = Case(
    name="unpruned",
    text="ortrim, every file compiled, no compiler cache",
    recipe=Recipe.UNPRUNED,
    cached=False,
    repeated=False,
)
COLD_CACHE: Final = Case(name="cold-cache", text="ortrim, compiler cache on and empty", repeated=False)

CASES: Final = (
    UPSTREAM,
    ORTRIM,
    UNPRUNED,
    COLD_CACHE,
    Case(name="warm-cache", text="the same with all objects cached, other folders", start=Start.ELSEWHERE),
    Case(name="one-more", text="one more operator", start=Start.BUILT, more=1),
    Case(name="three-more", text="three more operators", start=Start.BUILT, more=3),
    Case(name="three-more-elsewhere", text="three more operators, other folders", start=Start.ELSEWHERE, more=3),
    Case(name="another-model", text="another spec", start=Start.BUILT, other=True),
    Case(
        name="switch-back",
        text="invoke build after another spec's",
        start=Start.VERIFIED,
        recipe=Recipe.COMMAND,
        switches=True,
    ),
    Case(name="nothing-changed", text="invoke build again", start=Start.VERIFIED, recipe=Recipe.COMMAND),
)

POINTS: Final = (1, 20, 60, 120)
"""Numbers of operator types in the graph, before all of them."""


def graph_cases(total: int) -> tuple[Case, ...]:
    numbers = (*(number for number in POINTS if number < total), total)
    return tuple(
        Case(
            name=f"operators-{number}",
            text=f"{counted(number, 'operator type')}, no compiler cache",
            cached=False,
            first=number,
        )
        for number in numbers
    )


def operators_in(name: str) -> int | None:
    """Return the number in a graph case's name, None for another case."""
    found = re.fullmatch(r"operators-(\d{1,6})", name)
    return int(found[1]) if found else None


def chosen_cases(words: str) -> tuple[Case, ...]:
    """Return the cases named in a list with commas, in the order of `CASES`; all without a name."""
    names = [word.strip() for word in words.split(",") if word.strip()]
    unknown = [name for name in names if name not in {case.name for case in CASES}]
    if unknown:
        hint = f"choose among: {', '.join(case.name for case in CASES)}"
        raise UsageError("bad-option", f"there is no case {', '.join(map(repr, unknown))}", where="--cases", hint=hint)
    return tuple(case for case in CASES if not names or case.name in names)


def schedule(cases: tuple[Case, ...], rounds: int) -> Iterator[tuple[int, Case]]:
    for number in range(1, rounds + 1):
        yield from ((number, case) for case in cases if case.repeated or number == 1)
