"""What the stand-in for Firebase Test Lab answers, by address, over HTTP. See `firebase_service`."""

import json
import re
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from firebase_service import BUCKET, CATALOGUE, TOKEN, Answer, FirebaseService, HangUp

HEADERS: Final = frozenset({"Location", "Range"})


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request: what its path held, its query, its body."""

    method: str
    words: tuple[str, ...]
    query: Mapping[str, str]
    content: bytes
    content_type: str
    content_range: str
    project: str


def _catalogue(service: FirebaseService, call: Call) -> Answer:
    project = call.query.get("projectId", "")
    refused = service.refusal(project, "catalogue") if project else None
    return refused or (200, CATALOGUE)


def _settings(service: FirebaseService, call: Call) -> Answer:
    return service.refusal(call.words[0], "settings") or (200, {"defaultBucket": BUCKET})


def _create(service: FirebaseService, call: Call) -> Answer:
    refused = service.refusal(call.words[0], "create")
    return refused or service.create(call.words[0], json.loads(call.content))


def _look(service: FirebaseService, call: Call) -> Answer:
    return service.look(call.words[1])


def _cancel(service: FirebaseService, call: Call) -> Answer:
    service.matrices[call.words[1]].cancelled = True
    return 200, {"testState": "RUNNING"}


def _execution(service: FirebaseService, call: Call) -> Answer:
    matrix = service.matrices[call.words[1]]
    return 200, {"executionId": call.words[1], "outcome": service.behaviour(matrix.project).outcome}


def _environments(service: FirebaseService, call: Call) -> Answer:
    return service.environments(call.words[1])


def _bucket(_service: FirebaseService, call: Call) -> Answer:
    return 200, {"kind": "storage#bucket", "name": call.words[0], "id": call.words[0], "location": "EU"}


def _insert(service: FirebaseService, call: Call) -> Answer:
    refused = service.refusal(call.project, "upload")
    if refused:
        return refused
    name = f"{call.words[0]}/{call.query.get('name', '')}"
    if call.query["uploadType"] == "resumable":
        number = str(len(service.uploads))
        service.uploads[number] = (name, call.project)
        return 200, {"Location": f"{service.address}/sessions/{number}"}
    boundary = re.search(r"boundary=[\"']?([^\"';]+)", call.content_type)
    assert boundary
    part = call.content.split(b"--" + boundary[1].encode())[2]
    service.objects[name] = part.split(b"\n\n" if b"\r\n\r\n" not in part else b"\r\n\r\n", 1)[1].rstrip(b"\r\n")
    return 200, service.object_message(name)


def _session(service: FirebaseService, call: Call) -> Answer:
    """Take one part of a file; `bytes 0-1048575/6291456` says which."""
    name, _ = service.uploads[call.words[0]]
    part = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", call.content_range)
    assert part
    first, last, size = (int(number) for number in part.groups())
    service.objects[name] = service.objects.get(name, b"")[:first] + call.content
    if last + 1 < size:
        return 308, {"Range": f"bytes=0-{last}"}
    return 200, service.object_message(name)


def _list(service: FirebaseService, call: Call) -> Answer:
    prefix, delimiter = call.query.get("prefix", ""), call.query.get("delimiter", "")
    items, folders = [], set()
    for name in sorted(service.objects):
        bucket, _, path = name.partition("/")
        if bucket != call.words[0] or not path.startswith(prefix):
            continue
        head, found, _ = path[len(prefix) :].partition(delimiter) if delimiter else (path, "", "")
        if found:
            folders.add(f"{prefix}{head}{delimiter}")
        else:
            items.append(service.object_message(name))
    return 200, {"kind": "storage#objects", "items": items, "prefixes": sorted(folders)}


def _object(service: FirebaseService, call: Call) -> Answer:
    name = f"{call.words[0]}/{unquote(call.words[1])}"
    if name not in service.objects:
        return 404, {"error": {"code": 404, "message": f"No such object: {name}"}}
    if call.method == "DELETE":
        del service.objects[name]
        return 204, b""
    content = service.objects[name]
    refused = service.refusal(call.project, "download") if call.project else None
    return refused or (200, content if call.query.get("alt") == "media" else service.object_message(name))


ROUTES: Final[tuple[tuple[str, Callable[[FirebaseService, Call], Answer]], ...]] = (
    (r"GET /v1/testEnvironmentCatalog/ANDROID", _catalogue),
    (r"POST /toolresults/v1beta3/projects/([^/]+):initializeSettings", _settings),
    (r"POST /v1/projects/([^/]+)/testMatrices", _create),
    (r"GET /v1/projects/([^/]+)/testMatrices/([^/:]+)", _look),
    (r"POST /v1/projects/([^/]+)/testMatrices/([^/:]+):cancel", _cancel),
    (r"GET /toolresults/v1beta3/projects/([^/]+)/histories/bh.1/executions/([^/]+)", _execution),
    (r"GET /toolresults/v1beta3/projects/([^/]+)/histories/bh.1/executions/([^/]+)/environments", _environments),
    (r"GET /storage/v1/b/([^/]+)", _bucket),
    (r"POST (?:/resumable)?/upload/storage/v1/b/([^/]+)/o", _insert),
    (r"PUT /sessions/(\d+)", _session),
    (r"GET /storage/v1/b/([^/]+)/o", _list),
    (r"(?:GET|DELETE) (?:/download)?/storage/v1/b/([^/]+)/o/(.+)", _object),
)


class FirebaseServer(ThreadingHTTPServer):
    """The service of all projects, on one port of the loopback; `close` ends it."""

    daemon_threads = True

    def __init__(self, service: FirebaseService) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.service = service
        service.address = f"http://127.0.0.1:{self.server_port}"
        Thread(target=self.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()


def _project_of(text: str) -> str:
    """Return whose object it is: Cloud Storage is not told, but the folder's name has it in these tests."""
    found = re.search(r"/?([\w-]+)-[0-9a-f]{32}/", text)
    return found[1] if found else ""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FirebaseServer

    def _answer(self) -> None:
        address = urlsplit(self.path)
        self.server.service.asked.append(f"{self.command} {address.path}")
        try:
            code, body = self._result(address.path, address.query)
        except HangUp:
            linger = struct.pack("ii", 1, 0)  # a reset, as from a network that is gone
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.close_connection = True
            return
        self._send(code, body)

    def _result(self, path: str, query: str) -> Answer:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            echo = f"Request had invalid authentication credentials: {self.headers.get('Authorization')}"
            return 401, {"error": {"code": 401, "message": echo, "status": "UNAUTHENTICATED"}}
        for pattern, answer in ROUTES:
            match = re.fullmatch(pattern, f"{self.command} {path}")
            if match:
                return self._answered(answer, self._call(match.groups(), query, content))
        return 404, {"error": {"code": 404, "message": f"nothing here: {self.command} {path}"}}

    def _answered(self, answer: Callable[[FirebaseService, Call], Answer], call: Call) -> Answer:
        try:
            return answer(self.server.service, call)
        except (AssertionError, LookupError, ValueError) as error:  # our own: gcloud would try again for minutes
            return 400, {"error": {"code": 400, "message": f"the stand-in cannot answer: {error!r}"}}

    def _call(self, words: tuple[str, ...], query: str, content: bytes) -> Call:
        single = {key: values[0] for key, values in parse_qs(query).items()}
        return Call(
            method=self.command,
            words=words,
            query=single,
            content=content,
            content_type=self.headers.get("Content-Type") or "",
            content_range=self.headers.get("Content-Range") or "",
            project=_project_of(unquote(urlsplit(self.path).path) + "/" + single.get("name", "")),
        )

    def _send(self, code: int, body: Any) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        for name in HEADERS.intersection(body if isinstance(body, dict) else ()):
            self.send_header(name, body[name])
        self.send_header("Content-Type", "application/octet-stream" if body is content else "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - as http.server calls them

    def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - as http.server calls it
        """Say nothing."""
