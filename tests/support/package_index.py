"""A package index on this machine, where ortrim is published before it is installed from there: pypiserver."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from loopback_service import free_port
from ortrim.base.scripts import ISOLATED_PYTHON, Python, environment_with, packages_folder
from workflow_runner import ROOT

REQUIREMENTS: Final = ROOT / "tests" / "integration" / "data" / "package-index.txt"
PATIENCE_SECONDS: Final = 20


def index_tools() -> Path:
    """Return the folder of pypiserver, twine and uv."""
    return packages_folder("package-index", REQUIREMENTS.read_text())


def python_with_index_tools(*words: str) -> Python:
    """Return a Python that runs one of them."""
    environment = environment_with(index_tools()) | {"NO_PROXY": "127.0.0.1"}
    return Python(words=(*ISOLATED_PYTHON, *words), environment=environment)


@contextmanager
def package_index(folder: Path) -> Iterator[str]:
    """Serve the distributions of a folder, and take more without asking who sends them; give the index's address."""
    folder.mkdir()
    port = free_port()
    own = ("run", "--interface", "127.0.0.1", "--port", str(port), "--disable-fallback", "-P", ".", "-a", ".")
    server = python_with_index_tools("-m", "pypiserver", *own, str(folder))
    with subprocess.Popen(server.words, env=dict(server.environment), stderr=subprocess.DEVNULL) as process:
        try:
            _await_answer(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _await_answer(port: int) -> None:
    ends = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < ends
            time.sleep(0.05)
        else:
            return
