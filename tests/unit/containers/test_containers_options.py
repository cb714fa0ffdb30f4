"""Mounts and flags that users add."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.compiling.containers.engines import Mount
from ortrim.compiling.containers.executor import parse_flags, parse_mount, parse_mounts, require_mountable
from ortrim.errors import ExitCode, UsageError


def test_a_mount_can_be_written_or_only_read(tmp_path: Path) -> None:
    """As with docker, it can be written unless `:ro` follows."""
    assert parse_mount(f"{tmp_path}:/opt/own") == Mount(source=tmp_path, target="/opt/own", writable=True)
    assert parse_mount(f"{tmp_path}:/opt/own/:ro") == Mount(source=tmp_path, target="/opt/own")


def test_a_mounts_source_may_be_relative_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines want absolute paths, users do not."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "certificate.pem").touch()
    mount = parse_mount("certificate.pem:/etc/ssl/certs/company.pem:ro")
    assert mount.source == tmp_path / "certificate.pem"


@pytest.mark.parametrize(
    "word",
    [
        "", ":", "::", "{}", "{}:", "{}:relative", "{}:/opt/../usr", "{}:/", "{}:/usr", "{}:/proc", "{}:/proc/sys",
        "{}:/dev/shm", "{}:/sys", "{}:/opt:rw", "{}:/opt:ro:ro", "{}:/opt:RO", "/does/not/exist:/opt", ":/opt",
        "~nobody-here:/opt", "{}:/opt,readonly=false", '{}:/o"pt', "{}:/opt\nx",
    ],
)  # fmt: skip
def test_other_mounts_are_refused(tmp_path: Path, word: str) -> None:
    """Each with what is possible; engines would say less."""
    with pytest.raises(UsageError) as caught:
        parse_mount(word.format(tmp_path))
    assert (caught.value.code, caught.value.exit_code) == ("bad-option", ExitCode.USAGE)
    assert caught.value.where == "--mount"
    assert caught.value.hint


@given(st.text(max_size=40))
def test_no_word_is_too_odd_for_a_mount(word: str) -> None:
    """It is a mount that engines can be told of, or it is refused."""
    try:
        mount = parse_mount(word)
    except UsageError:
        return
    assert mount.source.is_absolute()
    assert mount.target.startswith("/")
    assert not set(mount.target) & set(',"\n')


def test_two_mounts_of_one_target_are_refused(tmp_path: Path) -> None:
    """One would cover the other."""
    with pytest.raises(UsageError):
        parse_mounts([f"{tmp_path}:/opt/own", f"{tmp_path}:/opt/own/:ro"])


def test_flags_are_passed_on_as_they_are() -> None:
    """One word each, for the engine's run command."""
    flags = ("--memory=8g", "--cpus=1.5", "--storage-opt=size=10G", "--quiet")
    assert parse_flags(flags) == flags


@pytest.mark.parametrize(
    "flag",
    [
        "", "-v", "-v=/:/host", "memory", "--", "--=x", "---x", "--Memory=1", "--memory 8g", "--memory=8g\n--rm",
        "--privileged", "--network=host", "--net=host", "--user=0", "--mount=type=bind,src=/,dst=/host", "--pid=host",
        "--volume=/:/x", "--env=A=b", "--entrypoint=sh", "--rm", "--name=x", "--cap-add=ALL", "--isolation=oci",
        "--label=a",
    ],
)  # fmt: skip
def test_other_flags_are_refused(flag: str) -> None:
    """What is no flag, and what would take back what ortrim promises of a container."""
    with pytest.raises(UsageError) as caught:
        parse_flags((flag,))
    assert (caught.value.code, caught.value.where) == ("bad-option", "--engine-flag")


OWN = (
    Mount(source=Path("/home/user/.cache/ortrim/trees/a"), target="/home/user/.cache/ortrim/trees/a", writable=True),
)


@pytest.mark.parametrize(
    "target", ["/home", "/home/user/.cache/ortrim/trees/a", "/home/user/.cache/ortrim/trees/a/out"]
)
def test_a_mount_over_ours_is_refused(target: str) -> None:
    """Whether it would cover one of ours or lie inside it."""
    with pytest.raises(UsageError) as caught:
        require_mountable((Mount(source=Path("/srv"), target=target),), OWN)
    assert caught.value.code == "bad-option"


def test_a_mount_beside_ours_is_not() -> None:
    """A name that begins alike is another."""
    require_mountable((Mount(source=Path("/srv"), target="/home/user/.cache/ortrim/trees/ab"),), OWN)


@pytest.mark.parametrize("name", ["a,b", 'a"b', "a\nb"])
def test_a_cache_that_no_engine_can_mount_is_refused(name: str) -> None:
    """The message names the folder and the variable that helps."""
    folder = f"/home/user/{name}"
    with pytest.raises(UsageError) as caught:
        require_mountable((), (Mount(source=Path(folder), target=folder),))
    assert caught.value.code == "path-not-mountable"
    assert caught.value.where == folder
    assert "ORTRIM_CACHE" in caught.value.hint
