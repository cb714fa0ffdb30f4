"""Rules and what they find. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from ortrim.lint.facts import LintFacts

Level = Literal["error", "advice"]


@dataclass(frozen=True, kw_only=True, order=True)
class Shown:
    """One place where a model breaks a rule, and how, in words."""

    place: str
    words: str


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule: its stable reference and level, what it is about, why that matters, and the step that mends it."""

    reference: str
    level: Level
    title: str
    why: str
    fix: str
    check: Callable[[LintFacts], Iterable[Shown]]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that a rule found in a model."""

    reference: str
    level: Level
    place: str
    words: str
