"""What is said when a model is not the original's equal after a step, or cannot be compared."""

from ortrim.core.measurements import OutputParity, Verdict
from ortrim.core.steps_report import CaseLeft
from ortrim.errors import ModelError, ParityError


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
    numbers = f"largest difference {worst.max_absolute:.3g} (tolerance {worst.absolute_tolerance:g}), relative "
    numbers += f"{worst.max_relative:.3g} ({worst.relative_tolerance:g}), cosine similarity {worst.cosine:.6f}"
    why = f"{worst.reason}\n{numbers}\n{len(failed)} of {len(parity)} outputs differ"
    kind = worst.element_type
    hint = (
        "leave the step out, give it optional = true, or allow the difference from here on: "
        f"tolerances = {{ {kind} = {{ absolute = {worst.max_absolute * 1.25:.1g}, relative = 0.0 }} }}"
    )
    raise ParityError("step-breaks-parity", what, where=where, why=why, hint=hint)
