"""Which tests wait for which."""

from pathlib import Path
from threading import Event, Thread

import pytest

from company import in_company


def test_two_in_company_wait_for_nobody(tmp_path: Path) -> None:
    """Else there would be no use in several workers."""
    with in_company(tmp_path, alone=False), in_company(tmp_path, alone=False):
        pass


@pytest.mark.parametrize(("first", "second"), [(True, False), (False, True), (True, True)])
def test_who_is_alone_waits_and_is_waited_for(tmp_path: Path, *, first: bool, second: bool) -> None:
    entered = Event()

    def enter() -> None:
        with in_company(tmp_path, alone=second):
            entered.set()

    other = Thread(target=enter)
    with in_company(tmp_path, alone=first):
        other.start()
        assert not entered.wait(0.1)
    assert entered.wait(30)
    other.join()
