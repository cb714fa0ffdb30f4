import os
import threading
import time
from collections.abc import Iterator
from typing import IO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.base.command import Captured, TooMuchOutput

Pipe = tuple[IO[str], int]


def make_pipe() -> Pipe:
    """Make a pipe: a stream to read, and a descriptor to write."""
    read, write = os.pipe()
    return os.fdopen(read), write


@pytest.fixture
def pipes() -> Iterator[tuple[Pipe, Pipe]]:
    """Give two pipes, whose streams are closed after the test; the test closes the others."""
    made = (make_pipe(), make_pipe())
    yield made
    for stream, _ in made:
        stream.close()


def test_streams_are_read_apart(pipes: tuple[Pipe, Pipe]) -> None:
    """Each stream's text comes back as its own, in whatever order it was written."""
    (first, to_first), (second, to_second) = pipes
    for number, text in ((to_second, b"2a"), (to_first, b"1"), (to_second, b"2b")):
        os.write(number, text)
    os.close(to_first)
    os.close(to_second)
    with Captured((first, second), None) as captured:
        while not captured.read(5):
            pass
        assert captured.read(5)
        assert captured.texts() == ("1", "2a2b")


def test_waiting_ends(pipes: tuple[Pipe, Pipe]) -> None:
    """When nothing comes, reading returns and says that there may be more."""
    (first, to_first), (second, to_second) = pipes
    with Captured((first, second), None) as captured:
        assert not captured.read(0.01)
        os.close(to_second)
        assert not captured.read(5)
        os.close(to_first)
        assert captured.read(5)
        assert captured.texts() == ("", "")


def test_too_much(pipes: tuple[Pipe, Pipe]) -> None:
    """The limit is for all streams together, and is reached before everything was read."""
    (first, to_first), (second, to_second) = pipes
    with Captured((first, second), 10) as captured:
        os.write(to_first, b"12345")
        assert not captured.read(5)
        os.write(to_second, b"12345")
        assert not captured.read(5)
        os.write(to_second, b"6")
        with pytest.raises(TooMuchOutput):
            captured.read(5)
    os.close(to_first)
    os.close(to_second)


def test_more_than_a_pipe_holds(pipes: tuple[Pipe, Pipe]) -> None:
    """A writer that waits for its reader is not waited for."""
    (first, to_first), (second, to_second) = pipes

    def write() -> None:
        os.close(to_second)
        for _ in range(64):
            os.write(to_first, bytes(1 << 16))
        time.sleep(0.01)
        os.close(to_first)

    thread = threading.Thread(target=write)
    thread.start()
    with Captured((first, second), 1 << 22) as captured:
        while not captured.read(60):
            pass
        assert len(captured.texts()[0]) == 1 << 22
    thread.join()


@given(st.binary(max_size=100))
def test_any_bytes_become_text(data: bytes) -> None:
    """What comes is what a text stream would have read, whatever the bytes."""
    stream, write = make_pipe()
    os.write(write, data)
    os.close(write)
    with Captured((stream,), None) as captured:
        while not captured.read(5):
            pass
        (text,) = captured.texts()
    stream.close()
    assert text == data.decode("utf-8", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    assert "\r" not in text
