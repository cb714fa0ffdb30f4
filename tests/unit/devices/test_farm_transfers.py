import io
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from loopback_service import LOST, Asked, LoopbackService, Reply
from ortrim.base.http import TransportError, same_origin
from ortrim.devices.farms import farm
from ortrim.errors import StorageError

SECRET = "X-Amz-Signature=geheim-44"  # noqa: S105 - a secret to look for


class Store(LoopbackService):
    """Keeps what is sent, and gives it back."""

    content = b"x" * 1000

    def name_of(self, asked: Asked) -> str:
        return asked.method

    def answer(self, asked: Asked) -> Reply:
        return Reply(body=self.content if asked.method == "GET" else b"")


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    store = Store()
    yield store
    store.close()


def failure(url: str, path: Path, most_bytes: int = 10_000) -> TransportError:
    """Return why a file cannot be fetched, without a word of the address anywhere in it."""
    with pytest.raises(TransportError) as caught:
        farm.fetch_file(url, path, most_bytes=most_bytes)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert SECRET not in f"{caught.value!r} {caught.value}"
    return caught.value


@pytest.mark.parametrize(
    ("reply", "status", "transient"),
    [
        (Reply(status=LOST), 0, True),
        (Reply(status=503), 503, True),
        (Reply(status=429), 429, True),
        (Reply(status=403), 403, False),
        (Reply(status=404), 404, False),
        (Reply(body=b"short", headers={"Content-Length": "99"}), 0, True),
        (Reply(body=b"x" * 20_000), 413, False),
    ],
    ids=["lost", "503", "429", "403", "404", "cut-short", "too-large"],
)
def test_what_does_not_come(store: Store, tmp_path: Path, reply: Reply, status: int, transient: bool) -> None:  # noqa: FBT001
    """A failure says whether it may be gone the next time."""
    store.faults["GET"] = [reply]
    error = failure(f"{store.address}/a?{SECRET}", tmp_path / "a")
    assert (error.status, farm.may_pass(error)) == (status, transient)


@pytest.mark.parametrize(
    "url", ["", "nonsense", "file:///etc/passwd", "ftp://127.0.0.1/a", "http://", "http://[::1", "http://127.0.0.1:1/a"]
)
def test_addresses_that_are_none(tmp_path: Path, url: str) -> None:
    assert str(failure(f"{url}?{SECRET}", tmp_path / "a"))


def test_the_disk_is_not_the_network(store: Store, tmp_path: Path) -> None:
    """A file that cannot be written or read is an error of the disk's."""
    with pytest.raises(StorageError):
        farm.fetch_file(f"{store.address}/a", tmp_path / "absent" / "a", most_bytes=1)
    with pytest.raises(StorageError):
        farm.send_file(f"{store.address}/a", tmp_path / "absent", {})


def test_a_file_that_shrank() -> None:
    assert list(farm.Upload(io.BytesIO(b"abc"), 9)) == [b"abc"]


def test_addresses_stay_out_of_logs(store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    farm.keep_addresses_out_of_logs()
    with caplog.at_level(logging.DEBUG):
        farm.fetch_file(f"{store.address}/a?{SECRET}", tmp_path / "a", most_bytes=10_000)
    assert SECRET not in caplog.text


def test_a_signed_address_is_enough(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the user's netrc has for the server is not sent: stores refuse two kinds of credentials at once."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password geheim-45\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert requests.get(store.address, timeout=9).request.headers["Authorization"]
    farm.send_file(f"{store.address}/a", tmp_path / "netrc", {})
    farm.fetch_file(f"{store.address}/a", tmp_path / "a", most_bytes=1000)
    assert [asked.headers.get("authorization") is None for asked in store.asked] == [False, True, True]


def test_another_server_gets_no_credentials(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A redirect to another port or name is followed without asking the netrc."""
    (tmp_path / "netrc").write_text("default login me password geheim-45\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    other = Store()
    store.faults["GET"] = [Reply(status=302, headers={"Location": f"{other.address}/c"})]
    farm.fetch_file(f"{store.address}/a", tmp_path / "a", most_bytes=1000)
    other.close()
    assert ["authorization" in asked.headers for asked in (*store.asked, *other.asked)] == [False, False]


def test_servers_and_ways() -> None:
    """Servers are the same with scheme, name and port; a way is encrypted, or like the one it is compared with."""
    assert same_origin("https://a.b/c?d", "https://a.b/e")
    assert not same_origin("http://a.b/c", "https://a.b/c")
    assert not same_origin("https://a.b:8/c", "https://a.b/c")
    assert not same_origin("https://a.b@evil/c", "https://a.b/c")
    assert farm.same_way("https://x/", "http://127.0.0.1:1")
    assert farm.same_way("http://x/", "http://127.0.0.1:1")
    assert not farm.same_way("http://x/", "https://aws")
    assert not farm.same_way("file:///etc/passwd", "https://aws")
