"""The client against the stand-in behind Prism, a second reader of GitHub's own description of its API."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import pytest

from github_checks import Remote, new_client, refused, running_remote
from github_prism import Front, behind_prism
from github_service import REPOSITORY, answer, message
from github_state import RemoteJob, RemoteRun
from github_wire import Reply
from ortrim.errors import NetworkError
from ortrim.github.runs import Dispatch, cancel_run, dispatch, follow, get_run, latest_runs

pytestmark = [pytest.mark.network, pytest.mark.needs("npm")]

ORDER: Final = Dispatch(workflow="build.yml", ref="main", correlation_id="0f8e-4a-first", inputs=(("plan", "x"),))
DISPATCHES: Final = f"{REPOSITORY}/actions/workflows/build.yml/dispatches"


@dataclass(frozen=True, kw_only=True)
class Guarded:
    """The stand-in with Prism before it, and a client that asks Prism."""

    remote: Remote
    front: Front


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("prism")
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        running_remote(monkeypatch) as remote,
        behind_prism(remote.service, folder) as front,
    ):
        yield Guarded(remote=remote, front=front)


@pytest.fixture
def guarded(both: Guarded) -> Iterator[Guarded]:
    """Give a new client, and what was left of the faults of others taken away; nothing may be wrong in the end."""
    service, said = both.remote.service, list[str]()
    service.faults.clear()
    service.seen.clear()
    client = new_client(service, both.remote.clock, said, url=both.front.url)
    yield replace(both, remote=replace(both.remote, client=client, said=said))
    assert both.front.violations == []


def posts(guarded: Guarded) -> int:
    return sum(line.startswith(f"POST {DISPATCHES}") for line in guarded.remote.service.lines())


@pytest.mark.parametrize(
    ("reply", "reference", "times"),
    [
        (message(401, "Bad credentials"), "github-refused", 1),
        (message(403, "Resource not accessible by personal access token"), "github-refused", 1),
        (message(404, "Not Found"), "workflow-not-found", 1),
        (message(409, "Conflict"), "github-invalid-request", 1),
        (message(410, "Gone"), "github-gone", 1),
        (message(422, "No ref found for: main"), "ref-not-found", 1),
        (message(429, "API rate limit exceeded"), "github-rate-limited", 7),
        (message(500, "Server Error"), "run-not-found", 1),
        (message(502, "Server Error"), "run-not-found", 1),
        (message(503, "Service Unavailable"), "run-not-found", 1),
    ],
)
def test_a_dispatch_is_right_however_it_is_answered(guarded: Guarded, reply: Reply, reference: str, times: int) -> None:
    """What is sent is as GitHub describes it, also where it is turned down; only a rate limit has it sent again."""
    before = len(guarded.remote.service.runs)
    guarded.remote.service.fault("POST", *(replace(reply, headers={**reply.headers}) for _ in range(9)))
    refused(
        reference,
        NetworkError,
        dispatch,
        guarded.remote.client,
        replace(ORDER, correlation_id=f"{reply.status}-0f8e-4a"),
    )
    assert (posts(guarded), len(guarded.remote.service.runs)) == (times, before)


def test_a_dispatch_whose_answer_is_lost_finds_its_run(guarded: Guarded) -> None:
    """By its mark, in the list of the workflow's runs."""
    guarded.remote.service.fault("POST", Reply(status=502), afterwards=True)
    run = dispatch(guarded.remote.client, ORDER)
    assert "[0f8e-4a-first]" in run.display_title
    assert posts(guarded) == 1


@pytest.mark.parametrize("tells_run", [True, False])
def test_a_run_is_dispatched_followed_listed_and_cancelled(guarded: Guarded, *, tells_run: bool) -> None:
    """Over trouble and limits, each request as GitHub describes it, and each answer of the stand-in's, too."""
    service, client = guarded.remote.service, guarded.remote.client
    service.workflows["build.yml"].tells_run = tells_run
    service.template = lambda: RemoteRun(ends=60, jobs=(RemoteJob(name="compile linux-x64"),))
    service.fault("GET", Reply(status=503), message(429, "slow down", **{"Retry-After": "5"}), Reply(status=500))
    run = dispatch(client, replace(ORDER, correlation_id=f"followed-{tells_run}".lower()))
    assert follow(client, run, lambda _: None).conclusion == "success"
    assert not cancel_run(client, run.id)
    assert run.id in {each.id for each in latest_runs(client, "build.yml")}


def test_a_request_that_github_does_not_describe_does_not_get_through(guarded: Guarded) -> None:
    """Prism can object, or the tests above would prove less than they say."""
    answered = guarded.remote.client.post(DISPATCHES, {"ref": 3})
    assert answered is not None
    assert answered.status == 422
    assert "ref must be string" in guarded.front.violations.pop()
    assert posts(guarded) == 0


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (answer({"id": 1}), "must have required property"),
        (answer([]), "must be object"),
        (answer({}, 202), "status code"),
    ],
)
def test_an_answer_that_github_does_not_describe_does_not_get_through(
    guarded: Guarded, reply: Reply, told: str
) -> None:
    """Nor would one of the stand-in's that GitHub never gives."""
    guarded.remote.service.fault("GET", *(replace(reply, headers={**reply.headers}) for _ in range(4)))
    refused("github-unreachable", NetworkError, get_run, guarded.remote.client, 5000)
    assert [told in guarded.front.violations.pop() for _ in range(4)] == [True] * 4
