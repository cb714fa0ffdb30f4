"""Files under a ref that is no branch: stored once, found again, removed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from github_checks import OCTO, Remote, new_client, refused, running_remote
from github_service import message
from github_wire import Reply
from ortrim.errors import NetworkError, StorageError
from ortrim.github.repositories import create_ref, remove_ref, require_private, store_commit, store_file

REF = "refs/ortrim/models/0011223344556677"


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> Iterator[Remote]:
    """Run the stand-in."""
    with running_remote(monkeypatch) as running:
        yield running


def stored(remote: Remote, folder: Path) -> str:
    """Store two files as a commit and return its name."""
    (folder / "a").write_bytes(bytes(range(256)))
    (folder / "b").touch()
    blobs = {f"x/{name}": store_file(remote.client, OCTO, folder / name) for name in ("a", "b")}
    return store_commit(remote.client, OCTO, blobs, "m")


def test_files_lie_under_the_ref(remote: Remote, tmp_path: Path) -> None:
    """Byte for byte, without anything before them in the history."""
    create_ref(remote.client, OCTO, REF, stored(remote, tmp_path))
    assert remote.service.git.files(REF) == {"x/a": bytes(range(256)), "x/b": b""}
    remove_ref(remote.client, OCTO, REF)
    assert remote.service.git.refs == {}


def test_removing_twice_is_no_error(remote: Remote) -> None:
    """What is not there need not be removed."""
    remove_ref(remote.client, OCTO, REF)


def test_a_token_that_sees_nothing_has_removed_nothing(remote: Remote) -> None:
    """GitHub hides a repository by answering that it is not there; the ref is then still where it was."""
    remote.service.fault("DELETE", message(404, "Not Found"))
    with pytest.raises(NetworkError):
        remove_ref(remote.client, OCTO, REF)


@pytest.mark.parametrize("lost", [Reply(silent=True), Reply(status=502)])
@pytest.mark.parametrize("afterwards", [True, False])
def test_what_was_not_answered_is_done_again(remote: Remote, tmp_path: Path, lost: Reply, *, afterwards: bool) -> None:
    """Whether it was done the first time or not: the second time comes to the same."""
    for part in ("blobs", "trees", "commits", "refs"):
        remote.service.fault(f"POST .*/git/{part}", lost, afterwards=afterwards)
    create_ref(remote.client, OCTO, REF, stored(remote, tmp_path))
    assert set(remote.service.git.files(REF)) == {"x/a", "x/b"}


def test_a_service_that_never_answers_is_given_up(remote: Remote, tmp_path: Path) -> None:
    """After three attempts each."""
    commit = stored(remote, tmp_path)
    remote.service.fault("POST", *(Reply(silent=True) for _ in range(5)))
    with refused("github-unreachable", NetworkError):
        store_file(remote.client, OCTO, tmp_path / "a")
    with refused("github-unreachable", NetworkError):
        create_ref(remote.client, OCTO, REF, commit)


def test_another_ref_of_that_name_is_not_taken(remote: Remote, tmp_path: Path) -> None:
    """It is somebody else's."""
    commit = stored(remote, tmp_path)
    create_ref(remote.client, OCTO, REF, commit)
    with refused("github-invalid-request", NetworkError) as caught:
        create_ref(remote.client, OCTO, REF, commit)
    assert "already exists" in caught[0].why


def test_a_token_that_may_not_write_is_told(remote: Remote, tmp_path: Path) -> None:
    """With the right that it needs; nothing is left."""
    (tmp_path / "a").touch()
    needs = {"X-Accepted-GitHub-Permissions": "contents=write"}
    remote.service.fault("POST", message(403, "Resource not accessible by personal access token", **needs))
    with refused("github-refused", NetworkError) as caught:
        store_file(remote.client, OCTO, tmp_path / "a")
    assert "contents=write" in caught[0].hint
    with refused("github-no-token", NetworkError):
        remove_ref(new_client(remote.service, remote.clock, [], secret=""), OCTO, REF)


def test_a_file_that_cannot_be_read_is_told(remote: Remote, tmp_path: Path) -> None:
    """Nothing is sent for it."""
    with refused("storage-failed", StorageError):
        store_file(remote.client, OCTO, tmp_path / "absent")
    assert remote.service.seen == []


def test_a_strange_name_is_not_taken(remote: Remote, tmp_path: Path) -> None:
    """It would become part of what is sent next."""
    (tmp_path / "a").touch()
    remote.service.fault("POST", Reply(status=201, body=b'{"sha": "../x"}'))
    with refused("github-unexpected-answer", NetworkError):
        store_file(remote.client, OCTO, tmp_path / "a")


def test_a_public_repository_is_refused(remote: Remote) -> None:
    """Everybody could read what is stored there."""
    require_private(remote.client, OCTO)
    remote.service.private = False
    with refused("repository-public", NetworkError) as caught:
        require_private(remote.client, OCTO)
    assert "--upload-models" in caught[0].hint
