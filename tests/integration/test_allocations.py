"""How often an inference of the demo asks the C library for memory: never, once one like it has run."""

from dataclasses import replace
from pathlib import Path
from platform import machine
from typing import Final

import pytest
from programs import compile_c
from x64_instructions import requests_of

from native_builds import built
from ortrim.base.command import run
from ortrim.base.files import shipped_folder
from ortrim.devices.host import ENVIRONMENT
from ortrim.parity.runner import Repetition, RunRequest, read_output, runner_words

pytestmark = [
    pytest.mark.build,
    pytest.mark.network,
    pytest.mark.skipif(machine() != "x86_64", reason="a build for this machine is none for x86-64"),
]

DEMO: Final = Path(__file__).parents[2] / "buildspecs" / "silero-vad.toml"
COUNTED: Final = """
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
static int64_t calls;
void *malloc(size_t size) { return calls++, __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return calls++, __libc_calloc(count, size); }
void *realloc(void *memory, size_t size) { return calls++, __libc_realloc(memory, size); }
void *memalign(size_t alignment, size_t size) { return calls++, __libc_memalign(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void **memory, size_t alignment, size_t size) {
  return (*memory = memalign(alignment, size)) ? 0 : ENOMEM;
}
int64_t instructions_now(void) { return calls; }
"""
"""In place of the runner's count of instructions; the library's calls are bound to those of the program itself."""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunRequest, RunRequest]:
    """Build the demo, and a runner that says how many calls an inference took where others say instructions."""
    folder = tmp_path_factory.mktemp("allocations")
    build = built(DEMO, folder / "output")
    (requests,) = requests_of(build)
    counted, measure = folder / "counted.c", folder / "measure.o"
    counted.write_text(COUNTED)
    sources = {file.name: file for file in shipped_folder("runner").glob("*.c")}
    compile_c("-Dinstructions_now=of_the_processor", "-c", sources.pop("measure.c"), "-o", measure)
    libraries = ("-ldl", "-lpthread", "-lm", "-rdynamic")
    compile_c(f"-I{build.headers}", *sources.values(), counted, measure, "-o", folder / "runner", *libraries)
    ours, wheels = (replace(request, runner=folder / "runner") for request in requests)
    return ours, wheels


def calls(request: RunRequest) -> list[int]:
    """Return the calls of each inference but those that come first."""
    wanted = replace(request, repetition=Repetition(runs=20, warmup=3, seconds=30))
    output = read_output(run(runner_words(wanted), environment=ENVIRONMENT), wanted)
    return [number for case in output.cases for number in case.instructions or (-1,)]


def test_an_inference_like_one_before_it_allocates_nothing(demo: tuple[RunRequest, RunRequest]) -> None:
    """In whatever case, one after the other in one session; what the application does between them is not counted."""
    ours, wheels = demo
    counted = calls(ours)
    assert len(counted) == 20 * len(ours.cases)
    assert set(counted) == {0}
    assert min(calls(wheels)) > 100, "the count sees what the official library asks for"
