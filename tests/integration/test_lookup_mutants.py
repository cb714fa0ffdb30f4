"""The cases that are found for a model tell it from its mutants: each entry of each table, each threshold, is proved.

For each operator of ai.onnx.ml and each lookup a small model, and mutants of it with another table. ORTRIM_WRITE_DOCS=1
writes the table of benchmarks/results/parity.md anew.
"""

import os
import re
from pathlib import Path
from typing import Final

import pytest

from lookup_models import EQUIVALENT, SUBJECTS, Subject
from lookup_proof import proved

PAGE: Final = Path(__file__).parents[2] / "benchmarks" / "results" / "parity.md"


def row(subject: Subject, mutants: int, told: int, untold: tuple[str, ...]) -> str:
    why = "; ".join(dict.fromkeys(filter(None, (reason(subject, each) for each in untold))))
    return f"| {subject.name} | {mutants} | {told} | {why} |"


def reason(subject: Subject, mutant: str) -> str:
    """Return why no input tells a mutant; empty if one might."""
    found = (why for name, what, why in EQUIVALENT if subject.name.startswith(name) and re.match(what, mutant))
    return next(found, "")


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name.replace(" ", "-"))
def test_found_cases_tell_all_mutants(subject: Subject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for those that are the same model; what was counted is what the page says."""
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    proof = proved(subject, tmp_path)
    assert [each for each in proof.untold if not reason(subject, each)] == []
    assert proof.told > 0
    line, text = row(subject, proof.mutants, proof.told, proof.untold), PAGE.read_text(encoding="utf-8")
    if os.environ.get("ORTRIM_WRITE_DOCS"):
        text = re.sub(rf"^\| {re.escape(subject.name)} \|.*$", lambda _: line, text, flags=re.MULTILINE)
        PAGE.write_text(text, encoding="utf-8")
    assert line in text.splitlines()


def test_the_page_sums_its_rows() -> None:
    """Every mutant that is another model is told."""
    text = PAGE.read_text(encoding="utf-8")
    rows = [
        line.split(" | ") for line in text.splitlines() if line[2:].split(" | ")[0] in {each.name for each in SUBJECTS}
    ]
    mutants, told = (sum(int(cells[at]) for cells in rows) for at in (1, 2))
    assert len(rows) == len(SUBJECTS)
    assert f"Of {mutants:,} mutants, {mutants - told:,} are the same model for every input; the other {told:,}" in text
