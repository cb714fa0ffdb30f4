"""A server whose certificate nobody knows, asked by pip, by git and by our own downloads: refused, then trusted."""

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ortrim.base.certificates import VARIABLE
from ortrim.base.command import run
from ortrim.base.http import download
from ortrim.base.scripts import packages_folder
from ortrim.errors import Diagnostic, ExitCode, NetworkError
from ortrim.pin_updates.update import resolved
from ortrim.sources.commits import tagged_commit
from small_wheels import write_wheel
from tls_server import TlsServer, forget_certificates, tls_server

CONTENT = b"an archive\n"


@pytest.fixture
def proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TlsServer]:
    """Give a server that is the only package index, trusted by nobody yet."""
    forget_certificates(monkeypatch)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    with tls_server(tmp_path) as served:
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_INDEX_URL", f"{served.address}/simple")
        monkeypatch.setenv("PIP_RETRIES", "1")
        yield served


def refused(ask: Callable[[], object], proxy: TlsServer) -> Diagnostic:
    """Ask a server that is not trusted, and return the diagnostic, which says what to do."""
    with pytest.raises(Diagnostic) as caught:
        ask()
    assert proxy.connections
    assert f"export {VARIABLE}=" in caught.value.hint
    assert "certificate" in caught.value.why
    return caught.value


def test_pip_reads_the_file_that_is_named(proxy: TlsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy's certificate is no index out of reach, and no missing version."""
    folder = proxy.files / "simple" / "onepackage"
    folder.mkdir(parents=True)
    line = write_wheel(folder, "onepackage", "1.5")
    for ask in (lambda: packages_folder("tools", line), lambda: resolved(["onepackage"], "3.12", ["any"])):
        error = refused(ask, proxy)
        assert isinstance(error, NetworkError)
        assert (error.code, error.exit_code) == ("untrusted-certificate", ExitCode.NETWORK)
    monkeypatch.setenv(VARIABLE, str(proxy.certificate))
    assert (packages_folder("tools", line) / "onepackage.py").is_file()


def test_a_download_is_refused_once(proxy: TlsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next attempt would meet the same certificate."""
    (proxy.files / "archive").write_bytes(CONTENT)
    destination, digest = tmp_path / "archive", hashlib.sha256(CONTENT).hexdigest()
    error = refused(lambda: download(f"{proxy.address}/archive", destination, digest), proxy)
    assert error.code == "untrusted-certificate"
    assert proxy.connections == 1
    monkeypatch.setenv(VARIABLE, str(proxy.certificate))
    download(f"{proxy.address}/archive", destination, digest)
    assert destination.read_bytes() == CONTENT


def test_git_is_told_of_the_same_file(proxy: TlsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a variable of its own, which counts where the user sets it."""
    repository = proxy.files / "repository.git"
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-C", repository)
    repository.mkdir()
    for words in ("init -q", "commit -q --allow-empty -m one", "tag v1", "update-server-info"):
        assert run((*git, *words.split())).returncode == 0
    url = f"{proxy.address}/repository.git/.git"
    assert refused(lambda: tagged_commit(url, "v1"), proxy).code == "git-failed"
    monkeypatch.setenv(VARIABLE, str(proxy.certificate))
    assert len(tagged_commit(url, "v1")) == 40
    monkeypatch.setenv("GIT_SSL_CAINFO", str(tmp_path / "absent"))
    with pytest.raises(Diagnostic):
        tagged_commit(url, "v1")
