"""How many instructions an inference of the demo takes on x86-64, compared with what was accepted before."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from platform import machine
from typing import Final

import pytest
from builds import Built
from instructions import (
    X64,
    Meter,
    count,
    differences,
    for_machine,
    make_meter,
    measure,
    official_kernels,
    own_kernels,
    requests_of,
)
from programs import compile_c

from native_builds import built
from ortrim.base.command import run
from ortrim.parity.runner import RunRequest

COUNTING: Final = (
    pytest.mark.build,
    pytest.mark.network,
    pytest.mark.needs("apt-get", "qemu-x86_64"),
    pytest.mark.skipif(machine() != "x86_64", reason="a build for this machine is none for x86-64"),
)
"""What a test needs that counts; those of `complaints` need nothing."""

DEMO: Final = Path(__file__).parents[2] / "buildspecs" / "silero-vad.toml"
ACCEPTED: Final = Path(__file__).parent / "data" / "instructions-x64.json"
REWRITE: Final = "ORTRIM_WRITE_INSTRUCTIONS"
"""Set this in the environment of pytest to accept what is counted, then read what git says has changed."""
MOST_PERCENT: Final = 101
LEAST_PERCENT: Final = 97
"""Of what was accepted. Who has gained as much lowers the figures, lest it is lost again without a word."""
LOOP: Final = """
int instructions_now(void);
int main(void) {
  instructions_now();
  __asm__ volatile("movl $1000000, %%ecx\\n1: decl %%ecx\\njnz 1b" ::: "ecx", "cc");
  instructions_now();
  return 0;
}
"""
QUESTION: Final = "int instructions_now(void) { return 0; }\n"


def counting(test: Callable[..., None]) -> Callable[..., None]:
    for mark in COUNTING:
        test = mark(test)
    return test


def complaints(counted: Mapping[str, int], accepted: Mapping[str, int]) -> list[str]:
    """Return a line for each case whose figure is not near the accepted one, or is nowhere else."""
    found = [f"{case}: is counted or accepted, not both" for case in sorted(counted.keys() ^ accepted.keys())]
    for case in (case for case in counted if case in accepted):
        figure, before = counted[case], accepted[case]
        if not before * LEAST_PERCENT <= figure * 100 <= before * MOST_PERCENT:
            found.append(f"{case}: {figure:,} instructions, {figure / before - 1:+.1%}; accepted: {before:,}")
    return found


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return built(DEMO, tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="module")
def demo(build: Built, tmp_path_factory: pytest.TempPathFactory) -> tuple[Meter, RunRequest]:
    ((ours, _),) = requests_of(build)
    return make_meter(X64, tmp_path_factory.mktemp("instructions"), build.headers), ours


@pytest.fixture(scope="module")
def counted(demo: tuple[Meter, RunRequest]) -> dict[str, int]:
    return count(*demo)


@counting
def test_no_case_takes_more_instructions_than_were_accepted(counted: dict[str, int]) -> None:
    """Code that grew or lost its vectors is seen at once, on a machine that counts nothing itself."""
    if os.environ.get(REWRITE):
        ACCEPTED.write_text(json.dumps(counted, indent=2) + "\n")
    found = complaints(counted, json.loads(ACCEPTED.read_text()))
    assert not found, "\n".join([*found, f"if this is meant: {REWRITE}=1 pytest {Path(__file__).name}"])


@counting
def test_a_second_count_is_the_first(demo: tuple[Meter, RunRequest], counted: dict[str, int]) -> None:
    """To three parts in a thousand, though addresses and the machine's other work differ."""
    meter, request = demo
    case = request.cases[0]
    again = count(meter, replace(request, cases=(case,)))[case.name]
    assert again == pytest.approx(counted[case.name], rel=0.003)


@counting
def test_kernels_take_most_of_an_inference(build: Built, demo: tuple[Meter, RunRequest]) -> None:
    """In both libraries, of which the official one has no symbols; the demo's most are convolutions."""
    ((ours, wheel),) = requests_of(build)
    for request, kernels in ((ours, own_kernels(build.link_map)), (wheel, official_kernels(wheel.library))):
        case = request.cases[0]
        counted = measure(demo[0], replace(request, cases=(case,)), kernels)[case.name]
        names = [kernels[address] for address in sorted(kernels)]
        assert counted.instructions * 0.7 < sum(counted.functions.values()) < counted.instructions
        assert names[max(counted.functions, key=lambda number: counted.functions[number])] == "Conv"


@counting
def test_a_loop_has_as_many_instructions_as_its_code_says(tmp_path: Path) -> None:
    """A million rounds of two instructions, and what calls and returns take."""
    files = {tmp_path / "loop.c": LOOP, tmp_path / "question.c": QUESTION}
    for path, text in files.items():
        path.write_text(text)
    compile_c(*for_machine(X64), *files, "-o", tmp_path / "loop")
    log = tmp_path / "log"
    done = run((*make_meter(X64, tmp_path).words(log), tmp_path / "loop"))
    assert done.returncode == 0, done.stderr
    (taken,) = differences(log.read_text().splitlines())
    assert 0 <= taken.instructions - 2_000_000 < 20


@pytest.mark.parametrize(
    ("figure", "said"),
    [
        (1_000, []),
        (1_010, []),
        (970, []),
        (1_011, ["a: 1,011 instructions, +1.1%; accepted: 1,000"]),
        (969, ["a: 969 instructions, -3.1%; accepted: 1,000"]),
    ],
)
def test_one_percent_more_is_noticed_and_three_less(figure: int, said: list[str]) -> None:
    assert complaints({"a": figure}, {"a": 1_000}) == said


def test_cases_that_only_one_side_has_are_named() -> None:
    said = "is counted or accepted, not both"
    assert complaints({"new": 1, "a": 1}, {"a": 1, "old": 1}) == [f"new: {said}", f"old: {said}"]
