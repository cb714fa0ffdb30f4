"""What is said when a model is not the original's equal after a step, or cannot be compared."""

import math
from typing import Final

from ortrim.core.measurements import OutputParity, Verdict
from ortrim.core.steps_report import CaseLeft
from ortrim.errors import ModelError, ParityError

EXACT_COSINE: Final = 0.9999
"""The cosine similarity that outputs have by default at the least."""


def no_case_left(left: tuple[CaseLeft, ...], where: str) -> ModelError:
    """Return the diagnostic of a step after which nothing can be checked."""
    what = "the model takes none of its cases any more, so that nothing can be checked"
    why = "\n".join(f"case '{each.case}': {each.reason}" for each in left)
    return ModelError("no-case-left", what, where=where, why=why, hint="add a case that fits, see docs/prepare.md")


def require_parity(parity: tuple[OutputParity, ...], where: str) -> None:
    """Raise `ParityError` (`step-breaks-parity`) with the worst output, unless all are within tolerance."""
    failed = [each for each in parity if each.verdict is Verdict.FAIL]
    if not failed:
        return
    worst = max(failed, key=lambda each: each.max_absolute)
    what = f"output '{worst.output}' of case '{worst.case}' is not the original's any more"
    numbers = f"largest difference {worst.max_absolute:.3g} (relative {worst.max_relative:.3g})"
    why = f"{worst.reason}\n{numbers}\n{len(failed)} of {len(parity)} outputs differ"
    hint = f"leave the step out, give it optional = true, or allow the difference from here on: {tolerances_for(worst)}"
    raise ParityError("step-breaks-parity", what, where=where, why=why, hint=hint)


def tolerances_for(worst: OutputParity) -> str:
    """Return the key of a buildspec that would let an output pass."""
    bounds = [f"absolute = {worst.max_absolute * 1.25:.2g}"]
    if worst.rms is not None and worst.rms > (worst.rms_allowed or 0):
        bounds.append(f"rms = {worst.rms * 1.25:.2g}")
    if worst.cosine is not None and worst.cosine < EXACT_COSINE:
        bounds.append(f"cosine = {math.floor(worst.cosine * 1000) / 1000 - 0.001:.3f}")
    return f"tolerances = {{ {worst.element_type} = {{ {', '.join(bounds)} }} }}"
