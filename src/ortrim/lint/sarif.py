"""Findings in SARIF 2.1.0, the form in which code reviews show them (OASIS, 2020). Pure."""

import hashlib
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from ortrim.lint.findings import Finding, Rule
from ortrim.lint.judgement import Linted, ModelFindings
from ortrim.lint.rules import RULES

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS: Final = {"error": "error", "advice": "note"}
FIRST_LINE: Final = {"startLine": 1}
"""A model has no lines, and GitHub shows no result without one."""


def sarif_log(linted: Linted, *, version: str) -> dict[str, Any]:
    """Return the log as JSON-ready data; `version` is ortrim's."""
    driver = {"name": "ortrim", "semanticVersion": version, "rules": [_rule(rule) for rule in RULES]}
    results = [_result(finding, model) for model in linted.models for finding in model.findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.reference,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": f"Why: {rule.why}. Fix: {rule.fix}."},
        "defaultConfiguration": {"level": LEVELS[rule.level]},
    }


def _result(finding: Finding, model: ModelFindings) -> dict[str, Any]:
    identity = f"{finding.reference}\n{finding.place}\n{PurePath(model.model).name}"
    return {
        "ruleId": finding.reference,
        "ruleIndex": next(index for index, rule in enumerate(RULES) if rule.reference == finding.reference),
        "level": LEVELS[finding.level],
        "message": {"text": finding.words},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": _uri(model.file)}, "region": FIRST_LINE},
                "logicalLocations": [{"fullyQualifiedName": finding.place, "kind": "element"}],
            }
        ],
        "partialFingerprints": {"ortrim/v1": hashlib.sha256(identity.encode(errors="replace")).hexdigest()},
    }


def _uri(path: str) -> str:
    """Return a path as a reference: relative ones stay so, to be found from the repository's folder."""
    pure = PurePath(path)
    words = quote(pure.as_posix().encode(errors="surrogateescape"))  # a file's name need not be text
    return f"file://{words}" if pure.is_absolute() else words
