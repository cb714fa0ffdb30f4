"""What became of the jobs that a job waited for."""

import json
from typing import Any, Final

from ortrim.errors import Diagnostic, DiagnosticGroup, UsageError, VerifyError

VARIABLE: Final = "ORTRIM_NEEDS"


def require_success(text: str) -> tuple[str, ...]:
    """Return the names of all jobs in the JSON document that GitHub makes of `needs`, when all of them ended well.

    Raises `UsageError` `bad-needs`, and `VerifyError` `job-failed`, one for each.
    """
    jobs = _jobs(text)
    failed: tuple[Diagnostic, ...] = tuple(
        VerifyError("job-failed", f"ended with {result}", where=name, hint="see its log")
        for name, result in jobs.items()
        if result != "success"
    )
    if failed:
        raise failed[0] if len(failed) == 1 else DiagnosticGroup(failed)
    return tuple(jobs)


def _jobs(text: str) -> dict[str, str]:
    try:
        document: Any = json.loads(text)
        jobs = {str(name): str(job["result"]) for name, job in document.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _bad(f"{type(error).__name__}: {error}") from error
    if not jobs:
        raise _bad("it names no job")
    return jobs


def _bad(why: str) -> UsageError:
    what, hint = "is not what GitHub makes of `needs`", "this task is a step of a workflow"
    return UsageError("bad-needs", what, where=VARIABLE, why=why, hint=hint)
