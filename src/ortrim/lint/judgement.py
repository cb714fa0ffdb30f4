"""What the rules make of models: findings in order, each once. Pure."""

from dataclasses import dataclass
from itertools import groupby
from typing import Final, Literal

from ortrim.lint.facts import LintFacts
from ortrim.lint.findings import Finding
from ortrim.lint.rules import BY_REFERENCE, RULES

LEVELS: Final = ("error", "advice")
WHOLE: Final = "model"
"""The place of what is said of a model as a whole."""


@dataclass(frozen=True, kw_only=True)
class ModelFindings:
    """The findings of one model; `not_checked` says in words what could not be looked at, and why.

    `file` is where a code review is to show them: the model's, or the buildspec of a model that is in no repository.
    `steps` are those after which it was judged.
    """

    model: str
    file: str
    sha256: str
    ort_version: str
    findings: tuple[Finding, ...]
    steps: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that are errors."""
        return tuple(finding for finding in self.findings if finding.level == "error")


@dataclass(frozen=True, kw_only=True)
class Linted:
    """The findings of several models: the document of `--json`."""

    schema: Literal["ortrim-lint/1"] = "ortrim-lint/1"
    models: tuple[ModelFindings, ...]


def judge(facts: LintFacts) -> tuple[Finding, ...]:
    """Return what the rules find, errors first, then in the order of the table; places in order, each thing once."""
    found = []
    for rule in RULES:
        made = sorted(set(rule.check(facts)))
        found += [
            Finding(reference=rule.reference, level=rule.level, place=shown.place, words=shown.words) for shown in made
        ]
    return tuple(sorted(found, key=lambda finding: LEVELS.index(finding.level)))


def lines_of(model: ModelFindings, most: int | None) -> tuple[str, ...]:
    """Write a model's findings for people: by rule, with `most` places of each or all, then why and how to mend it."""
    lines = []
    for reference, group in groupby(model.findings, key=lambda finding: finding.reference):
        found, rule = tuple(group), BY_REFERENCE[reference]
        lines.append(f"{rule.level}: {reference}: {rule.title}")
        lines += [f"  {placed(finding)}" for finding in found[:most]]
        if most is not None and len(found) > most:
            lines.append(f"  and {len(found) - most:,} more")
        lines += [f"  why: {rule.why}", f"  fix: {rule.fix}"]
    lines += [f"not checked: {words}" for words in model.not_checked]
    return tuple(lines)


def placed(finding: Finding) -> str:
    """Write a finding with its place, unless that stands in the words already, or is all of the model."""
    told = finding.place in finding.words or finding.place == WHOLE
    return finding.words if told else f"{finding.place}: {finding.words}"
