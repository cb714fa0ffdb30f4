"""Runs of workflows and their jobs: started once and no more than once, found, followed and cancelled."""

import json
import math
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from ortrim.base.http import Answer, Clock, Response, TransportError, chunks, whole
from ortrim.base.tools import causes, diagnose
from ortrim.errors import BuildError, Diagnostic, DiagnosticGroup, Interrupted, NetworkError, UsageError
from ortrim.github.artifacts import opened_download
from ortrim.github.client import GitHub, Run, StartedRun, WorkflowJob, everything, message_of, parsed
from ortrim.github.repositories import Repository

CAUSES: Final = causes("dispatch")
"""Words of GitHub's, and the code, what and hint that they come to.

https://github.com/benc-uk/workflow-dispatch/issues/72,
https://github.com/convictional/trigger-workflow-and-wait/issues/44
"""


def dispatch_refusal(client: GitHub, answer: Answer, workflow: str, ref: str) -> Diagnostic:
    """Return the diagnostic of a dispatch that was turned down."""
    why = client.redacted(message_of(answer))
    causes = CAUSES if answer.status == 422 else ()
    if error := diagnose(why, causes, workflow, why, kind=NetworkError, ref=repr(ref[:200]), workflow=workflow):
        return error
    if answer.status == 404 and client.token is not None:
        what = "the workflow does not exist"
        hint = "its file must be on the default branch, and the token must have access"
        return NetworkError("workflow-not-found", what, where=workflow, why=why, hint=hint)
    return client.refused(answer, workflow)


WORKFLOW_FILE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.ya?ml")
CORRELATION: Final = re.compile(r"[A-Za-z0-9-]{8,64}")
MOST_INPUTS: Final = 25
LARGEST_INPUTS: Final = 65_535
"""GitHub's limit, in characters, for all inputs of a dispatch together.

https://docs.github.com/actions/reference/workflows-and-actions/workflow-syntax#onworkflow_dispatchinputs
"""
PAUSES_SECONDS: Final = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 30.0, 30.0)
"""How a new run is waited for; GitHub lists it some seconds after it was dispatched."""


@dataclass(frozen=True, kw_only=True)
class Dispatch:
    """What is to be run: a workflow's file name, the branch or tag, its inputs.

    `correlation_id` is new for each dispatch, and the workflow puts it into its run's name in brackets
    (`run-name: "... [${{ inputs.correlation_id }}]"`): the only thing by which a run can be told from all others.
    """

    workflow: str
    ref: str
    correlation_id: str
    inputs: tuple[tuple[str, str], ...] = ()


def dispatch(client: GitHub, order: Dispatch) -> Run:
    """Start a run and return it as it is then.

    When the answer does not say which run it is, or there is none at all, the run is looked for by its correlation id;
    a dispatch is never repeated.
    """
    inputs = {**dict(order.inputs), "correlation_id": order.correlation_id}
    _check(order, inputs)
    try:
        return _dispatch_run(client, order, inputs)
    except KeyboardInterrupt:
        what, hint = "interrupted; a run may have been started", f"look there for [{order.correlation_id}] in its name"
        raise Interrupted("run-left", what, where=_page(client, order), hint=hint) from None


def _dispatch_run(client: GitHub, order: Dispatch, inputs: dict[str, str]) -> Run:
    path = f"{client.repository.path}/actions/workflows/{order.workflow}/dispatches"
    answer = client.post(path, {"ref": order.ref, "inputs": inputs, "return_run_details": True})
    if answer is not None and answer.status not in {200, 204}:
        raise dispatch_refusal(client, answer, order.workflow, order.ref)
    if answer is not None and answer.status == 200:
        return _settled(client, parsed(StartedRun, answer, path))
    return _found(client, order, certain=answer is not None)


def _check(order: Dispatch, inputs: dict[str, str]) -> None:
    """Refuse before anything is sent what the service would refuse, or what would let runs be mixed up."""
    if not (WORKFLOW_FILE.fullmatch(order.workflow) and CORRELATION.fullmatch(order.correlation_id) and order.ref):
        what = "needs the file name of a workflow, a branch or tag, and a correlation id"
        raise UsageError("bad-dispatch", what, where=order.workflow[:100])
    size = len(json.dumps(inputs, ensure_ascii=False))
    if size > LARGEST_INPUTS or len(inputs) > MOST_INPUTS:
        what = f"{len(inputs)} inputs of {size:,} characters, and GitHub takes {MOST_INPUTS} of {LARGEST_INPUTS:,}"
        hint = "build fewer targets or models at once"
        raise UsageError("dispatch-too-large", what, where=order.workflow, hint=hint)


def _settled(client: GitHub, started: StartedRun) -> Run:
    """Return a new run, which may take a moment to be there; if it cannot be looked at, with what the answer said."""
    for pause in PAUSES_SECONDS:
        try:
            return get_run(client, started.workflow_run_id)
        except NetworkError as error:
            if error.code != "run-not-found":
                break
            client.session.rest(pause)
    return Run(id=started.workflow_run_id, status=None, conclusion=None, html_url=started.html_url)


def _found(client: GitHub, order: Dispatch, *, certain: bool) -> Run:
    """Return the one run that carries the order's mark; whatever goes wrong, nobody is told to dispatch again."""
    mark, failed = f"[{order.correlation_id}]", ""
    for pause in PAUSES_SECONDS:
        client.session.rest(pause)
        try:
            runs = [run for run in latest_runs(client, order.workflow, 100) if mark in run.display_title]
        except NetworkError as error:
            failed = f"; the last look failed: {error.code}: {error.why or error.what}"
            continue
        if len(runs) == 1:
            return runs[0]
        if runs:
            raise _ambiguous(client, order, runs)
        failed = ""
    raise _lost(client, order, ("accepted" if certain else "sent, and the answer was lost"), failed)


def _ambiguous(client: GitHub, order: Dispatch, runs: Sequence[Run]) -> NetworkError:
    what = f"{len(runs)} runs carry the correlation id {order.correlation_id}"
    why, hint = "\n".join(run.html_url for run in runs), "cancel all but one of them"
    return NetworkError("run-ambiguous", what, where=str(client.repository), why=why, hint=hint)


def _lost(client: GitHub, order: Dispatch, fate: str, failed: str) -> NetworkError:
    page = _page(client, order)
    patience = f"within {sum(PAUSES_SECONDS):.0f} s"
    why = f"the dispatch was {fate}, but no run with [{order.correlation_id}] in its name was seen {patience}{failed}"
    hint = f"look at {page} before you run the command again, or the build may run twice"
    return NetworkError("run-not-found", "it is not known which run was started", where=page, why=why, hint=hint)


def _page(client: GitHub, order: Dispatch) -> str:
    """Return where a person sees a workflow's runs."""
    return f"https://{client.service.host}/{client.repository}/actions/workflows/{order.workflow}"


def get_run(client: GitHub, run_id: int) -> Run:
    """Return a run as it is now."""
    path = client.repository.run_path(run_id)
    try:
        return parsed(Run, client.get(path), path)
    except NetworkError as error:
        if error.code != "github-not-found":
            raise
        what = f"{client.repository} has no run {run_id}, or the token may not see it"
        hint = "it may have been deleted; invoke runs lists those that are there"
        raise NetworkError("run-not-found", what, where=path, why=error.why, hint=hint) from None


def get_jobs(client: GitHub, run_id: int) -> tuple[WorkflowJob, ...]:
    """Return the jobs of a run's latest attempt, with their steps."""
    path = f"{client.repository.run_path(run_id)}/jobs"
    return everything(client, path, WorkflowJob, "jobs", filter="latest")


def latest_runs(client: GitHub, workflow: str, number: int = 20, *, branch: str = "") -> tuple[Run, ...]:
    """Return the newest runs of a workflow that were dispatched, or all those of a branch, up to `number`, at most 100.

    Those of a branch may be of a fork's branch of that name.
    """
    path = f"{client.repository.path}/actions/workflows/{workflow}/runs"
    chosen = {"branch": branch} if branch else {"event": "workflow_dispatch"}
    answer = client.get(path, per_page=str(number), **chosen)
    return parsed(tuple[Run, ...], answer, path, "workflow_runs")[:number]


def cancel_run(client: GitHub, run_id: int) -> bool:
    """Ask for a run to be cancelled, which takes a while.

    Returns False when it had ended already. Raises `NetworkError`; asking twice does no harm.
    """
    path = f"{client.repository.run_path(run_id)}/cancel"
    answer = client.post(path) or client.post(path)
    if answer is None:
        hint = "look at the run, then try again"
        raise NetworkError("github-unreachable", "it is not known whether the run is cancelled", where=path, hint=hint)
    client.require(answer, path, 202, 409)
    return answer.status == 202


FOLDER: Final = ".github/workflows/"


def is_of_commit_in(repository: Repository, run: Run) -> bool:
    """Whether a run is for a commit of a repository itself, not for one of a fork's pull request."""
    return run.head_repository is not None and run.head_repository.full_name.lower() == str(repository).lower()


def require_own_run(run: Run, repository: Repository, workflow: str) -> None:
    """Check that a run is of a commit of the repository itself, and of this workflow's file or calls one of that name.

    What it calls may be in another repository; https://docs.github.com/rest/actions/workflow-runs names it. A fork's
    pull request may change the workflow, and what such a run leaves is then whatever the fork's owner wanted.
    """
    if not is_of_commit_in(repository, run):
        home = run.head_repository.full_name if run.head_repository else "a deleted repository"
        why, hint = f"its commit is one of {home}", f"if {repository} has that name now: --repo {home}"
        hint = hint if run.head_repository else ""
        raise NetworkError("run-not-ours", f"it is not a run of {repository}", where=run.html_url, why=why, hint=hint)
    file = _file(run.path)
    called = {"/".join(_file(each.path).split("/")[2:]) for each in run.referenced_workflows or ()}
    if FOLDER + workflow not in {file, *called}:
        why, hint = f"it is of {file or 'a workflow that it does not name'}", "invoke runs lists those that are"
        raise NetworkError("run-not-ours", f"it is not a run of {workflow}", where=run.html_url, why=why, hint=hint)


def _file(path: str) -> str:
    return path.partition("@")[0]


EXCERPT_LINES: Final = 40
LONGEST_LINE: Final = 500
TIMESTAMP: Final = re.compile(r"\ufeff?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?Z ?")
"""What GitHub puts before each line; compared as text, to the second, with the times of steps."""
COLOURS: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
ERROR: Final = "##[error]"


def excerpt(lines: Iterable[str], started: str = "", completed: str = "") -> tuple[str, ...]:
    """Return the last lines up to the last error, without timestamps and colours.

    Only lines written between `started` and `completed` count (`2026-11-21T10:00:00Z`; empty: no limit), since the
    steps that clean up afterwards write into the same log. A line without a time belongs to the one before it. Needs
    memory for the excerpt alone.
    """
    kept: deque[str] = deque(maxlen=EXCERPT_LINES)
    best: tuple[str, ...] = ()
    inside = not started
    for line in lines:
        match = TIMESTAMP.match(line)
        if match:
            inside = (not started or match[1] >= started[:19]) and (not completed or match[1] <= completed[:19])
        if not inside:
            continue
        text = COLOURS.sub("", line[match.end() if match else 0 :]).rstrip()
        kept.append(text.replace(ERROR, "error: ")[:LONGEST_LINE])
        if ERROR in text:
            best = tuple(kept)
    return best or tuple(kept)


LARGEST_LOG: Final = 256 << 20
FAILED: Final = frozenset({"failure", "timed_out", "cancelled"})


def failed_step(job: WorkflowJob) -> str:
    """Return the name of the step at which a job ended, empty when there is none."""
    step = next((step for step in job.steps or () if step.conclusion in FAILED), None)
    return step.name if step else ""


def failing_lines(client: GitHub, job: WorkflowJob) -> tuple[str, ...]:
    """Return the end of what the failing step of a job wrote; if there is no log, one line that says so."""
    step = next((step for step in job.steps or () if step.conclusion in FAILED), None)
    started, completed = (step.started_at or "", step.completed_at or "") if step else ("", "")
    path = f"{client.repository.path}/actions/jobs/{job.id}/logs"
    try:
        with opened_download(client, path, {}) as response:
            if response.status_code != 200:
                raise client.refused(whole(response, client.session.clock), path)
            found = excerpt(_lines(response, client.session.clock), started, completed)
    except (NetworkError, TransportError) as error:
        return (f"(its log could not be fetched: {error})".splitlines()[0],)
    return tuple(client.redacted(line) for line in found) or ("(its log is empty)",)


def _lines(response: Response, clock: Clock) -> Iterator[str]:
    """Yield the lines of a text as they come; of a very long line, its beginning."""
    rest, count = b"", 0
    for chunk in chunks(response, clock):
        count += len(chunk)
        if count > LARGEST_LOG:
            break
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line.decode("utf-8", "replace") for line in lines)
        rest = rest[: 4 * LONGEST_LINE]
    yield rest.decode("utf-8", "replace")


MOST_LOGS: Final = 5
FAILURES: Final = frozenset({"failure", "timed_out", "startup_failure"})
STARTUP_WHY: Final = "GitHub could not start it: the workflow file is not valid, or no runner has the requested labels"


def ending(client: GitHub, run: Run, jobs: tuple[WorkflowJob, ...]) -> Diagnostic:
    """Return the diagnostic of a run that is over and did not succeed."""
    failed = tuple(job for job in jobs if job.conclusion in FAILURES)
    timed_out = next((job for job in failed if job.conclusion == "timed_out"), None)
    if run.conclusion == "cancelled" and not failed:
        what, hint = "the run was cancelled", "or a job reached its time limit, which GitHub also reports as cancelled"
        return BuildError("run-cancelled", what, where=run.html_url, hint=hint)
    if timed_out is not None:
        what = f"the job {timed_out.name!r} ran into its time limit"
        return BuildError("run-timeout", what, where=timed_out.html_url or run.html_url)
    if run.conclusion == "timed_out":
        return BuildError("run-timeout", "the run hit its time limit", where=run.html_url)
    if not failed:
        why = STARTUP_WHY if run.conclusion == "startup_failure" else ""
        return BuildError("run-failed", f"the run ended as {run.conclusion!r}", where=run.html_url, why=why)
    errors = tuple(_job_error(client, run, job) for job in failed[:MOST_LOGS])
    return errors[0] if len(errors) == 1 else DiagnosticGroup(errors)


def _job_error(client: GitHub, run: Run, job: WorkflowJob) -> BuildError:
    step = failed_step(job)
    at = f" at the step {step!r}" if step else ""
    why = "\n".join(failing_lines(client, job))
    hint = f"the whole log: {job.html_url or run.html_url}"
    return BuildError("run-failed", f"the job {job.name!r} failed{at}", where=run.html_url, why=why, hint=hint)


COMPLETED: Final = "completed"
WAITING: Final = {
    None: "started",
    "queued": "waiting for a runner",
    "pending": "waiting for other runs",
    "requested": "waiting for a runner",
    "waiting": "waiting for approval",
}


@dataclass(frozen=True, kw_only=True)
class RunProgress:
    """Where a run is; `seconds` since it is followed."""

    run: Run
    jobs: tuple[WorkflowJob, ...]
    seconds: float

    @property
    def steps(self) -> tuple[int, int]:
        """How many steps of all jobs are over, and how many are known; a job that waits for others has none yet."""
        steps = [step for job in self.jobs for step in job.steps or ()]
        return sum(step.status == COMPLETED for step in steps), len(steps)

    @property
    def words(self) -> str:
        """What the run does: `linux-x64: Build the runtime, ios-arm64: waiting for a runner; 1 of 3 jobs over`."""
        if self.run.status == COMPLETED:
            return f"over: {self.run.conclusion}"
        over = sum(job.status == COMPLETED for job in self.jobs)
        doing = [f"{job.name}: {_doing(job)}" for job in self.jobs if job.status != COMPLETED]
        if not doing:
            return WAITING.get(self.run.status, f"{self.run.status}")
        return f"{', '.join(doing)}; {over} of {len(self.jobs)} jobs over"


def changes(before: RunProgress | None, after: RunProgress) -> tuple[tuple[str, bool], ...]:
    """Return what is different from the look before: the step that each job is at, or how it ended, and whether it did.

    As long as a run has no jobs, what it waits for itself.
    """
    known = {job.id: _said(job) for job in before.jobs} if before else {}
    found = tuple((_said(job), job.status == COMPLETED) for job in after.jobs if known.get(job.id) != _said(job))
    if found or after.jobs or (before and before.words == after.words):
        return found
    return ((after.words, False),)


def _said(job: WorkflowJob) -> str:
    return f"{job.name}: {job.conclusion if job.status == COMPLETED else _doing(job)}"


def _doing(job: WorkflowJob) -> str:
    """Return the step that a job is at."""
    step = next((step for step in job.steps or () if step.status == "in_progress"), None)
    return step.name if step else WAITING.get(job.status, "between two steps")


PATIENCE_SECONDS: Final = 24 * 3600.0
"""The longest that a run of GitHub's own runners may take, queue included."""
OUTAGE_SECONDS: Final = 1800.0
"""How long GitHub may be out of reach before the run is no longer followed; a laptop's lid is closed now and then."""
LIMIT_SECONDS: Final = 3900.0
"""The longest rate limit that is waited for. GitHub's begin anew each hour:
https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api"""
SHORTEST_PAUSE: Final = 3.0
LONGEST_PAUSE: Final = 30.0
PAUSE_SHARE: Final = 0.02
"""The pause as a share of the time that the run has taken: 12 seconds after ten minutes."""


FINAL: Final = frozenset({"run-not-found", "artifact-expired", "artifact-missing", "artifact-no-digest"})
"""What taking the run up again does not mend."""


def follow(
    client: GitHub,
    run: Run,
    on_progress: Callable[[RunProgress], None],
    *,
    options: str = "",
    patience_seconds: float = PATIENCE_SECONDS,
) -> Run:
    """Return a run once it has succeeded; `on_progress` is told after each look, and whatever it raises is passed on.

    In the last two cases the run goes on without us, and the diagnostic says how to take it up again.
    """
    with kept_in_sight(run, options), client.session.patient(LIMIT_SECONDS):
        last = _followed(client, run, on_progress, patience_seconds)
    if last.run.conclusion == "success":
        return last.run
    raise ending(client, last.run, last.jobs)


@contextmanager
def kept_in_sight(run: Run, options: str = "") -> Iterator[None]:
    """Make whatever ends the block say how to take the run up again, instead of running the same command again.

    That would start a second run. For everything that is done with a run from its dispatch to its artifacts. `options`
    are the words that `invoke attach` needs to find the run. Such blocks may lie within each other.
    """
    attach = f"invoke attach {run.id} {options}".rstrip()
    how = f"to follow it again: {attach}; to end it: {attach} --cancel"
    try:
        yield
    except KeyboardInterrupt:
        what = "interrupted here; the run at GitHub continues"
        raise Interrupted("run-left", what, where=run.html_url, hint=how) from None
    except NetworkError as error:
        if error.code not in FINAL and how not in error.hint:
            first = f"{error.hint}; then, " if error.code == "github-refused" and error.hint else ""
            error.hint = f"{first}for the run {run.html_url}, {how}"
        raise


def _followed(
    client: GitHub,
    run: Run,
    on_progress: Callable[[RunProgress], None],
    patience_seconds: float,
) -> RunProgress:
    """Look again and again until the run is over."""
    clock = client.session.clock
    started, out_since = clock.monotonic(), math.inf
    while True:
        progress, failed = _look(client, run, started)
        now = clock.monotonic()
        if progress is not None:
            on_progress(progress)
            if progress.run.status == COMPLETED:
                return progress
        out_since = min(out_since, now) if failed else math.inf
        if failed and now - out_since > OUTAGE_SECONDS:
            raise failed
        if now - started > patience_seconds:
            what = f"the run has not ended after {patience_seconds / 3600:.0f} h"
            raise NetworkError("run-still-going", what, where=run.html_url)
        client.session.rest(min(max((now - started) * PAUSE_SHARE, SHORTEST_PAUSE), LONGEST_PAUSE))


def _look(client: GitHub, run: Run, started: float) -> tuple[RunProgress | None, NetworkError | None]:
    """Look once; GitHub out of reach is no reason to give up a build of an hour."""
    try:
        current = get_run(client, run.id)
        jobs = get_jobs(client, run.id)
    except NetworkError as error:
        if error.code != "github-unreachable":
            raise
        return None, error
    return RunProgress(run=current, jobs=jobs, seconds=client.session.clock.monotonic() - started), None
