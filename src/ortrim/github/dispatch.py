"""Starting a run, once and no more than once.

- Why GitHub refuses a dispatch, by the words of its answer: the status is always the same.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ortrim.base.http import Answer
from ortrim.errors import Interrupted, NetworkError, UsageError
from ortrim.github.client import GitHub
from ortrim.github.records import Run, StartedRun, parsed
from ortrim.github.repositories import Repository
from ortrim.github.runs import get_run, latest_runs
from ortrim.github.transport import message_of

CAUSES: Final = (
    ("disabled workflow", "workflow-disabled", "the workflow is disabled", "enable it: gh workflow enable {workflow}"),
    ("No ref found", "ref-not-found", "GitHub has no {ref!r}", "push the branch or tag first"),
    (
        "' trigger",
        "workflow-not-dispatchable",
        "the workflow cannot be dispatched",
        "it needs `on: workflow_dispatch`, on the default branch too",
    ),
    (
        "nput",
        "workflow-inputs-refused",
        "the workflow at {ref!r} does not take these inputs",
        "the branch has another version of ortrim's workflow: update it",
    ),
)
"""Words of GitHub's, and the code, what and hint that they come to.

https://github.com/benc-uk/workflow-dispatch/issues/72,
https://github.com/convictional/trigger-workflow-and-wait/issues/44
"""


def dispatch_refusal(client: GitHub, answer: Answer, workflow: str, ref: str) -> NetworkError:
    """Return the diagnostic of a dispatch that was turned down.

    References: `workflow-not-found`, `workflow-disabled`, `workflow-not-dispatchable`, `workflow-inputs-refused`,
    `ref-not-found`, or those of `GitHub.refused`.
    """
    why = client.redacted(message_of(answer))
    if answer.status == 422:
        for words, code, what, hint in CAUSES:
            if words in why:
                texts = {"ref": ref[:200], "workflow": workflow}
                return NetworkError(code, what.format(**texts), where=workflow, why=why, hint=hint.format(**texts))
    if answer.status == 404 and client.token is not None:
        what, hint = (
            "the workflow does not exist",
            "its file must be on the default branch, and the token must have access",
        )
        return NetworkError("workflow-not-found", what, where=workflow, why=why, hint=hint)
    return client.refused(answer, workflow)


WORKFLOW: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.ya?ml")
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


def dispatch(client: GitHub, repository: Repository, order: Dispatch) -> Run:
    """Start a run and return it as it is then.

    When the answer does not say which run it is, or there is none at all, the run is looked for by its correlation id;
    a dispatch is never repeated. Raises `NetworkError`: `workflow-not-found`, `workflow-disabled`,
    `workflow-not-dispatchable`, `workflow-inputs-refused`, `ref-not-found`, `run-not-found`, or as `GitHub.post`;
    `UsageError` (`bad-dispatch`, `dispatch-too-large`); `Interrupted` (`run-left`), which says that a run may be there.
    """
    inputs = {**dict(order.inputs), "correlation_id": order.correlation_id}
    _check(order, inputs)
    try:
        return _dispatched(client, repository, order, inputs)
    except KeyboardInterrupt:
        what, hint = "interrupted; a run may have been started", f"look there for [{order.correlation_id}] in its name"
        raise Interrupted("run-left", what, where=_page(client, repository, order), hint=hint) from None


def _dispatched(client: GitHub, repository: Repository, order: Dispatch, inputs: dict[str, str]) -> Run:
    path = f"{repository.path}/actions/workflows/{order.workflow}/dispatches"
    answer = client.post(path, {"ref": order.ref, "inputs": inputs, "return_run_details": True})
    if answer is not None and answer.status not in {200, 204}:
        raise dispatch_refusal(client, answer, order.workflow, order.ref)
    if answer is not None and answer.status == 200:
        return _settled(client, repository, parsed(StartedRun, answer, path))
    return _found(client, repository, order, certain=answer is not None)


def _check(order: Dispatch, inputs: dict[str, str]) -> None:
    """Refuse before anything is sent what the service would refuse, or what would let runs be mixed up."""
    if not (WORKFLOW.fullmatch(order.workflow) and CORRELATION.fullmatch(order.correlation_id) and order.ref):
        what = "needs the file name of a workflow, a branch or tag, and a correlation id"
        raise UsageError("bad-dispatch", what, where=order.workflow[:100])
    size = len(json.dumps(inputs, ensure_ascii=False))
    if size > LARGEST_INPUTS or len(inputs) > MOST_INPUTS:
        what = f"{len(inputs)} inputs of {size:,} characters, and GitHub takes {MOST_INPUTS} of {LARGEST_INPUTS:,}"
        hint = "build fewer targets or models at once"
        raise UsageError("dispatch-too-large", what, where=order.workflow, hint=hint)


def _settled(client: GitHub, repository: Repository, started: StartedRun) -> Run:
    """Return a new run, which may take a moment to be there; if it cannot be looked at, with what the answer said."""
    for pause in PAUSES_SECONDS:
        try:
            return get_run(client, repository, started.workflow_run_id)
        except NetworkError as error:
            if error.code != "run-not-found":
                break
            client.session.rest(pause)
    return Run(id=started.workflow_run_id, status=None, conclusion=None, html_url=started.html_url)


def _found(client: GitHub, repository: Repository, order: Dispatch, *, certain: bool) -> Run:
    """Return the one run that carries the order's mark; whatever goes wrong, nobody is told to dispatch again."""
    mark, failed = f"[{order.correlation_id}]", ""
    for pause in PAUSES_SECONDS:
        client.session.rest(pause)
        try:
            runs = [run for run in latest_runs(client, repository, order.workflow, 100) if mark in run.display_title]
        except NetworkError as error:
            failed = f"; the last look failed: {error.code}: {error.why or error.what}"
            continue
        if len(runs) == 1:
            return runs[0]
        if runs:
            raise _ambiguous(repository, order, runs)
        failed = ""
    raise _lost(client, repository, order, ("accepted" if certain else "sent, and the answer was lost"), failed)


def _ambiguous(repository: Repository, order: Dispatch, runs: Sequence[Run]) -> NetworkError:
    what = f"{len(runs)} runs carry the correlation id {order.correlation_id}"
    why = "\n".join(run.html_url for run in runs)
    return NetworkError("run-ambiguous", what, where=str(repository), why=why, hint="cancel all but one of them")


def _lost(client: GitHub, repository: Repository, order: Dispatch, fate: str, failed: str) -> NetworkError:
    page = _page(client, repository, order)
    patience = f"within {sum(PAUSES_SECONDS):.0f} s"
    why = f"the dispatch was {fate}, but no run with [{order.correlation_id}] in its name was seen {patience}{failed}"
    hint = f"look at {page} before you run the command again, or the build may run twice"
    return NetworkError("run-not-found", "it is not known which run was started", where=page, why=why, hint=hint)


def _page(client: GitHub, repository: Repository, order: Dispatch) -> str:
    """Return where a person sees a workflow's runs."""
    return f"https://{client.service.host}/{repository}/actions/workflows/{order.workflow}"
