"""A stand-in for GitHub's REST API, and for the server that stores files, both on loopback; it remembers all it saw."""

import hashlib
import json
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from github_blobs import Blobs
from github_contract import answer_objections, example, request_objections
from github_state import Artifact, Release, RemoteRun, VirtualClock, Workflow
from github_wire import Exchange, LoopbackServer, Reply, Seen

TOKEN: Final = "ghs_secret0marker0of0tests"  # noqa: S105
REPOSITORY: Final = "/repos/octo/ort"
JSON: Final = "application/json; charset=utf-8"
LARGEST_PAGE: Final = 100


@dataclass(kw_only=True)
class Fault:
    """Replies that take the place of the right ones, one after the other, for requests whose line matches."""

    line: re.Pattern[str]
    replies: deque[Reply]
    afterwards: bool = False
    """Whether the request is carried out all the same, and only its answer is lost."""


def answer(data: Any, status: int = 200, **headers: str) -> Reply:
    return Reply(status=status, body=json.dumps(data).encode(), headers={"Content-Type": JSON, **headers})


def message(status: int, text: str, **headers: str) -> Reply:
    return answer(
        {"message": text, "documentation_url": "https://docs.github.com/rest", "status": str(status)}, status, **headers
    )


class GitHubService:
    """The stand-in: set up its state, and read `seen` afterwards."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.token = TOKEN
        self.seen: list[Seen] = []
        self.objections: list[str] = []
        self.faults: list[Fault] = []
        self.workflows = {"build.yml": Workflow()}
        self.refs = {"main"}
        self.default_branch = "main"
        self.template: Callable[[], RemoteRun] = RemoteRun
        self.runs: list[RemoteRun] = []
        self.releases: list[Release] = []
        self.blobs = Blobs(clock)
        self.remaining = 5000
        self._lock = threading.Lock()
        self._api = LoopbackServer(partial(self._reply_to, "api"), clock)
        self._storage = LoopbackServer(partial(self._reply_to, "storage"), clock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._api.server_port}"

    def fault(self, line: str, *replies: Reply, afterwards: bool = False) -> None:
        """Give these replies, once each, to requests whose `METHOD /path` matches."""
        self.faults.append(Fault(line=re.compile(line), replies=deque(replies), afterwards=afterwards))

    def lines(self, server: str = "api") -> list[str]:
        """Return what one of the servers was asked: `METHOD /path status`."""
        return [f"{seen.method} {seen.path} {seen.status}" for seen in self.seen if seen.server == server]

    def blob_address(self, name: str, content: bytes) -> str:
        return f"http://localhost:{self._storage.server_port}/blob/{name}?{self.blobs.keep(name, content)}"

    @contextmanager
    def running(self) -> Iterator["GitHubService"]:
        servers = (self._api, self._storage)
        threads = [threading.Thread(target=server.serve_forever, args=(0.01,)) for server in servers]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            for server, thread in zip(servers, threads, strict=True):
                server.shutdown()
                thread.join()
                server.server_close()

    def _reply_to(self, server: str, request: Exchange, body: bytes) -> Reply:
        """Answer one request, and remember it and what GitHub's description has against it, whatever the answer."""
        parts = urlsplit(request.path)
        with self._lock:
            line = f"{request.command} {parts.path}"
            if server == "api":
                self.objections += request_objections(request.command, parts.path, parts.query, body)
            fault = next((each for each in self.faults if each.replies and each.line.search(line)), None)
            reply = Reply()
            if fault is None or fault.afterwards:
                reply = self._right_reply(server, request, parts.path, parts.query, body)
                if server == "api" and reply.status != 304:
                    content = bytes(reply.body)
                    self.objections += answer_objections(request.command, parts.path, reply.status, content)
            if fault is not None:
                reply = fault.replies.popleft()
            headers = {name.lower(): value for name, value in request.headers.items()}
            self.seen.append(
                Seen(
                    server=server, method=request.command, path=parts.path, query=parts.query, headers=headers,
                    body=body, status=reply.status,
                )
            )  # fmt: skip
        return reply

    def _right_reply(self, server: str, request: Exchange, path: str, query: str, body: bytes) -> Reply:
        parameters = {name: values[0] for name, values in parse_qs(query).items()}
        if server == "storage":
            return self.blobs.reply(dict(request.headers), path.removeprefix("/blob/"), parameters)
        refused = self._refused(request)
        if refused is not None:
            return refused
        reply = self._routed(request.command, path, parameters, body)
        return self._conditional(request, reply)

    def _refused(self, request: Exchange) -> Reply | None:
        if not request.headers.get("User-Agent"):
            return message(403, "Request forbidden by administrative rules.")
        if request.headers.get("X-GitHub-Api-Version") != "2022-11-28":
            return message(400, "Unsupported API version")
        authorization = request.headers.get("Authorization")
        if authorization is not None and authorization != f"Bearer {self.token}":
            return message(401, "Bad credentials")
        if authorization is None and (
            request.command in {"POST", "DELETE"} or request.path.split("?")[0].endswith(("/zip", "/logs"))
        ):
            return message(401, "Requires authentication")
        if self.remaining <= 0:
            return message(403, "API rate limit exceeded", **self._limit_headers())
        return None

    def _conditional(self, request: Exchange, reply: Reply) -> Reply:
        """Add ETag and the limit's headers; what has not changed costs nothing."""
        if request.command != "GET" or reply.status != 200 or "Content-Range" in reply.headers:
            self.remaining -= 1
            reply.headers.update(self._limit_headers())
            return reply
        tag = f'W/"{hashlib.sha256(reply.body).hexdigest()}"'
        if request.headers.get("If-None-Match") == tag:
            return Reply(status=304, headers={"ETag": tag, **self._limit_headers()})
        self.remaining -= 1
        reply.headers.update({"ETag": tag, **self._limit_headers()})
        return reply

    def _limit_headers(self) -> dict[str, str]:
        reset = str(int(self.clock.now) + 1800)
        return {"x-ratelimit-limit": "5000", "x-ratelimit-remaining": str(self.remaining), "x-ratelimit-reset": reset}

    def _routed(self, method: str, path: str, parameters: dict[str, str], body: bytes) -> Reply:
        inner = path.removeprefix(REPOSITORY)
        for verb, pattern, route in self._routes():
            match = re.fullmatch(pattern, inner)
            if verb == method and match and inner != path:
                return route(parameters, body, *match.groups())
        return message(404, "Not Found")

    def _routes(self) -> tuple[tuple[str, str, Callable[..., Reply]], ...]:
        return (
            ("GET", "", self._repository),
            ("GET", "/branches/([^/]+)", self._branch),
            ("POST", "/actions/workflows/([^/]+)/dispatches", self._dispatch),
            ("GET", "/actions/workflows/([^/]+)/runs", self._workflow_runs),
            ("GET", r"/actions/runs/(\d+)", self._run),
            ("GET", r"/actions/runs/(\d+)/jobs", self._jobs),
            ("GET", r"/actions/runs/(\d+)/artifacts", self._artifacts),
            ("POST", r"/actions/runs/(\d+)/(cancel|force-cancel)", self._cancel),
            ("GET", r"/actions/jobs/(\d+)/logs", self._log),
            ("GET", r"/actions/artifacts/(\d+)/zip", self._zip),
            ("GET", "/releases", self._all_releases),
            ("GET", "/releases/latest", self._latest),
            ("GET", "/releases/tags/(.+)", self._tagged),
            ("GET", r"/releases/(\d+)/assets", self._assets),
            ("GET", r"/releases/assets/(\d+)", self._asset),
        )

    def page_of(self, run: RemoteRun) -> str:
        return f"https://github.invalid/octo/ort/actions/runs/{run.id}"

    def _dispatch(self, _: dict[str, str], body: bytes, name: str) -> Reply:
        workflow, data = self.workflows.get(name), json.loads(body)
        if workflow is None:
            return message(404, "Not Found")
        wrong = workflow.objection(data, self.refs)
        if wrong:
            return message(422, wrong)
        inputs = data["inputs"]
        target = f"{inputs['target']} " if "target" in inputs else ""
        run = self.start(f"build {target}[{inputs['correlation_id']}]")
        run.path = f".github/workflows/{name}@{data['ref']}"
        if not (workflow.tells_run and data.get("return_run_details")):
            return Reply(status=204)
        url = f"{self.url}{REPOSITORY}/actions/runs/{run.id}"
        return answer({"workflow_run_id": run.id, "run_url": url, "html_url": self.page_of(run)})

    def _repository(self, _parameters: dict[str, str], _body: bytes) -> Reply:
        shown = example("full-repository-default-response")
        own = {"full_name": "octo/ort", "default_branch": self.default_branch, "language": "C", "private": True}
        return answer({**{name: shown[name] for name in shown if name not in {"parent", "source"}}, **own})

    def _branch(self, _parameters: dict[str, str], _body: bytes, name: str) -> Reply:
        branch = unquote(name)
        return answer({**example("branch-get"), "name": branch}) if branch in self.refs else message(404, "Not Found")

    def start(self, title: str) -> RemoteRun:
        run = self.template()
        run.id, run.title, run.created = 5000 + len(self.runs), title, self.clock.now
        self.runs.append(run)
        return run

    def _known(self) -> list[RemoteRun]:
        return [run for run in reversed(self.runs) if self.clock.now >= run.created + run.listed]

    def _workflow_runs(self, parameters: dict[str, str], _: bytes, name: str) -> Reply:
        if name not in self.workflows:
            return message(404, "Not Found")
        known = [run for run in self._known() if run.path.partition("@")[0].endswith(f"/{name}")]
        known = [run for run in known if parameters.get("branch", run.head_branch) == run.head_branch]
        runs = [run.data(self.clock.now, self.page_of(run)) for run in known]
        return self._paged(runs, parameters, "workflow_runs", f"/actions/workflows/{name}/runs")

    def _run(self, _parameters: dict[str, str], _body: bytes, number: str) -> Reply:
        run = self._find(number)
        return answer(run.data(self.clock.now, self.page_of(run))) if run else message(404, "Not Found")

    def _find(self, number: str) -> RemoteRun | None:
        return next((run for run in self._known() if run.id == int(number)), None)

    def _jobs(self, parameters: dict[str, str], _: bytes, number: str) -> Reply:
        run = self._find(number)
        if run is None:
            return message(404, "Not Found")
        since = self.clock.now - run.created
        jobs = [job.data(since, run.created, self.page_of(run)) for job in run.jobs]
        return self._paged(jobs, parameters, "jobs", f"/actions/runs/{number}/jobs")

    def _artifacts(self, parameters: dict[str, str], _: bytes, number: str) -> Reply:
        run = self._find(number)
        if run is None:
            return message(404, "Not Found")
        found = [each for each in run.artifacts if parameters.get("name", each.name) == each.name]
        data = [artifact.data(run.id) for artifact in found]
        return self._paged(data, parameters, "artifacts", f"/actions/runs/{number}/artifacts")

    def _cancel(self, _parameters: dict[str, str], _body: bytes, number: str, _verb: str) -> Reply:
        run = self._find(number)
        if run is None:
            return message(404, "Not Found")
        if run.data(self.clock.now, "")["status"] == "completed":
            return message(409, "Cannot cancel a workflow run that is completed.")
        run.cancels_at = self.clock.now + 10
        return answer({}, 202)

    def _log(self, _parameters: dict[str, str], _body: bytes, number: str) -> Reply:
        job = next((job for run in self.runs for job in run.jobs if job.id == int(number)), None)
        if job is None:
            return message(404, "Not Found")
        return Reply(status=302, headers={"Location": self.blob_address(f"log-{number}", job.log)})

    def _zip(self, _parameters: dict[str, str], _body: bytes, number: str) -> Reply:
        found: Artifact | None = next(
            (each for run in self.runs for each in run.artifacts if each.id == int(number)), None
        )
        if found is None:
            return message(404, "Not Found")
        if found.expired:
            return message(410, "Artifact has expired")
        return Reply(status=302, headers={"Location": self.blob_address(number, found.content)})

    def _all_releases(self, parameters: dict[str, str], _: bytes) -> Reply:
        return self._paged([release.data() for release in reversed(self.releases)], parameters, "", "/releases")

    def _latest(self, _parameters: dict[str, str], _body: bytes) -> Reply:
        return answer(self.releases[-1].data()) if self.releases else message(404, "Not Found")

    def _tagged(self, _parameters: dict[str, str], _body: bytes, tag: str) -> Reply:
        found = next((release for release in self.releases if release.tag == unquote(tag)), None)
        return answer(found.data()) if found else message(404, "Not Found")

    def _assets(self, parameters: dict[str, str], _: bytes, number: str) -> Reply:
        found = next((release for release in self.releases if release.id == int(number)), None)
        if found is None:
            return message(404, "Not Found")
        return self._paged(found.assets(), parameters, "", f"/releases/{number}/assets")

    def _asset(self, _parameters: dict[str, str], _body: bytes, number: str) -> Reply:
        found = next((release for release in self.releases if release.id == int(number) // 1000), None)
        if found is None:
            return message(404, "Not Found")
        content = list(found.files.values())[int(number) % 1000]
        return Reply(status=302, headers={"Location": self.blob_address(f"asset-{number}", content)})

    def _paged(self, items: list[Any], parameters: dict[str, str], key: str, path: str) -> Reply:
        size = min(int(parameters.get("per_page", "30")), LARGEST_PAGE)
        page = int(parameters.get("page", "1"))
        shown = items[(page - 1) * size : page * size]
        reply = answer({"total_count": len(items), key: shown} if key else shown)
        if page * size < len(items):
            query = urlencode({**parameters, "page": str(page + 1)})
            last = urlencode({**parameters, "page": str(-(-len(items) // size))})
            base = f"{self.url}{REPOSITORY}{path}"
            reply.headers["Link"] = f'<{base}?{query}>; rel="next", <{base}?{last}>; rel="last"'
        return reply
