"""What GitHub has against a dispatch, told apart by its words: the status is the same for all of it."""

from typing import Final

from ortrim.errors import NetworkError
from ortrim.github.client import GitHub
from ortrim.github.refusals import message_of
from ortrim.github.wire import Answer

CAUSES: Final = (
    ("disabled workflow", "workflow-disabled", "the workflow is disabled", "enable it: gh workflow enable {workflow}"),
    ("No ref found", "ref-not-found", "GitHub has no {ref!r}", "push the branch or tag first"),
    (
        "' trigger",
        "workflow-not-dispatchable",
        "the workflow cannot be dispatched",
        "it needs on: workflow_dispatch, on the default branch too",
    ),
    (
        "nput",
        "workflow-inputs-refused",
        "the workflow at {ref!r} does not take these inputs",
        "the branch holds another version of ortrim's workflow: bring it up to date",
    ),
)
"""Words of GitHub's, and the reference, what and hint that they come to.

https://github.com/benc-uk/workflow-dispatch/issues/72, https://github.com/convictional/trigger-workflow-and-wait/issues/44
"""


def dispatch_refusal(client: GitHub, answer: Answer, workflow: str, ref: str) -> NetworkError:
    """Return the diagnostic of a dispatch that was turned down.

    References: `workflow-not-found`, `workflow-disabled`, `workflow-not-dispatchable`, `workflow-inputs-refused`,
    `ref-not-found`, or those of `refusals.refusal`.
    """
    why = client.redacted(message_of(answer))
    if answer.status == 422:
        for words, reference, what, hint in CAUSES:
            if words in why:
                texts = {"ref": ref[:200], "workflow": workflow}
                return NetworkError(reference, what.format(**texts), where=workflow, why=why, hint=hint.format(**texts))
    if answer.status == 404 and client.token is not None:
        what, hint = "the workflow is not there", "its file has to be on the default branch, and the token to see it"
        return NetworkError("workflow-not-found", what, where=workflow, why=why, hint=hint)
    return client.refused(answer, workflow)
