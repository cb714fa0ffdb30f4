"""Prism before the stand-in for GitHub: requests and answers that are not as GitHub describes them do not pass."""

import hashlib
import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import create_connection
from threading import Thread
from typing import Any, Final

import requests

from github_contract import DESCRIPTION
from github_service import GitHubService
from github_wire import Exchange, LoopbackServer, Reply
from loopback_service import free_port
from ortrim.base.cache import cache_folder, publish_folder
from ortrim.base.command import run

DATA: Final = Path(__file__).parents[1] / "integration" / "data" / "prism"
FILES: Final = ("package.json", "package-lock.json")
PATIENCE_SECONDS: Final = 60
REDIRECTED: Final = re.compile(r"(/zip|/logs|/releases/assets/\d+)$")
"""What the API redirects; Prism would follow it by itself, with the token, and so is not asked."""
OF_THE_LINK: Final = frozenset({"connection", "content-length", "date", "keep-alive", "server", "transfer-encoding"})


class Front:
    """Passes each request on to Prism; `violations` are what Prism refused."""

    def __init__(self, service: GitHubService, prism: str) -> None:
        self.violations: list[str] = []
        self._service = service
        self._prism = prism
        self._server = LoopbackServer(self._reply, service.clock)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def running(self) -> Iterator["Front"]:
        thread = Thread(target=self._server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def _reply(self, asked: Exchange, body: bytes) -> Reply:
        redirected = REDIRECTED.search(asked.path.partition("?")[0])
        headers = {
            name: value for name, value in asked.headers.items() if name.lower() not in {"host", "content-length"}
        }
        with requests.Session() as session:
            session.trust_env = False
            base = self._service.url if redirected else self._prism
            answer = session.request(
                asked.command, base + asked.path, headers=headers, data=body or None, allow_redirects=False, timeout=60
            )
        if "problem+json" in answer.headers.get("Content-Type", ""):
            self.violations.append(f"{asked.command} {asked.path}: {answer.text[:2000]}")
        kept = {name: value for name, value in answer.headers.items() if name.lower() not in OF_THE_LINK}
        return Reply(status=answer.status_code, body=answer.content, headers=kept)


@contextmanager
def behind_prism(service: GitHubService, folder: Path) -> Iterator[Front]:
    description = folder / "api.json"
    description.write_text(json.dumps(_described()))
    port = free_port()
    words = ("node", str(_prism()), "proxy", str(description), service.url, "--errors", "--host", "127.0.0.1")
    with (folder / "prism.log").open("wb") as log:
        process = subprocess.Popen((*words, "--port", str(port)), stdout=log, stderr=log, start_new_session=True)
        try:
            _await(port, process)
            with Front(service, f"http://127.0.0.1:{port}").running() as front:
                yield front
        finally:
            process.terminate()
            process.wait()


def _described() -> dict[str, Any]:
    """Return the trimmed description with the words without which Prism passes over an answer that has no content."""
    whole: dict[str, Any] = {**json.loads(DESCRIPTION.read_bytes()), "openapi": "3.1.0"}
    for verbs in whole["paths"].values():
        for operation in verbs.values():
            for answer in operation["responses"].values():
                answer.setdefault("description", "")
    return whole


def _prism() -> Path:
    """Return the program, installed by npm from a list with digests."""
    name = hashlib.sha256((DATA / "package-lock.json").read_bytes()).hexdigest()[:16]
    folder = cache_folder("test-roots") / f"prism-{name}"
    publish_folder(folder, _install)
    return folder / "node_modules" / ".bin" / "prism"


def _install(folder: Path) -> None:
    for name in FILES:
        shutil.copyfile(DATA / name, folder / name)
    done = run(("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"), cwd=folder, timeout_seconds=600)
    assert done.returncode == 0, done.stderr


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < ends:
        assert process.poll() is None, "Prism ended"
        try:
            create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(port)
