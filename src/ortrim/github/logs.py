"""The log of a job at GitHub."""

from collections.abc import Iterator
from typing import Final

import requests

from ortrim.errors import NetworkError
from ortrim.github.client import GitHub
from ortrim.github.clock import Clock
from ortrim.github.log_text import LONGEST_LINE, excerpt
from ortrim.github.records import Job
from ortrim.github.redirects import opened_download
from ortrim.github.repositories import Repository
from ortrim.github.troubles import Trouble
from ortrim.github.wire import chunks, whole

LARGEST_LOG: Final = 256 << 20
FAILED: Final = frozenset({"failure", "timed_out", "cancelled"})


def failed_step(job: Job) -> str:
    """Return the name of the step at which a job ended, empty when there is none."""
    step = next((step for step in job.steps or () if step.conclusion in FAILED), None)
    return step.name if step else ""


def failing_lines(client: GitHub, repository: Repository, job: Job) -> tuple[str, ...]:
    """Return the end of what the failing step of a job wrote; if there is no log, one line that says so."""
    step = next((step for step in job.steps or () if step.conclusion in FAILED), None)
    started, completed = (step.started_at or "", step.completed_at or "") if step else ("", "")
    path = f"{repository.path}/actions/jobs/{job.id}/logs"
    try:
        with opened_download(client, path, {}) as response:
            if response.status_code != 200:
                raise client.refused(whole(response, client.session.clock), path)
            found = excerpt(_lines(response, client.session.clock), started, completed)
    except (NetworkError, Trouble) as error:
        return (f"(its log could not be fetched: {error})".splitlines()[0],)
    return tuple(client.redacted(line) for line in found) or ("(its log is empty)",)


def _lines(response: requests.Response, clock: Clock) -> Iterator[str]:
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
