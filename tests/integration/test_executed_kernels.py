"""Which kernels an old and a new processor take, of a library with products and convolutions of 8 bits."""

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from builds import Built, find_build  # noqa: E402 - the path
from executed_code import code_symbols  # noqa: E402
from kernels_chosen import DEFAULT_SPEC, TARGET, Chosen, chosen, kernels  # noqa: E402

from ortrim.base.command import run  # noqa: E402
from ortrim.base.console import Console  # noqa: E402
from ortrim.binaries.link_map import MapSymbol  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.build,
    pytest.mark.network,
    pytest.mark.needs("apt-get", "qemu-aarch64-static"),
]
BUILD_SECONDS = 2400.0
OLD, NEW = "cortex-a53", "cortex-a76"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("kernels")
    devices = [word for cpu in (OLD, NEW) for word in ("--device", f"qemu-user:{cpu}")]
    words: tuple[str | Path, ...] = ("build", "-s", DEFAULT_SPEC, "-t", TARGET, *devices, "-o", folder / "output")
    done = run((sys.executable, "-m", "invoke", *words), cwd=BENCHMARKS.parent, timeout_seconds=BUILD_SECONDS)
    assert done.returncode == 0, done.stderr
    return find_build(DEFAULT_SPEC, Console(), TARGET)


@pytest.fixture(scope="module")
def symbols(built: Built) -> tuple[MapSymbol, ...]:
    return code_symbols(built.link_map)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("outputs")


@pytest.fixture(scope="module")
def found(built: Built, scratch: Path) -> Chosen:
    return chosen(built, scratch)


def test_dot_products_are_for_the_new_processor_alone(found: Chosen, symbols: tuple[MapSymbol, ...]) -> None:
    """A quantized model takes them where they are, and only there; a kernel is named for them."""
    assert found["quantized"][NEW].dot_products > 0
    assert found["quantized"][OLD].dot_products == 0
    names = {cpu: set(kernels(found["quantized"][cpu], symbols)) for cpu in (OLD, NEW)}
    dots = {name for name in names[NEW] if "dot" in name.lower()}
    assert dots
    assert not dots & names[OLD]
    assert any("Neon" in name for name in names[OLD])


def test_float32_is_the_same_on_both(found: Chosen, symbols: tuple[MapSymbol, ...]) -> None:
    """There the same kernels run on both, ortrim's own, and no dot products."""
    names = [set(kernels(found["float32"][cpu], symbols)) for cpu in (OLD, NEW)]
    assert names[0] == names[1]
    assert {"ConvolveTiles<3>", "Blocked::Compute", "MultiplyRows"} <= names[0]
    assert [found["float32"][cpu].dot_products for cpu in (OLD, NEW)] == [0, 0]


def test_both_kinds_of_kernels_compute_the_same(found: Chosen, scratch: Path) -> None:
    """Int8 GEMM is exact with every kernel, so that results are equal to the last bit."""
    outputs = [(scratch / f"quantized-{cpu}" / "noise" / "output_000.npy").read_bytes() for cpu in (OLD, NEW)]
    assert outputs[0] == outputs[1]
