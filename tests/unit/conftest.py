"""What unit tests of several folders share: the program and the pipeline, in this process."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ortrim.cli.namespace import namespace_for
from pipeline_stages import Stages, small_stages
from program_runs import MEASURE, Run, program_in
from workshop import Workshop


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_disks() -> Iterator[None]:
    """Let files be written without the disk's word for it: thousands are, none of which has to outlive a power cut."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture
def checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the program the benchmarks' tasks, too, which only a checkout has."""
    namespace = namespace_for(())
    namespace.add_collection(MEASURE, name="measure")
    monkeypatch.setattr("ortrim.cli.program.namespace_for", lambda _words: namespace)


@pytest.fixture
def ortrim(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs `ortrim` with some words in an empty folder with a cache of its own."""
    return program_in(tmp_path, capfd, monkeypatch)


@pytest.fixture
def workshop(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path / "pins"))
    return Workshop(tmp_path)


@pytest.fixture
def stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stages:
    """Return a pipeline without conversion and sources on an x86-64 host."""
    return small_stages(tmp_path, monkeypatch)
