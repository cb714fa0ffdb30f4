import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from device_samples import LocalTransport, sample_request
from ortrim.base.command import Completed, run
from ortrim.devices.remote import Payload, RemoteFolder, make_payload, run_marked
from ortrim.errors import Diagnostic, ExitCode, VerifyError


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Give the place on the machine below which folders are made; it is not there yet."""
    return tmp_path / "machine" / "tmp"


def folder_below(base: Path, transport: LocalTransport | None = None) -> RemoteFolder:
    return RemoteFolder(transport or LocalTransport(), base=f"{base}/", owner="local:1")


def payload_for(folder: RemoteFolder, place: Path) -> Payload:
    return make_payload(sample_request(place), folder.files, f"{folder.path}/outputs")


def refused(action: Callable[[], None]) -> Diagnostic:
    with pytest.raises(VerifyError) as caught:
        action()
    assert (caught.value.exit_code, caught.value.where) == (ExitCode.VERIFY, "local:1")
    return caught.value


def test_names_are_our_own_and_differ(base: Path) -> None:
    """Two folders never meet, and each can be told from what is not ours."""
    one, two = folder_below(base), folder_below(base)
    assert one.path != two.path
    assert one.path.startswith(f"{base}/ortrim-")
    assert one.files.startswith(f"{one.path}/")


def test_files_go_there_once_and_the_runner_can_be_executed(base: Path, tmp_path: Path) -> None:
    """What is there already is not sent again; closing removes all, and may be done twice."""
    transport = LocalTransport()
    folder = folder_below(base, transport)
    folder.open()
    payload = payload_for(folder, tmp_path)
    folder.push(payload)
    folder.push(payload)
    assert sorted(transport.pushed) == sorted(payload.files)
    assert os.access(payload.request.runner, os.X_OK)
    folder.close()
    assert list(base.iterdir()) == []
    folder.close()


def test_a_push_is_not_believed(base: Path, tmp_path: Path) -> None:
    """What arrives cut short is noticed by its digest, and is sent again by the next run."""

    class Cutting(LocalTransport):
        def push(self, files: Mapping[str, Path], folder: str) -> None:
            super().push(files, folder)
            next(Path(folder).rglob("library.so")).write_bytes(b"the lib")

    transport = Cutting()
    folder = folder_below(base, transport)
    payload = payload_for(folder, tmp_path)
    assert refused(lambda: folder.push(payload)).code == "push-incomplete"
    assert refused(lambda: folder.push(payload)).code == "push-incomplete"
    assert len(transport.pushed) == 8


def test_files_that_did_not_arrive(base: Path, tmp_path: Path) -> None:
    """A push that claims success and sends nothing is noticed, in the words of the machine."""

    class Silent(LocalTransport):
        def push(self, files: Mapping[str, Path], folder: str) -> None:
            pass

    folder = folder_below(base, Silent())
    error = refused(lambda: folder.push(payload_for(folder, tmp_path)))
    assert error.code == "push-incomplete"
    assert "No such file" in error.why


class Shell(LocalTransport):
    """A machine whose shell finds these programs alone."""

    def __init__(self, folder: Path, programs: Sequence[str]) -> None:
        super().__init__()
        folder.mkdir()
        for program in programs:
            found = shutil.which(program)
            assert found
            (folder / program).symlink_to(found)
        self._path = folder

    def execute(self, words: Sequence[str], *, timeout_seconds: float) -> Completed:
        def start(script: str, seconds: float) -> Completed:
            self.commands.append(tuple(words))
            shell = shutil.which("sh")
            assert shell
            return run((shell, "-c", script), environment={"PATH": str(self._path)}, timeout_seconds=seconds)

        return run_marked(words, start, limit_seconds=timeout_seconds, name="local:1", explain=self._lost)

    @staticmethod
    def _lost(printed: str) -> VerifyError:
        return VerifyError("device-lost", printed)


NEEDED = ("chmod", "mkdir", "rm", "sleep")


@pytest.mark.parametrize("program", ["sha256sum", "sha1sum", "md5sum"])
def test_any_program_for_checksums_will_do(base: Path, tmp_path: Path, program: str) -> None:
    """Android 7 has no sha256sum: what arrived is compared by what there is, and damage is noticed all the same."""
    transport = Shell(tmp_path / "programs", (*NEEDED, program))
    folder = folder_below(base, transport)
    payload = payload_for(folder, tmp_path)
    folder.push(payload)
    assert program in {words[0] for words in transport.commands}
    assert os.access(payload.request.runner, os.X_OK)

    class Cutting(Shell):
        def push(self, files: Mapping[str, Path], folder: str) -> None:
            super().push(files, folder)
            next(Path(folder).rglob("library.so")).write_bytes(b"the lib")

    folder = folder_below(base, Cutting(tmp_path / "others", (*NEEDED, program)))
    assert refused(lambda: folder.push(payload_for(folder, tmp_path))).code == "push-incomplete"


def test_a_machine_without_a_program_for_checksums(base: Path, tmp_path: Path) -> None:
    """It is said what is missing; more room would not help."""
    folder = folder_below(base, Shell(tmp_path / "programs", NEEDED))
    error = refused(lambda: folder.push(payload_for(folder, tmp_path)))
    assert (error.code, "none of sha256sum, sha1sum, md5sum" in error.what) == ("device-unusable", True)
    assert "not found" in error.why
    assert "space" not in error.hint


def test_names_that_are_written_in_another_way(base: Path, tmp_path: Path) -> None:
    """A file with a backslash in its name arrives like any other."""
    request = sample_request(tmp_path)
    (request.cases[0].folder / "in\\put.npy").write_bytes(b"x")
    folder = folder_below(base)
    folder.push(make_payload(request, folder.files, "/outputs"))
    assert len(list(Path(folder.files).rglob("in\\put.npy"))) == 1


def test_a_folder_that_cannot_be_made(base: Path) -> None:
    """A base that is a file is of no use, and it is said why."""
    base.parent.mkdir()
    base.write_text("a file")
    error = refused(folder_below(base).open)
    assert (error.code, error.what) == ("device-unusable", "'mkdir' failed with 1")
    assert "tmp" in error.why


def test_what_a_killed_run_left_is_removed_later(base: Path) -> None:
    """Folders of ours that are days old go when the next one is opened; fresh ones, and others' files, stay."""
    for name in ("ortrim-old", "ortrim-fresh", "others"):
        (base / name).mkdir(parents=True)
    long_ago = time.time() - 5 * 86400
    for name in ("ortrim-old", "others"):
        os.utime(base / name, (long_ago, long_ago))
    folder = folder_below(base)
    folder.open()
    folder.close()
    assert sorted(path.name for path in base.iterdir()) == ["ortrim-fresh", "others"]


def test_an_opening_that_is_interrupted_leaves_nothing(base: Path) -> None:
    """Ctrl-C right after the folder was made does not leave it behind."""

    class Interrupted(LocalTransport):
        def execute(self, words: Sequence[str], *, timeout_seconds: float) -> Completed:
            done = super().execute(words, timeout_seconds=timeout_seconds)
            if words[0] == "mkdir":
                raise KeyboardInterrupt
            return done

    folder = folder_below(base, Interrupted())
    with pytest.raises(KeyboardInterrupt):
        folder.open()
    assert Path(folder.path).is_dir()
    folder.close()
    assert list(base.iterdir()) == []


def test_a_folder_that_was_never_opened_is_not_removed(base: Path) -> None:
    """A device on which nothing was run is not asked for anything."""
    transport = LocalTransport()
    folder_below(base, transport).close()
    assert transport.commands == []
