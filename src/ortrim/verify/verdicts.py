"""What all the verdicts on a device or a target come to, and the verdict on a device that could not finish."""

from collections.abc import Iterable

from ortrim.core.measurements import OutputParity, Verdict
from ortrim.core.reports import NOT_FOR_DEVICE, DeviceFailure, DeviceReport
from ortrim.errors import Diagnostic, ExitCode
from ortrim.verify.runner_output import RunnerEnded, signal_name


def overall(verdicts: Iterable[Verdict], proofs: Iterable[Verdict]) -> Verdict:
    """Return the verdict on everything, given those on budgets and gates, and the `proofs` of parity.

    One failure fails. Doubt about a budget does not, but a proof that is inconclusive leaves everything so, and without
    any proof nothing is judged.
    """
    proved = set(proofs) - {Verdict.NOT_JUDGED}
    if Verdict.FAIL in {*verdicts, *proved}:
        return Verdict.FAIL
    if Verdict.INCONCLUSIVE in proved:
        return Verdict.INCONCLUSIVE
    return Verdict.PASS if proved else Verdict.NOT_JUDGED


def parity_of(outputs: Iterable[OutputParity]) -> Verdict:
    """Return the verdict on the outputs of one model: inconclusive when none of them could be judged."""
    found = {output.verdict for output in outputs}
    if Verdict.FAIL in found:
        return Verdict.FAIL
    return Verdict.PASS if Verdict.PASS in found else Verdict.INCONCLUSIVE


def failed_device(device: str, baseline: str, error: Diagnostic) -> DeviceReport:
    """Return the report of a device that gave nothing but a diagnostic: failed, unless the target was not for it."""
    failure = DeviceFailure(
        reference=error.reference,
        what=error.what,
        where=error.where,
        why=error.why,
        hint=error.hint,
        exit_code=int(error.exit_code),
    )
    code = error.returncode if isinstance(error, RunnerEnded) else None
    return DeviceReport(
        device=device,
        exit_code=code if code is not None and code >= 0 else None,
        signal=signal_name(code) if code is not None and code < 0 else None,
        host=None,
        baseline=baseline,
        comparisons=(),
        parity=(),
        runs=(),
        failure=failure,
        verdict=Verdict.NOT_JUDGED if error.reference == NOT_FOR_DEVICE else Verdict.FAIL,
    )


def diagnostic_of(failure: DeviceFailure) -> Diagnostic:
    """Return the diagnostic that a failure was made of, with its exit code."""
    diagnostic = Diagnostic(failure.reference, failure.what, where=failure.where, why=failure.why, hint=failure.hint)
    diagnostic.exit_code = ExitCode(failure.exit_code)
    return diagnostic
