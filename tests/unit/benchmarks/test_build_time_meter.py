"""The meter: CPU time and memory of children, of theirs, and of those that outlive their parents."""

import os
import sys
from pathlib import Path

import pytest
from build_time import meter
from build_time.meter import TICKS, busy_seconds, resident_of, running_processes

from ortrim.base.command import run

METER = """
import os, subprocess, sys
sys.path.insert(0, sys.argv[1])
from build_time.meter import cost_of
from pathlib import Path
from build_time import meter, record
"""
BUSY = "import time; end = time.process_time() + 0.4\nwhile time.process_time() < end: pass"
LARGE = "x = bytearray(80_000_000); import time; time.sleep(1.2)"


def metered(work: str, *, show: str) -> str:
    """Return what a fresh process prints that measures `work`."""
    here = Path(meter.__file__).parents[1]
    script = f"{METER}\ndef work():\n    {work}\ncost = cost_of(work)\nprint({show})"
    done = run((sys.executable, "-c", script, here), timeout_seconds=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_cpu_time_of_children_counts() -> None:
    """A build is nearly all children."""
    work = f"subprocess.run([sys.executable, '-c', {BUSY!r}], check=True)"
    assert float(metered(work, show="cost.cpu_seconds")) >= 0.4


def test_the_cpu_time_of_orphans_counts() -> None:
    """A compiler cache's server leaves its parent, and does the compiling."""
    child = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {BUSY!r}], start_new_session=True)"
    work = f"subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    assert metered(work, show="cost.cpu_seconds >= 0.4, cost.complete") == "True True"


def test_an_orphan_that_does_not_end_is_said() -> None:
    """Its CPU time would be missing."""
    child = "import subprocess; subprocess.Popen(['sleep', '1'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)"
    work = f"meter.ORPHAN_SECONDS = 0.2; subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    assert metered(work, show="cost.complete") == "False"


def test_memory_is_of_the_largest_process_and_of_all_together() -> None:
    """Two at a time are what limits how many may compile at a time."""
    work = f"[p.wait() for p in [subprocess.Popen([sys.executable, '-c', {LARGE!r}]) for _ in range(2)]]"
    one, both = map(int, metered(work, show="cost.peak_process_bytes, cost.peak_total_bytes").split())
    assert 80_000_000 <= one < 160_000_000 < both


def test_what_the_work_raises_is_passed_on() -> None:
    """And the watching ends."""
    show = "1"
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        metered("1 / 0", show=show)


def test_the_resident_sets_of_descendants_are_added() -> None:
    """Of no others, at any depth."""
    processes = {1: (0, 5), 10: (1, 100), 11: (10, 20), 12: (11, 3), 20: (1, 1000)}
    assert resident_of(processes, 10) == 123
    assert resident_of(processes, 12) == 3
    assert resident_of(processes, 99) == 0


def test_processes_in_a_ring_do_not_hang_it() -> None:
    """Numbers are used again while the list is read."""
    assert resident_of({1: (2, 5), 2: (1, 7)}, 1) == 17


def test_this_process_is_among_those_that_run() -> None:
    """With its parent, and a plausible resident set."""
    parent, resident = running_processes()[os.getpid()]
    assert parent == os.getppid()
    assert 10**6 < resident < 10**11


def test_what_the_processors_have_done_is_all_but_idling_and_waiting() -> None:
    """What a hypervisor took away is missing to the build, too."""
    text = "cpu  100 20 30 9000 800 4 5 6 7 8\ncpu0 1 1 1 1 1 1 1 1 1 1\n"
    assert busy_seconds(text) == pytest.approx(165 / TICKS)
    assert busy_seconds() > 0


def test_what_others_do_meanwhile_is_not_the_works() -> None:
    """It is how a measurement knows that it was not alone; never less than nothing."""
    assert metered("pass", show="cost.other_cpu_seconds >= 0") == "True"
