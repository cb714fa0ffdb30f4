"""The client of GitHub's API against a stand-in on loopback that behaves as documented, and misbehaves at will."""

import json
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from requests import Session

from github_checks import Remote, new_client, refused, running_remote
from github_contract import answer_objections, request_objections
from github_service import REPOSITORY, TOKEN, answer, message
from github_state import RemoteJob, RemoteRun, Timed, VirtualClock, Workflow
from github_wire import Drip, Reply
from ortrim.errors import BuildError, DiagnosticGroup, ExitCode, Interrupted, NetworkError, UsageError
from ortrim.github import runs as logs
from ortrim.github.runs import Dispatch, RunProgress, cancel_run, dispatch, follow, get_jobs, get_run, latest_runs
from tls_server import forget_certificates, tls_server

ORDER: Final = Dispatch(workflow="build.yml", ref="main", correlation_id="0f8e-4a-first")
RUNS: Final = f"{REPOSITORY}/actions/runs"
NEEDED: Final = {"X-Accepted-GitHub-Permissions": "actions=write"}
SIGN_ON: Final = {"X-GitHub-SSO": "required; url=https://sso.invalid/1"}
LOG: Final = b"""\
\xef\xbb\xbf2026-11-21T12:00:00.1Z ##[group]Run set-up
2026-11-21T12:01:30.1Z \x1b[36;1mpython -m invoke build\x1b[0m
2026-11-21T12:01:50.1Z undefined reference to `dlopen'
2026-11-21T12:02:00.1Z ##[error]Process completed with exit code 1.
2026-11-21T12:03:00.1Z Post job cleanup.
"""


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> Iterator[Remote]:
    with running_remote(monkeypatch) as running:
        yield running


def started(remote: Remote, run: RemoteRun) -> int:
    remote.service.template = lambda: replace(run)
    return remote.service.start("build").id


def posts(remote: Remote) -> int:
    return sum(line.startswith("POST") for line in remote.service.lines())


# Refusals


@pytest.mark.parametrize(
    ("reply", "reference", "told"),
    [
        (message(401, "Bad credentials"), "github-refused", "gh auth login"),
        (message(403, "Not accessible", **NEEDED), "github-refused", "actions=write"),
        (message(403, "Protected", **SIGN_ON), "github-refused", "https://sso.invalid/1"),
        (message(403, "Must have admin rights"), "github-refused", "rights"),
        (message(404, "Not Found"), "run-not-found", "deleted"),
        (message(410, "Gone"), "github-gone", "not there any more"),
        (message(422, "Validation Failed"), "github-invalid-request", "Validation Failed"),
        (message(451, "Unavailable"), "github-refused", "Unavailable"),
        (Reply(status=418), "github-unexpected-answer", "418"),
        (Reply(status=200, body=b"<html>log in to the hotel"), "github-unexpected-answer", "json_invalid"),
        (Reply(status=200, body=b"[" * 100_000), "github-unexpected-answer", "json_invalid"),
        (Reply(status=200, body=b""), "github-unexpected-answer", "json_invalid"),
        (answer({"id": TOKEN}), "github-unexpected-answer", "id"),
        (answer({"id": 1, "status": None, "conclusion": None}), "github-unexpected-answer", "html_url: missing"),
        (answer([1, 2]), "github-unexpected-answer", "GITHUB_API_URL"),
        (message(403, f"the token {TOKEN} is not welcome"), "github-refused", "the token [token] is"),
        (Reply(status=301, headers={"Location": "http://evil.invalid/"}), "github-unexpected-answer", "another host"),
        (Reply(status=301), "github-unexpected-answer", "another host"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_to_do(remote: Remote, reply: Reply, reference: str, told: str) -> None:
    """Each status has its reference and a way on; it is asked once, and no secret is repeated."""
    remote.service.fault("GET /repos", reply)
    assert told in str(refused(reference, NetworkError, get_run, remote.client, 1))
    assert len(remote.service.seen) == 1


@pytest.mark.parametrize("status", [401, 403, 404])
def test_without_a_token_a_refusal_says_so(remote: Remote, status: int) -> None:
    remote.service.fault("GET", message(status, "no"))
    error = refused(
        "github-no-token", NetworkError, get_run, new_client(remote.service, remote.clock, [], secret=""), 1
    )
    assert "GH_TOKEN" in error.hint


def test_a_wrong_token_is_named_as_the_cause(remote: Remote) -> None:
    client = new_client(remote.service, remote.clock, [], secret="ghs_another")  # noqa: S106
    error = refused("github-refused", NetworkError, get_run, client, 1)
    assert error.why == "Bad credentials"


# TransportError on the way


@pytest.mark.parametrize(
    "trouble",
    [
        Reply(status=500), Reply(status=502, body=b"<html>"), Reply(status=503, headers={"Retry-After": "7"}),
        Reply(silent=True), Reply(body=b'{"id": 1}', cut=3),
    ],
)  # fmt: skip
def test_trouble_that_passes_is_overcome(remote: Remote, trouble: Reply) -> None:
    """A server error or a broken link is tried again after a pause, as long as the server asks if it does."""
    number = started(remote, RemoteRun())
    remote.service.fault("GET", trouble, replace(trouble))
    assert get_run(remote.client, number).id == number
    assert remote.clock.slept == ([7, 7] if trouble.status == 503 else [1, 2])
    assert remote.client.session.traffic.repeats == 2


@pytest.mark.parametrize("trouble", [Reply(status=502), Reply(silent=True), Reply(body=b"{}", cut=1)])
def test_trouble_that_stays_is_reported(remote: Remote, trouble: Reply) -> None:
    """After four attempts the user hears of it."""
    remote.service.fault("GET", *(replace(trouble) for _ in range(9)))
    refused("github-unreachable", NetworkError, get_run, remote.client, 1)
    assert len(remote.service.seen) == 4


def test_a_server_that_drips_is_left(remote: Remote) -> None:
    """Less than a kilobyte a second, for more than a minute, four times: minutes are lost, not days."""
    number, began = started(remote, RemoteRun()), remote.clock.now
    body = json.dumps(remote.service.runs[0].data(began, "https://github.invalid")).encode()
    dripping = [Reply(body=body, drip=Drip(size=7, seconds=25)) for _ in range(4)]
    remote.service.fault("GET", *dripping)
    error = refused("github-unreachable", NetworkError, get_run, remote.client, number)
    assert "no more than 28 bytes came within 75 seconds" in error.why
    assert remote.clock.now - began < 500


@pytest.mark.parametrize("status", [200, 301])
def test_an_endless_answer_is_not_read(remote: Remote, status: int) -> None:
    """More than an API would ever say is refused, once, and not held; nor is what comes with a redirect."""
    here = {"Location": f"{remote.service.url}{RUNS}/1"}
    remote.service.fault("GET", Reply(status=status, headers=here, body=bytes(80 << 20)))
    tracemalloc.start()
    try:
        error = refused("github-unreachable", NetworkError, get_run, remote.client, 1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "longer than" in error.why
    assert peak < 40_000_000
    assert len(remote.service.seen) == 1


def test_a_server_that_is_not_there(remote: Remote) -> None:
    """A dispatch that cannot have arrived is repeated, and then reported as not done."""
    client = new_client(remote.service, remote.clock, [])
    client.service = replace(client.service, api="http://127.0.0.1:1")
    assert "refuses the connection" in refused("github-unreachable", NetworkError, dispatch, client, ORDER).why
    assert client.session.traffic.requests == 4


def test_a_certificate_that_is_not_trusted(remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a company's proxy has one: what to do is said at once, since the next attempt would meet it again."""
    forget_certificates(monkeypatch)
    client = new_client(remote.service, remote.clock, [])
    with tls_server(tmp_path) as proxy:
        client.service = replace(client.service, api=proxy.address)
        error = refused("untrusted-certificate", NetworkError, get_run, client, 1)
        assert proxy.connections == 1
    assert "REQUESTS_CA_BUNDLE" in error.hint
    assert remote.clock.slept == []


def test_a_server_that_does_not_speak_https(remote: Remote) -> None:
    """An address with the wrong scheme is reported as such."""
    client = new_client(remote.service, remote.clock, [])
    client.service = replace(client.service, api=remote.service.url.replace("http:", "https:"))
    assert "no TLS connection" in refused("github-unreachable", NetworkError, get_run, client, 1).why


@pytest.mark.parametrize(("name", "value"), [("REQUESTS_CA_BUNDLE", "/nowhere.pem"), ("NO_PROXY", "")])
def test_settings_of_the_user_that_do_not_work_are_named(
    remote: Remote, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """Certificates that are not there, a proxy that nobody answers at."""
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("HTTP_PROXY", "http://me:secret0of0proxy@127.0.0.1:1")
    monkeypatch.setenv("HTTPS_PROXY", "http://me:secret0of0proxy@127.0.0.1:1")
    client = new_client(remote.service, remote.clock, [])
    client.service = replace(client.service, api="https://api.github.invalid")
    error = refused("github-unreachable", NetworkError, dispatch, client, ORDER)
    assert ("certificates" if name == "REQUESTS_CA_BUNDLE" else "proxy") in error.why
    assert "secret0of0proxy" not in str(error)


def test_a_header_that_cannot_be_sent_shows_no_token(remote: Remote) -> None:
    client = new_client(remote.service, remote.clock, [], secret=f"{TOKEN}\n")
    assert "not valid" in refused("github-unreachable", NetworkError, get_run, client, 1).why


# Rate limits


@pytest.mark.parametrize(
    ("headers", "text", "waits"),
    [
        ({"Retry-After": "30"}, "You have exceeded a secondary rate limit", [30, 30]),
        ({}, "You have exceeded a secondary rate limit", [60, 120]),
    ],
)
@pytest.mark.parametrize("status", [403, 429])
def test_rate_limits_are_waited_for(
    remote: Remote, status: int, headers: dict[str, str], text: str, waits: list[float]
) -> None:
    """As long as the server says; a minute, then two, when it does not."""
    number = started(remote, RemoteRun())
    remote.service.fault("GET", message(status, text, **headers), message(status, text, **headers))
    assert get_run(remote.client, number).id == number
    assert remote.clock.slept == waits
    assert remote.said == [f"GitHub's rate limit: waiting {seconds} s" for seconds in waits]


def test_a_long_limit_is_reported_with_its_length(remote: Remote) -> None:
    """Half an hour is not waited for; the user hears when to come back."""
    remote.service.remaining = 0
    assert "30 min" in refused("github-rate-limited", NetworkError, get_run, remote.client, 1).what
    assert remote.clock.slept == []


def test_a_limit_that_never_ends_is_given_up(remote: Remote) -> None:
    """A server that always says `wait` is not obeyed for ever."""
    remote.service.fault("GET", *(message(429, "slow down", **{"Retry-After": "5"}) for _ in range(20)))
    refused("github-rate-limited", NetworkError, get_run, remote.client, 1)
    assert remote.clock.slept == [5] * 6


# Lists and conditional requests


def test_all_pages_are_read(remote: Remote) -> None:
    """A run of 250 jobs comes in three pages."""
    jobs = tuple(RemoteJob(name=f"job {number}", id=number + 1) for number in range(250))
    number = started(remote, RemoteRun(jobs=jobs))
    assert [job.name for job in get_jobs(remote.client, number)] == [job.name for job in jobs]
    assert [seen.query.count("page=3") for seen in remote.service.seen] == [0, 0, 1]


@pytest.mark.parametrize(
    "place", ["http://localhost:9/", "http://127.0.0.1@evil.invalid/", "ftp://127.0.0.1/", "evil", "::"]
)
def test_a_next_page_elsewhere_is_not_asked(remote: Remote, place: str) -> None:
    """A link to another host would take the token there."""
    remote.service.fault("GET", answer({"jobs": []}, Link=f'<{place}>; rel="next"'))
    refused("github-unexpected-answer", NetworkError, get_jobs, remote.client, 1)
    assert len(remote.service.seen) == 1


def test_a_list_without_an_end_is_given_up(remote: Remote) -> None:
    """Pages that lead to each other are not read for ever."""
    link = f'<{remote.service.url}{RUNS}/1/jobs?page=2>; rel="next"'
    remote.service.fault("GET", *(answer({"jobs": []}, Link=link) for _ in range(200)))
    refused("github-unexpected-answer", NetworkError, get_jobs, remote.client, 1)
    assert len(remote.service.seen) == 101


def test_what_has_not_changed_costs_nothing(remote: Remote) -> None:
    """Asked again, the server says so in a few bytes, and the limit stays as it is."""
    number = started(remote, RemoteRun(ends=1000))
    first = get_run(remote.client, number)
    left = remote.service.remaining
    assert get_run(remote.client, number) == first
    assert remote.service.remaining == left
    assert [line.rsplit(" ")[-1] for line in remote.service.lines()] == ["200", "304"]
    remote.clock.sleep(2000)
    assert get_run(remote.client, number).status == "completed"


def test_memory_of_answers_is_bounded(remote: Remote) -> None:
    """A run of days asks for many things; the oldest answers are forgotten."""
    runs = [started(remote, RemoteRun()) for _ in range(70)]
    for number in [*runs, runs[0]]:
        get_run(remote.client, number)
    assert [line.rsplit(" ")[-1] for line in remote.service.lines()] == ["200"] * 71


def test_a_renamed_repository_is_followed(remote: Remote) -> None:
    """The API sends readers on to the repository's number."""
    number = started(remote, RemoteRun())
    there = f"{remote.service.url}{RUNS}/{number}"
    remote.service.fault(f"GET {RUNS}/77", Reply(status=301, headers={"Location": there}))
    assert get_run(remote.client, 77).id == number


def test_redirects_in_a_circle_end(remote: Remote) -> None:
    here = {"Location": f"{remote.service.url}{RUNS}/1"}
    remote.service.fault("GET", *(Reply(status=301, headers=here) for _ in range(9)))
    refused("github-unexpected-answer", NetworkError, get_run, remote.client, 1)
    assert len(remote.service.seen) == 4


# Dispatching


@pytest.mark.parametrize("tells_run", [True, False])
@pytest.mark.parametrize("listed", [0, 9])
def test_a_dispatch_finds_its_run(remote: Remote, listed: float, *, tells_run: bool) -> None:
    """By the answer, or by the correlation id in its name among runs that look alike; the API may take a moment."""
    remote.service.workflows["build.yml"].tells_run = tells_run
    for title in ("build", "build [0f8e-4a-firs]", "build 0f8e-4a-first", "build [00000000]"):
        remote.service.start(title)
    remote.service.template = lambda: RemoteRun(listed=listed)
    run = dispatch(remote.client, replace(ORDER, inputs=(("plan", "x"),)))
    remote.service.start("build [11111111]")
    assert run.display_title == "build [0f8e-4a-first]"
    assert run.id == 5004
    assert posts(remote) == 1
    body = next(json.loads(seen.body) for seen in remote.service.seen if seen.method == "POST")
    assert body == {
        "ref": "main",
        "inputs": {"plan": "x", "correlation_id": "0f8e-4a-first"},
        "return_run_details": True,
    }


@pytest.mark.parametrize("lost", [Reply(silent=True), Reply(status=502), Reply(status=500), Reply(body=b'{"w', cut=2)])
def test_a_dispatch_whose_answer_is_lost_is_not_repeated(remote: Remote, lost: Reply) -> None:
    """The run is there; a second dispatch would build it twice."""
    remote.service.fault("POST", lost, afterwards=True)
    assert dispatch(remote.client, ORDER).id == 5000
    assert posts(remote) == 1
    assert len(remote.service.runs) == 1


def test_a_dispatch_that_is_lost_altogether_is_reported(remote: Remote) -> None:
    """Nobody knows: the user is shown where to look before it is done again."""
    remote.service.fault("POST", Reply(silent=True))
    error = refused("run-not-found", NetworkError, dispatch, remote.client, ORDER)
    assert posts(remote) == 1
    assert "https://github.invalid/octo/ort/actions/workflows/build.yml" in error.hint
    assert sum(remote.clock.slept) == 120


def test_an_outage_after_a_dispatch_does_not_invite_a_second_one(remote: Remote) -> None:
    """While GitHub is out of reach nobody knows whether the run is there."""
    remote.service.fault("POST", Reply(silent=True), afterwards=True)
    remote.service.fault("GET", *(Reply(status=503) for _ in range(99)))
    error = refused("run-not-found", NetworkError, dispatch, remote.client, ORDER)
    assert "before you run the command again" in error.hint
    assert "github-unreachable: it answered 503" in error.why
    assert posts(remote) == 1


@pytest.mark.parametrize(("status", "times"), [(404, 8), (503, 4), (401, 1)])
def test_a_run_that_cannot_be_looked_at_yet_can_be_followed(remote: Remote, status: int, times: int) -> None:
    """Its number and address came with the answer; nothing may invite a second dispatch any more."""
    remote.service.fault("GET", *(message(status, "no") for _ in range(times)))
    run = dispatch(remote.client, ORDER)
    assert (run.id, run.html_url) == (5000, "https://github.invalid/octo/ort/actions/runs/5000")
    assert follow(remote.client, run, lambda _: None).conclusion == "success"
    assert posts(remote) == 1


@pytest.mark.parametrize(
    ("reply", "reference"),
    [
        (message(422, "Actions has been disabled for this user."), "github-invalid-request"),
        (message(403, "Resource not accessible by personal access token", **NEEDED), "github-refused"),
        (message(401, "Bad credentials"), "github-refused"),
    ],
)
def test_a_dispatch_turned_down_for_another_cause_repeats_githubs_words(
    remote: Remote, reply: Reply, reference: str
) -> None:
    remote.service.fault("POST", reply)
    error = refused(reference, NetworkError, dispatch, remote.client, ORDER)
    assert error.why == json.loads(bytes(reply.body))["message"]


@pytest.mark.parametrize("status", [301, 307, 308])
def test_a_dispatch_to_a_renamed_repository_asks_for_the_new_name(remote: Remote, status: int) -> None:
    """Nothing was started; what is sent is not sent on to where a redirect says."""
    there = f"{remote.service.url}/repositories/7/actions/workflows/build.yml/dispatches"
    remote.service.fault("POST", message(status, "Moved Permanently", Location=there))
    assert "--repo" in refused("repository-moved", NetworkError, dispatch, remote.client, ORDER).hint
    assert (len(remote.service.seen), remote.service.runs) == (1, [])


@pytest.mark.parametrize("there", ["https://evil.invalid/x", "http://127.0.0.1:1/x", "", "http://["])
def test_a_dispatch_that_is_sent_elsewhere_is_strange(remote: Remote, there: str) -> None:
    """That is no repository with another name, but a proxy or worse; it sees nothing."""
    remote.service.fault("POST", message(307, "Temporary Redirect", Location=there))
    refused("github-unexpected-answer", NetworkError, dispatch, remote.client, ORDER)
    assert len(remote.service.seen) == 1


def test_a_dispatch_turned_away_by_a_limit_is_repeated(remote: Remote) -> None:
    """The server did nothing then, and says so."""
    remote.service.fault("POST", message(403, "You have exceeded a secondary rate limit", **{"Retry-After": "9"}))
    assert dispatch(remote.client, ORDER).id == 5000
    assert posts(remote) == 2
    assert len(remote.service.runs) == 1


def test_two_runs_with_one_correlation_id_are_not_guessed_between(remote: Remote) -> None:
    """Whoever repeats a dispatch by hand is told of both runs."""
    remote.service.workflows["build.yml"].tells_run = False
    remote.service.start("build [0f8e-4a-first]")
    error = refused("run-ambiguous", NetworkError, dispatch, remote.client, ORDER)
    assert [f"/runs/{number}" in error.why for number in (5000, 5001)] == [True, True]


@pytest.mark.parametrize(
    ("workflow", "order", "reference"),
    [
        (Workflow(enabled=False), ORDER, "workflow-disabled"),
        (Workflow(dispatchable=False), ORDER, "workflow-not-dispatchable"),
        (Workflow(inputs=frozenset()), ORDER, "workflow-inputs-refused"),
        (Workflow(), replace(ORDER, ref="topic"), "ref-not-found"),
        (Workflow(), replace(ORDER, workflow="other.yml"), "workflow-not-found"),
    ],
)
def test_a_dispatch_that_is_turned_down_says_why(
    remote: Remote, workflow: Workflow, order: Dispatch, reference: str
) -> None:
    """GitHub's 422 has many causes; each has its own reference and way on. Nothing is started."""
    remote.service.workflows["build.yml"] = workflow
    assert refused(reference, NetworkError, dispatch, remote.client, order).hint
    assert (posts(remote), len(remote.service.seen), remote.service.runs) == (1, 1, [])


@pytest.mark.parametrize(
    ("order", "reference"),
    [
        (replace(ORDER, inputs=(("plan", "x" * 65_500),)), "dispatch-too-large"),
        (replace(ORDER, inputs=tuple((f"i{number}", "") for number in range(25))), "dispatch-too-large"),
        (replace(ORDER, workflow="../../user"), "bad-dispatch"),
        (replace(ORDER, workflow="build.yml/../x.yml"), "bad-dispatch"),
        (replace(ORDER, correlation_id="a]"), "bad-dispatch"),
        (replace(ORDER, ref=""), "bad-dispatch"),
    ],
)
def test_a_dispatch_that_cannot_work_is_not_sent(remote: Remote, order: Dispatch, reference: str) -> None:
    """Too much, or what would reach another address."""
    refused(reference, UsageError, dispatch, remote.client, order)
    assert remote.service.seen == []


def test_a_dispatch_needs_a_token(remote: Remote) -> None:
    refused("github-no-token", NetworkError, dispatch, new_client(remote.service, remote.clock, [], secret=""), ORDER)
    assert remote.service.seen == []


@pytest.mark.parametrize("reply", [answer({"workflow_run_id": "../1"}), answer({"workflow_run_id": 0}), Reply()])
def test_a_strange_answer_to_a_dispatch_is_reported(remote: Remote, reply: Reply) -> None:
    """What the answer says becomes part of addresses."""
    remote.service.fault("POST", reply)
    refused("github-unexpected-answer", NetworkError, dispatch, remote.client, ORDER)
    assert posts(remote) == 1


# Following


def test_a_run_that_queues_for_an_hour_is_followed(remote: Remote) -> None:
    """Progress shows queue, work and end; GitHub is asked less often than every ten seconds on average."""
    steps = (Timed(name="build", starts=3600, ends=7000),)
    job = RemoteJob(name="linux-x64", starts=3600, ends=7100, steps=steps)
    number = started(remote, RemoteRun(starts=3600, ends=7200, jobs=(job,)))
    seen: list[RunProgress] = []
    run = follow(remote.client, get_run(remote.client, number), seen.append)
    assert run.conclusion == "success"
    assert list(dict.fromkeys(each.run.status for each in seen)) == ["queued", "in_progress", "completed"]
    assert seen[-1].jobs[0].conclusion == "success"
    assert list(dict.fromkeys(each.words for each in seen)) == [
        "linux-x64: waiting for a runner; 0 of 1 jobs over",
        "linux-x64: build; 0 of 1 jobs over",
        "linux-x64: between two steps; 0 of 1 jobs over",
        "in_progress",
        "over: success",
    ]
    assert (seen[0].steps, seen[-1].steps) == ((0, 1), (1, 1))
    assert 7200 <= seen[-1].seconds < 7231
    assert len(seen) < 400
    assert remote.client.session.traffic.unchanged > 700


def test_a_run_that_is_repeated_is_followed_anew(remote: Remote) -> None:
    """It keeps its number; what was read of the first attempt does not stand in for the second."""
    job = RemoteJob(name="linux-x64", ends=50, conclusion="failure")
    number = started(remote, RemoteRun(ends=60, conclusion="failure", jobs=(job,)))
    run = get_run(remote.client, number)
    refused("run-failed", BuildError, follow, remote.client, run, lambda _: None)
    again = RemoteJob(name="linux-x64", ends=50, id=901)
    repeated = replace(remote.service.runs[0], created=remote.clock.now, conclusion="success", jobs=(again,), attempt=2)
    remote.service.runs[0] = repeated
    seen: list[RunProgress] = []
    assert follow(remote.client, run, seen.append).run_attempt == 2
    assert seen[0].run.status == "in_progress"
    assert {each.query for each in remote.service.seen if each.path.endswith("/jobs")} == {"per_page=100&filter=latest"}


def test_a_failed_run_shows_the_error_of_the_failing_step(remote: Remote) -> None:
    """Job, step, address, and the end of the step's own log, without colours and without what came after."""
    steps = (
        Timed(name="Set up job", starts=0, ends=5),
        Timed(name="Build <the> runtime", starts=90, ends=120, conclusion="failure"),
        Timed(name="Post", starts=180, ends=181),
    )
    job = RemoteJob(name="linux-x64", ends=190, conclusion="failure", steps=steps, log=LOG, id=907)
    good = RemoteJob(name="linux-arm64", ends=100, id=908)
    number = started(remote, RemoteRun(ends=200, conclusion="failure", jobs=(good, job)))
    error = refused("run-failed", BuildError, follow, remote.client, get_run(remote.client, number), lambda _: None)
    assert error.what == "the job 'linux-x64' failed at the step 'Build <the> runtime'"
    assert error.where.endswith("/runs/5000")
    assert "/job/907" in error.hint
    assert error.why.splitlines() == [
        "python -m invoke build",
        "undefined reference to `dlopen'",
        "error: Process completed with exit code 1.",
    ]


def test_each_job_that_failed_is_reported(remote: Remote) -> None:
    """Two at once, so that both are mended in one go; a log that echoes the token does not show it."""
    log = f"2026-11-21T12:00:30Z {TOKEN}\n".encode()
    jobs = tuple(RemoteJob(name=f"job {n}", id=n, conclusion="failure", log=log) for n in (1, 2, 3))
    number = started(remote, RemoteRun(conclusion="failure", jobs=jobs))
    with pytest.raises(DiagnosticGroup) as caught:
        follow(remote.client, get_run(remote.client, number), lambda _: None)
    assert [each.what for each in caught.value.diagnostics] == [f"the job 'job {n}' failed" for n in (1, 2, 3)]
    assert caught.value.exit_code == ExitCode.BUILD
    assert "[token]" in str(caught.value)
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (message(404, "Not Found"), "github-not-found"),
        (message(410, "Gone"), "github-gone"),
        (Reply(status=302, headers={"Location": "http://192.0.2.1/log"}), "github-unexpected-answer"),
        (Reply(silent=True), "the connection broke"),
    ],
)
def test_a_failed_run_is_reported_without_its_log(remote: Remote, reply: Reply, told: str) -> None:
    job = RemoteJob(name="linux-x64", conclusion="failure")
    number = started(remote, RemoteRun(conclusion="failure", jobs=(job,)))
    remote.service.fault("/logs", reply)
    error = refused("run-failed", BuildError, follow, remote.client, get_run(remote.client, number), lambda _: None)
    assert error.why.startswith("(its log could not be fetched: ")
    assert told in error.why


def test_a_log_without_end_is_read_no_further_than_needed(remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "LARGEST_LOG", 100_000)
    job = RemoteJob(name="linux-x64", conclusion="failure", log=b"x\n" * 10 + b"y" * 1_000_000)
    number = started(remote, RemoteRun(conclusion="failure", jobs=(job,)))
    error = refused("run-failed", BuildError, follow, remote.client, get_run(remote.client, number), lambda _: None)
    assert error.why.startswith("x\nx\n")
    assert len(error.why) < 1000


@pytest.mark.parametrize(
    ("run", "reference", "told"),
    [
        (RemoteRun(conclusion="cancelled"), "run-cancelled", "time limit"),
        (RemoteRun(conclusion="timed_out"), "run-timeout", "the run hit its time limit"),
        (
            RemoteRun(conclusion="failure", jobs=(RemoteJob(name="ios", conclusion="timed_out"),)),
            "run-timeout",
            "'ios'",
        ),
        (RemoteRun(conclusion="startup_failure"), "run-failed", "workflow file"),
        (RemoteRun(conclusion="action_required"), "run-failed", "action_required"),
        (RemoteRun(conclusion="skipped"), "run-failed", "skipped"),
        (RemoteRun(conclusion="a new one"), "run-failed", "a new one"),
    ],
)
def test_other_endings_have_their_own_reference(remote: Remote, run: RemoteRun, reference: str, told: str) -> None:
    number = started(remote, run)
    error = refused(reference, BuildError, follow, remote.client, get_run(remote.client, number), lambda _: None)
    assert told in str(error)


def test_ctrl_c_leaves_the_run_alone_and_says_how_to_go_on(remote: Remote) -> None:
    """The run goes on at GitHub; the user is shown where, and the commands to take it up or end it."""
    number = started(remote, RemoteRun(ends=1000))

    def interrupt(_: RunProgress) -> None:
        raise KeyboardInterrupt

    error = refused("run-left", Interrupted, follow, remote.client, get_run(remote.client, number), interrupt)
    assert error.exit_code == ExitCode.INTERRUPTED
    assert error.where == f"https://github.invalid/octo/ort/actions/runs/{number}"
    assert f"invoke attach {number}" in error.hint
    assert posts(remote) == 0


def test_ctrl_c_while_dispatching_says_that_a_run_may_be_there(remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer was not waited for; the user is shown where to look, and by which name."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "request", interrupted)
    error = refused("run-left", Interrupted, dispatch, remote.client, ORDER)
    assert error.where.endswith("/octo/ort/actions/workflows/build.yml")
    assert "[0f8e-4a-first]" in error.hint


def test_a_token_that_expires_meanwhile_is_reported_with_the_run(remote: Remote) -> None:
    number = started(remote, RemoteRun(ends=60))
    run = get_run(remote.client, number)
    remote.service.fault("GET", message(401, "Bad credentials"))
    error = refused("github-refused", NetworkError, follow, remote.client, run, lambda _: None)
    assert "gh auth login; then, " in error.hint
    assert f"invoke attach {number}" in error.hint


def test_an_outage_of_minutes_is_sat_out(remote: Remote) -> None:
    """A run of an hour is not given up because GitHub, or the laptop's network, is away for a while."""
    number = started(remote, RemoteRun(ends=60))
    run = get_run(remote.client, number)
    remote.service.fault("GET", *(Reply(status=503, headers={"Retry-After": "20"}) for _ in range(40)))
    assert follow(remote.client, run, lambda _: None).conclusion == "success"


def test_the_limit_of_an_hour_is_sat_out(remote: Remote) -> None:
    """It is known when it ends, and the run goes on meanwhile: it is asked again then, and no earlier."""
    number = started(remote, RemoteRun(ends=60))
    run = get_run(remote.client, number)
    reset = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(remote.clock.now) + 3500)}
    remote.service.fault("GET", message(403, "API rate limit exceeded", **reset))
    remote.service.fault("GET", *(Reply(status=503) for _ in range(4)))
    assert follow(remote.client, run, lambda _: None).conclusion == "success"
    assert remote.said == ["GitHub's rate limit: waiting 3501 s"]
    assert remote.clock.slept[0] == 3501
    remote.service.remaining = 0
    refused("github-rate-limited", NetworkError, get_run, remote.client, number + 1)  # as ever


def test_a_limit_of_days_is_reported(remote: Remote) -> None:
    """With the way to take the run up again."""
    number = started(remote, RemoteRun(ends=60))
    run = get_run(remote.client, number)
    remote.service.fault("GET", message(429, "slow down", **{"Retry-After": "99999"}))
    error = refused("github-rate-limited", NetworkError, follow, remote.client, run, lambda _: None)
    assert f"invoke attach {number}" in error.hint
    assert remote.clock.slept == []


def test_an_outage_of_an_hour_is_reported(remote: Remote) -> None:
    """With the way to take the run up again."""
    number = started(remote, RemoteRun(ends=60))
    run = get_run(remote.client, number)
    remote.service.fault("GET", *(Reply(status=503) for _ in range(4000)))
    error = refused("github-unreachable", NetworkError, follow, remote.client, run, lambda _: None)
    assert f"invoke attach {number}" in error.hint
    assert "same command" not in error.hint
    assert 1800 < sum(remote.clock.slept) < 2000


def test_a_run_that_never_ends_is_left(remote: Remote) -> None:
    """After a day, or what the caller says."""
    number = started(remote, RemoteRun(ends=None))
    run = get_run(remote.client, number)
    error = refused("run-still-going", NetworkError, follow, remote.client, run, lambda _: None, patience_seconds=7200)
    assert "2 h" in error.what
    assert f"invoke attach {number}" in error.hint


def test_a_run_that_is_deleted_meanwhile_is_reported(remote: Remote) -> None:
    number = started(remote, RemoteRun(ends=60))
    run = get_run(remote.client, number)
    error = refused("run-not-found", NetworkError, follow, remote.client, run, lambda _: remote.service.runs.clear())
    assert "attach" not in error.hint


# Cancelling and listing


def test_a_run_is_cancelled(remote: Remote) -> None:
    """Which takes a while; whoever follows it hears of it."""
    number = started(remote, RemoteRun(ends=None))
    assert cancel_run(remote.client, number)
    refused("run-cancelled", BuildError, follow, remote.client, get_run(remote.client, number), lambda _: None)


def test_a_run_that_is_over_is_not_cancelled(remote: Remote) -> None:
    """GitHub answers 409, and that is no error."""
    number = started(remote, RemoteRun(ends=0))
    assert not cancel_run(remote.client, number)


@pytest.mark.parametrize(("losses", "reference"), [(1, ""), (2, "github-unreachable")])
def test_cancelling_may_be_repeated(remote: Remote, losses: int, reference: str) -> None:
    """It does no harm to ask twice; after that nobody knows."""
    number = started(remote, RemoteRun(ends=None))
    remote.service.fault("POST", *(Reply(silent=True) for _ in range(losses)))
    ask = partial(cancel_run, remote.client, number)
    if not reference:
        assert ask()
        return
    refused(reference, NetworkError, ask)


def test_the_newest_runs_are_listed(remote: Remote) -> None:
    for title in "abcde":
        remote.service.start(title)
    assert [run.display_title for run in latest_runs(remote.client, "build.yml", 3)] == ["e", "d", "c"]


def test_every_request_has_time_limits(remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    """One for the connection and one for each sign of life."""
    limits: list[object] = []
    original = Session.request

    def spy(self: Session, *arguments: object, **options: object) -> object:
        limits.append(options["timeout"])
        return original(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Session, "request", spy)
    dispatch(remote.client, ORDER)
    assert limits == [(20, 60)] * 2


DISPATCHES: Final = f"{REPOSITORY}/actions/workflows/build.yml/dispatches"


@pytest.mark.parametrize(
    ("method", "path", "query", "body", "told"),
    [
        ("GET", f"{RUNS}/1/jobs", "filter=newest", {}, "newest"),
        ("GET", f"{RUNS}/1/jobs", "per_pages=100", {}, "unknown parameter per_pages"),
        ("GET", f"{RUNS}/1/steps", "", {}, "there is no GET"),
        ("POST", DISPATCHES, "", {"inputs": {}}, "'ref' is a required property"),
        ("POST", DISPATCHES, "", {"ref": "main", "inputs": {f"i{n}": "" for n in range(26)}}, "too many properties"),
        ("POST", DISPATCHES, "", {"ref": 7}, "7 is not of type 'string'"),
    ],
)
def test_githubs_description_finds_wrong_requests(
    method: str, path: str, query: str, body: dict[str, object], told: str
) -> None:
    """What every test above checks in the end can fail."""
    assert told in "".join(request_objections(method, path, query, json.dumps(body).encode() if body else b""))


@pytest.mark.parametrize(
    ("path", "status", "body", "told"),
    [
        (f"{RUNS}/1", 200, b"{}", "'id' is a required property"),
        (f"{RUNS}/1", 202, b"{}", "never answers 202"),
        (f"{RUNS}/1/artifacts", 200, b'{"total_count": "1", "artifacts": []}', "'1' is not of type 'integer'"),
    ],
)
def test_githubs_description_finds_wrong_answers(path: str, status: int, body: bytes, told: str) -> None:
    """The stand-in cannot drift away from GitHub unseen."""
    assert told in "".join(answer_objections("GET", path, status, body))


def post_amid_faults(monkeypatch: pytest.MonkeyPatch, data: dict[str, object] | None, reply: Reply) -> None:
    """Dispatch anything, have it answered with `reply`, and look at it as every test does in the end."""
    with running_remote(monkeypatch) as remote:
        remote.service.fault("POST", reply)
        remote.client.post(DISPATCHES, data)


@pytest.mark.parametrize("reply", [message(422, "no"), Reply(status=502), Reply(silent=True)])
@pytest.mark.parametrize(("data", "told"), [({"ref": 3}, "3 is not of type 'string'"), (None, "no body")])
def test_a_wrong_request_is_noticed_whatever_the_answer(
    monkeypatch: pytest.MonkeyPatch, reply: Reply, data: dict[str, object] | None, told: str
) -> None:
    with pytest.raises(AssertionError, match=told):
        post_amid_faults(monkeypatch, data, reply)


def test_the_clock_of_tests_is_not_the_clock_of_the_world() -> None:
    """Otherwise the hours above would have been waited for."""
    clock = VirtualClock()
    before = clock.read()
    clock.sleep(3600)
    assert clock.read() == before + 3600
