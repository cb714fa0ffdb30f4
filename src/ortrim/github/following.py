"""Following a run until it ends."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from ortrim.errors import Interrupted, NetworkError
from ortrim.github.client import GitHub
from ortrim.github.endings import ending
from ortrim.github.progress import COMPLETED, Progress
from ortrim.github.records import Run
from ortrim.github.repositories import Repository
from ortrim.github.runs import get_jobs, get_run

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
"""The pause as a share of the time that the run has taken: nobody minds 12 seconds after ten minutes."""


FINAL: Final = frozenset({"run-not-found", "artifact-expired", "artifact-missing", "artifact-no-digest"})
"""What taking the run up again does not mend."""


def follow(
    client: GitHub,
    repository: Repository,
    run: Run,
    on_progress: Callable[[Progress], None],
    *,
    options: str = "",
    patience_seconds: float = PATIENCE_SECONDS,
) -> Run:
    """Return a run once it has succeeded; `on_progress` is told after each look, and whatever it raises is passed on.

    Raises `BuildError` (`run-failed`, `run-cancelled`, `run-timeout`), a group of them when several jobs failed;
    `NetworkError` (`run-not-found`, `run-still-going`, or what keeps GitHub out of reach); `Interrupted` (`run-left`)
    on Ctrl-C. In the last two cases the run goes on without us, and the diagnostic says how to take it up again.
    """
    with kept_in_sight(run, options), client.session.patient(LIMIT_SECONDS):
        last = _followed(client, repository, run, on_progress, patience_seconds)
    if last.run.conclusion == "success":
        return last.run
    raise ending(client, repository, last.run, last.jobs)


@contextmanager
def kept_in_sight(run: Run, options: str = "") -> Iterator[None]:
    """Make whatever ends the block say how to take the run up again, instead of running the same command again.

    That would start a second run. For everything that is done with a run from its dispatch to its artifacts. `options`
    are the words that `invoke attach` needs to find the run. Such blocks may lie within each other.
    """
    attach = f"invoke attach {run.id} {options}".rstrip()
    how = f"to take it up again: {attach}; to end it: {attach} --cancel"
    try:
        yield
    except KeyboardInterrupt:
        what = "interrupted here; the run at GitHub goes on"
        raise Interrupted("run-left", what, where=run.html_url, hint=how) from None
    except NetworkError as error:
        if error.reference not in FINAL and how not in error.hint:
            first = f"{error.hint}; then, " if error.reference == "github-refused" and error.hint else ""
            error.hint = f"{first}for the run {run.html_url}, {how}"
        raise


def _followed(
    client: GitHub,
    repository: Repository,
    run: Run,
    on_progress: Callable[[Progress], None],
    patience_seconds: float,
) -> Progress:
    """Look again and again until the run is over."""
    clock = client.session.clock
    started, out_since = clock.monotonic(), math.inf
    while True:
        progress, trouble = _look(client, repository, run, started)
        now = clock.monotonic()
        if progress is not None:
            on_progress(progress)
            if progress.run.status == COMPLETED:
                return progress
        out_since = min(out_since, now) if trouble else math.inf
        if trouble and now - out_since > OUTAGE_SECONDS:
            raise trouble
        if now - started > patience_seconds:
            what = f"the run is not over after {patience_seconds / 3600:.0f} h"
            raise NetworkError("run-still-going", what, where=run.html_url)
        client.session.rest(min(max((now - started) * PAUSE_SHARE, SHORTEST_PAUSE), LONGEST_PAUSE))


def _look(
    client: GitHub, repository: Repository, run: Run, started: float
) -> tuple[Progress | None, NetworkError | None]:
    """Look once; GitHub out of reach is no reason to give up a build of an hour."""
    try:
        current = get_run(client, repository, run.id)
        jobs = get_jobs(client, repository, run.id)
    except NetworkError as error:
        if error.reference != "github-unreachable":
            raise
        return None, error
    return Progress(run=current, jobs=jobs, seconds=client.session.clock.monotonic() - started), None
