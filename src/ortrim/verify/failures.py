"""What the verdicts of reports come to: the diagnostics with which a command ends."""

from collections.abc import Iterator

from ortrim.errors import BinaryError, BudgetMissed, Diagnostic, DiagnosticGroup, ExitCode, Inconclusive, ParityError
from ortrim.parity.measurements import Comparison, OutputParity, Verdict
from ortrim.verify.gates import BUDGET_GATE, gate_hint
from ortrim.verify.reports import NOT_FOR_DEVICE, DeviceFailure, DeviceReport, VerifyReport

Reports = tuple[VerifyReport, ...]


def gravest_failure(reports: Reports) -> Diagnostic | None:
    """Return the gravest failures in the reports, None without any.

    Bad libraries are gravest; then devices that could not finish, after which nobody knows the rest; then lost parity;
    then missed budgets; then what could not be judged.
    """
    for find in (_bad_libraries, _devices_failed, _lost_parity, _budgets_missed, _unproved):
        if failures := find(reports):
            return failures[0] if len(failures) == 1 else DiagnosticGroup(tuple(failures))
    return None


def _bad_libraries(reports: Reports) -> list[Diagnostic]:
    """Return the gates that failed, but for that of budgets, which `_budgets_missed` tells target by target."""
    return [
        BinaryError("gate-failed", f"{gate.name}: {gate.detail}", where=report.target, hint=gate_hint(gate))
        for report in reports
        for gate in report.gates
        if gate.verdict is Verdict.FAIL and gate.name != BUDGET_GATE
    ]


def _devices_failed(reports: Reports) -> list[Diagnostic]:
    """Return the failures of devices and of models, of the class of the first; those of others are in the reports.

    That one of several targets is not for a device is no failure when another one was.
    """
    used = {device.device for _, device in _devices(reports) if not _is_for_another(device.failure)}
    failures = [
        failure
        for _, device in _devices(reports)
        for failure in (*filter(None, (device.failure,)), *device.failed_models)
    ]
    found = [diagnostic_of(each) for each in failures if not (_is_for_another(each) and each.where in used)]
    return [diagnostic for diagnostic in found if diagnostic.exit_code == found[0].exit_code]


def _is_for_another(failure: DeviceFailure | None) -> bool:
    return failure is not None and failure.code == NOT_FOR_DEVICE


def _lost_parity(reports: Reports) -> list[Diagnostic]:
    hint = "report.html shows every output; if the difference is acceptable, say so in the model's tolerances"
    return [
        ParityError(
            "parity-lost",
            f"output {output.output} of case {output.case} differs from the full runtime's",
            where=f"{report.target} on {device.device}, model {output.model}",
            why=output.reason,
            hint=hint,
        )
        for report, device in _devices(reports)
        for output in device.parity
        if output.verdict is Verdict.FAIL
    ]


def _unproved(reports: Reports) -> list[Diagnostic]:
    hint = 'give the model cases whose outputs depend on the input; expect = "empty" says that there are none'
    return [
        Inconclusive(
            "parity-inconclusive",
            f"no output of {output.model} can be judged ({output.output}: {output.reason})",
            where=report.target,
            hint=hint,
        )
        for report in reports
        if report.verdict is Verdict.INCONCLUSIVE
        for output in unproved_models(report)
    ]


def unproved_models(report: VerifyReport) -> tuple[OutputParity, ...]:
    """Return the first output of each model of which none could be judged on a device."""
    expected = {model.name for model in report.models if model.expect}
    found: dict[str, OutputParity] = {}
    for device in report.devices:
        judged = {each.model for each in device.parity if each.verdict is not Verdict.NOT_JUDGED}
        for output in device.parity:
            if output.model not in expected | judged:
                found.setdefault(output.model, output)
    return tuple(found.values())


def _budgets_missed(reports: Reports) -> list[Diagnostic]:
    of_libraries = [(line, report.target) for report in reports for line in report.comparisons]
    of_models = [
        (line, f"{report.target} on {device.device}, model {line.model}")
        for report, device in _devices(reports)
        for line in device.comparisons
    ]
    return [
        BudgetMissed(
            "budget-missed",
            f"{line.measure} is over its budget",
            where=where,
            why=f"measured {_amount(line, line.ratio if line.budget_is_ratio else line.ours)}, "
            f"budget {_amount(line, line.budget)}",
            hint="report.html shows the details; reduce it, or change the budget in the buildspec",
        )
        for line, where in (*of_libraries, *of_models)
        if line.verdict is Verdict.FAIL
    ]


def _devices(reports: Reports) -> Iterator[tuple[VerifyReport, DeviceReport]]:
    for report in reports:
        for device in report.devices:
            yield report, device


def _amount(line: Comparison, value: float | None) -> str:
    """Write a measurement or a budget with its unit; nothing was measured when it is None."""
    if value is None:
        return "nothing"
    if line.budget_is_ratio:
        return f"{value:.1%} of the baseline's"
    match line.unit:
        case "bytes":
            return f"{value:,.0f} bytes"
        case "ms":
            return f"{value:.4g} ms"
        case "runs":
            return f"{value:g} runs"
        case "instructions":
            return f"{value:,.0f} instructions"


def diagnostic_of(failure: DeviceFailure) -> Diagnostic:
    """Return the diagnostic that a failure was made of, with its exit code."""
    diagnostic = Diagnostic(failure.code, failure.what, where=failure.where, why=failure.why, hint=failure.hint)
    diagnostic.exit_code = ExitCode(failure.exit_code)
    return diagnostic
