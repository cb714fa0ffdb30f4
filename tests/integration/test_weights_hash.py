"""The hash by which packed weights are found again, with upstream's own header."""

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import onnxruntime
import pytest

from ortrim.base.command import run
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.pins.runtime import runtime_pins
from ortrim.pins.shipped import tool_requirements
from ortrim.sources.sources import fetch_sources

pytestmark = [pytest.mark.build, pytest.mark.network]

HashOf = Callable[[bytes, int, int], int]
CORE: Final = "onnxruntime/onnxruntime"
SOURCE: Final = """\
#include "weights_hash.h"
extern "C" uint64_t hash_of(const void* weights, size_t length, uint32_t seed) {
  uint32_t result[4];
  MurmurHash3::x86_128(weights, length, seed, result);
  return result[0] | uint64_t{result[1]} << 32;
}
"""


@pytest.fixture(scope="module")
def hash_of(tmp_path_factory: pytest.TempPathFactory) -> HashOf:
    folder: Path = tmp_path_factory.mktemp("weights-hash")
    core = fetch_sources(runtime_pins(onnxruntime.__version__), "auto").folder / CORE
    zig = packages_folder("tools", tool_requirements()) / "ziglang" / "zig"
    (folder / "hash.cc").write_text(SOURCE)
    sources = (folder / "hash.cc", core / "core" / "framework" / "murmurhash3.cc")
    includes = (f"-I{shipped_folder('cmake')}", f"-I{core}", f"-I{core.parent}/include/onnxruntime")
    words = ("-shared", "-O2", "-std=c++17", *includes, "-o", folder / "hash.so")
    done = run((zig, "c++", *words, *sources), timeout_seconds=300)
    assert done.returncode == 0, done.stderr[-3000:]
    function = ctypes.CDLL(str(folder / "hash.so")).hash_of
    function.argtypes, function.restype = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint32), ctypes.c_uint64
    return function


def test_weights_that_differ_in_one_sign_or_in_two_have_other_hashes(hash_of: HashOf) -> None:
    """So do those of another length and those behind other weights; the same ones at another place have the same."""
    rng = np.random.default_rng(0)
    weights = rng.standard_normal(203, dtype=np.float32)
    changed = [weights]
    for first in range(weights.size):
        for second in range(first, weights.size):
            signs = np.ones_like(weights)
            signs[[first, second]] = -1
            changed.append(weights * signs)
    texts = [each.tobytes() for each in changed]
    texts += [texts[0][:length] for length in range(len(texts[0]))]
    hashes = {hash_of(text, len(text), 0) for text in texts}
    assert len(hashes) == len(texts)
    assert not hashes & {hash_of(text, len(text), 1) for text in texts}
    assert hash_of(bytes(bytearray(texts[0])), len(texts[0]), 0) in hashes
