"""How often an inference asks the C library for memory: never, once one like it has run."""

from dataclasses import replace
from pathlib import Path
from platform import machine
from typing import Final

import onnx
import pytest
from instructions import requests_of
from programs import compile_c

from native_builds import built
from ortrim.base.command import run
from ortrim.base.files import shipped_folder
from ortrim.devices.host import ENVIRONMENT
from ortrim.parity.runner import Repetition, RunRequest, read_output, runner_words
from small_decoders import small_decoder

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


DECODER: Final = """
name = "decoder"

[[models]]
name = "decoder"
path = "decoder.onnx"

[[models.cases]]
name = "token"
dimensions = { batch_size = 1, sequence_length = 1, past_sequence_length = 7, total_sequence_length = 8 }
inputs = { input_ids = { high = 199 }, attention_mask = { value = 1 } }

[[models.cases]]
name = "prompt"
dimensions = { batch_size = 1, sequence_length = 40, past_sequence_length = 0, total_sequence_length = 40 }
inputs = { input_ids = { high = 199 }, attention_mask = { value = 1 } }

[[targets]]
id = "linux-x64"
glibc = "2.28"
"""
"""Each token of a conversation is one inference, and products with weights of 4 bits reserve memory in each."""


@pytest.fixture
def decoder(tmp_path: Path) -> Path:
    onnx.save(small_decoder(), tmp_path / "decoder.onnx")
    spec = tmp_path / "decoder.toml"
    spec.write_text(DECODER)
    return spec


def counted(spec: Path, folder: Path) -> tuple[RunRequest, RunRequest]:
    """Build a model, and a runner that says how many calls an inference took where others say instructions."""
    build = built(spec, folder / "output")
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


def test_an_inference_like_one_before_it_allocates_nothing(tmp_path: Path) -> None:
    """In whatever case, one after the other in one session; what the application does between them is not counted."""
    assert_nothing_allocated(DEMO, tmp_path)


def test_the_next_token_of_a_language_model_allocates_nothing(decoder: Path, tmp_path: Path) -> None:
    assert_nothing_allocated(decoder, tmp_path)


def assert_nothing_allocated(spec: Path, folder: Path) -> None:
    ours, wheels = counted(spec, folder)
    numbers = calls(ours)
    assert len(numbers) == 20 * len(ours.cases)
    assert set(numbers) == {0}
    assert min(calls(wheels)) > 100, "the count sees what the official library asks for"
