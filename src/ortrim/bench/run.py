"""`bench`: models measured on this machine, warm, in turn, with one choice of settings or with many."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ortrim.base.console import Console
from ortrim.base.files import require_writable, write_atomically
from ortrim.bench import points, scores
from ortrim.bench.subjects import LONGEST_SECONDS, BenchedModel, BenchRequest, Run, plan_of, request_at, subject_of
from ortrim.buildspec.buildspec import SessionSettings, session_json
from ortrim.devices.host import Host
from ortrim.errors import UsageError, VerifyError
from ortrim.parity.runner import Repetition, RunnerOutput
from ortrim.pipeline.history import record_benches
from ortrim.verify.measure import DeviceRuns, alone

FOLDER: Final = "bench"
"""Where journals lie, in the folder of packages and reports."""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One process that is to be run; its case is empty for one that only loads."""

    round: int
    model: points.BenchModel
    point: points.BenchPoint
    case: str

    @property
    def name(self) -> tuple[int, str, str, str]:
        """What tells it from all others."""
        return self.round, self.model.name, self.point.name, self.case


def bench(wanted: BenchRequest, console: Console) -> points.BenchReport:
    """Measure, and return what was measured, which is less than all when the user stopped it.

    Every sample is on the disk as soon as it is there; a finished bench is in the history.
    """
    output = wanted.asked.request.output
    require_writable(output / FOLDER)
    subject = subject_of(wanted.asked, console)
    console.note(f"measuring {subject.library.name}")
    with alone(console.note):
        journal = _journal(wanted, subject, console)
        _measured(journal, subject, Host(wanted.asked.request.cores), console)
    done = scores.read_journal(journal.path)
    report = scores.report_of(done.plan, done.samples, wanted.goal, str(journal.path))
    if report.done == report.total:
        record_benches(points.entries_of(report), output, console.warn)
    return report


def _journal(wanted: BenchRequest, subject: BenchedModel, console: Console) -> scores.Journal:
    """Begin a journal, or take up the one of a run that was stopped."""
    host, folder = Host(wanted.asked.request.cores), wanted.asked.request.output / FOLDER
    with console.step("try the models"):
        plan = plan_of(wanted, subject, host.facts(), host.run)
    if not wanted.resume:
        return scores.new_journal(folder, plan)
    found = scores.unfinished(folder, plan, scores.process_count(plan))
    if found is None:
        hint = "models, library, settings and machine must be the same; without --resume a new bench begins"
        raise UsageError(
            "nothing-to-resume", "there is no interrupted bench of this kind", where=str(folder), hint=hint
        )
    console.note(f"{len(found.samples)} of {scores.process_count(plan)} processes were run before")
    return found


def _measured(journal: scores.Journal, subject: BenchedModel, host: Host, console: Console) -> None:
    """Run what the journal has not, until the end or until the user stops it."""
    known = {(each.round, each.model, each.point, each.case): each for each in journal.samples}
    failed = {(each.model, each.point): each.failure for each in journal.samples if each.failure}
    with console.step("measure") as step, scores.appending(journal.path) as writer:
        progress = DeviceRuns(scores.process_count(journal.plan), step.progress)
        try:
            for turn in _turns(journal.plan):
                with progress.one(f"{turn.model.name}: {turn.point.name}"):
                    if turn.name not in known:
                        _one(turn, subject, host.run, failed, writer)
        except KeyboardInterrupt:
            step.note("stopped; measurements are kept, and --resume continues")


def _turns(plan: points.BenchPlan) -> Iterator[Turn]:
    for number in range(plan.rounds):
        for model in plan.models:
            for point, case in points.turns(model, number):
                yield Turn(round=number, model=model, point=point, case=case)


def _one(
    turn: Turn, subject: BenchedModel, run: Run, failed: dict[tuple[str, str], str], writer: scores.Writer
) -> None:
    """Run one process, unless its point is known to fail, and write down what it took."""
    point = (turn.model.name, turn.point.name)
    nothing = points.Sample(round=turn.round, model=turn.model.name, point=turn.point.name, case=turn.case)
    if point in failed:
        writer.add(replace(nothing, failure=failed[point]))
        return
    try:
        writer.add(_sample(turn, nothing, subject, run))
    except VerifyError as error:
        if turn.point == turn.model.points[0]:
            raise
        failed[point] = f"{error.what} ({error.code})"
        writer.add(replace(nothing, failure=failed[point]))


def _sample(turn: Turn, nothing: points.Sample, subject: BenchedModel, run: Run) -> points.Sample:
    names = [model.name for model in subject.planned.models.prepared]
    number = names.index(turn.model.name)
    cases = tuple(case for case in subject.planned.cases[number] if case.name == turn.case)
    times = {
        case.name: Repetition(runs=case.runs, warmup=case.warmup, seconds=LONGEST_SECONDS) for case in turn.model.cases
    }
    request = request_at(subject, number, turn.point, cases)
    before = _children_seconds()
    output = run(replace(request, repetition=times.get(turn.case, request.repetition)))
    loaded = replace(
        nothing,
        load_ms=output.load_ms,
        peak_rss_bytes=output.memory.peak_rss_bytes,
        cpu_seconds=_children_seconds() - before,
    )
    return _with_runs(loaded, output, times) if turn.case else loaded


def _with_runs(loaded: points.Sample, output: RunnerOutput, times: Mapping[str, Repetition]) -> points.Sample:
    (case,) = output.cases
    return replace(
        loaded,
        first_run_ms=case.first_run_ms,
        inferences=1 + times[case.name].warmup + case.runs,
        input_ms=case.input_ms,
        inference_ms=case.inference_ms,
        output_ms=case.output_ms,
    )


def _children_seconds() -> float:
    import resource  # noqa: PLC0415 - Windows has no such module, and other tasks run there

    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def write_session(report: points.BenchReport, path: Path) -> None:
    """Write a `session.json` with the recommended settings of each model, its default's without one.

    Raises `StorageError`.
    """
    sessions = {model.model.name: _settings(model) for model in report.models}
    write_atomically(path, session_json(report.plan.library.ort_version, sessions))


def _settings(model: points.ModelBench) -> SessionSettings:
    """Return the settings for the converted model, which `session.json` is about, wherever they were measured."""
    wanted = model.recommended or model.model.points[0].name
    point = next(each for each in model.model.points if each.name == wanted)
    return points.settings_at(point, style="fixed", reads_in_place=bool(point.session.in_place), onnx=False)
