"""The cases that are found for a model tell it from its mutants: each entry of each table, each threshold, is proved.

For each operator of ai.onnx.ml and each lookup a small model, and mutants of it with another table. ORTRIM_WRITE_DOCS=1
writes the table of benchmarks/results/parity.md anew.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime
import pytest

from lookup_models import EQUIVALENT, SUBJECTS, Subject, mutants
from ortrim.base.cache import cache_folder
from ortrim.base.files import sha256_of
from ortrim.buildspec.buildspec import CaseSpec, ModelSpec
from ortrim.models.full_runtime import full_runtime
from ortrim.models.models import PreparedModel
from ortrim.models.onnx_files import facts_of
from ortrim.parity.cases.found import found_cases
from ortrim.parity.compare import compare
from ortrim.parity.inputs import Case, load_array, save_array
from ortrim.parity.measurements import Verdict
from ortrim.parity.reference import CaseOutputs, References, SavedOutputs, cases_made, reference_outputs
from ortrim.parity.runner import SavedOutput


@dataclass(frozen=True, kw_only=True)
class Proof:
    """How many of a model's mutants the full runtime loads, how many the cases tell, and which they do not."""

    mutants: int
    told: int
    untold: tuple[str, ...]
    refused: int
    cases: tuple[CaseSpec, ...]
    warnings: tuple[str, ...]
    reasons: tuple[str, ...]


def proved(subject: Subject, folder: Path) -> Proof:
    """Find cases for a model and run its mutants with them."""
    path = folder / "model.onnx"
    onnx.save_model(subject.model, path)
    facts = facts_of(subject.model, sha256_of(path), path.stat().st_size, "here")
    model = PreparedModel(name="m", path=path, facts=facts)
    runtime = full_runtime(onnxruntime.__version__, None)
    found = found_cases(model, runtime, lambda _: None)
    spec = ModelSpec(name="m", path=path, cases=found.cases)
    cases = cases_made(model, spec, folder, lambda: runtime)
    reference = reference_outputs(model, cases, runtime, cache_folder("references"))
    told, untold, refused = 0, [], 0
    for number, (what, mutant) in enumerate(mutants(subject.model)):
        try:
            session = _session(mutant)
        except Exception:  # noqa: BLE001 - the runtime raises its own kinds
            refused += 1
            continue
        if _is_told(session, cases, reference, folder / str(number)):
            told += 1
        else:
            untold.append(what)
    return Proof(
        mutants=told + len(untold), told=told, untold=tuple(untold), refused=refused, cases=found.cases,
        warnings=found.warnings, reasons=found.reasons,
    )  # fmt: skip


def _session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _is_told(
    session: onnxruntime.InferenceSession, cases: tuple[Case, ...], reference: References, folder: Path
) -> bool:
    """Whether a mutant fails a case, or parity with the original."""
    kinds = {each.name: each.element_type for case in reference.cases for each in case.outputs}
    saved = []
    for case in cases:
        feeds = {
            info.name: load_array(file)
            for info, file in zip(session.get_inputs(), sorted(case.folder.glob("input_*")), strict=True)
        }
        try:
            values = session.run(None, feeds)
        except Exception:  # noqa: BLE001 - as above
            return True
        (folder / case.name).mkdir(parents=True)
        parts = [
            each for info, given in zip(session.get_outputs(), values, strict=True) for each in _parts(info.name, given)
        ]
        saved.append(
            CaseOutputs(
                name=case.name,
                outputs=tuple(
                    SavedOutput(
                        name=name,
                        element_type=kinds.get(name, "float32"),
                        shape=array.shape,
                        file=save_array(folder / case.name, f"output_{at:03}", array).name,
                    )
                    for at, (name, array) in enumerate(parts)
                ),
            )
        )
    found = compare("m", reference, SavedOutputs(folder=folder, cases=tuple(saved)), {})
    return any(each.verdict is Verdict.FAIL for each in found)


def _parts(name: str, given: Any) -> Iterator[tuple[str, Any]]:
    """Yield an output as references have it: the elements of a sequence, the keys and the values of a map."""
    if isinstance(given, list):
        for at, each in enumerate(given):
            yield from _parts(f"{name}[{at}]", each)
    elif isinstance(given, dict):
        strings = any(isinstance(key, str) for key in given)
        yield f"{name}.keys", np.array([*given], dtype=object if strings else np.int64)
        yield f"{name}.values", np.array([*given.values()], dtype=np.float32)
    else:
        yield name, given


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
