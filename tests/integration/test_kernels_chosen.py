"""Which kernels an old and a new processor take, when `benchmarks/kernels.toml` was built here for linux-arm64."""

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from kernels_chosen import DEFAULT_SPEC, TARGET, Built, Chosen, chosen, find_build, kernels  # noqa: E402 - the path

pytestmark = [pytest.mark.build, pytest.mark.network, pytest.mark.needs("apt-get", "qemu-aarch64-static")]
OLD, NEW = "cortex-a53", "cortex-a76"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Return the build, if there is one."""
    found = find_build(DEFAULT_SPEC, tmp_path_factory.mktemp("artifacts"))
    if found is None:
        pytest.skip(f"it was not built here: invoke build -s benchmarks/{DEFAULT_SPEC.name} -t {TARGET}")
    return found


@pytest.fixture(scope="module")
def found(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Chosen:
    """Run the models on both processors."""
    return chosen(built, tmp_path_factory.mktemp("logs"))


def test_dot_products_are_for_the_new_processor_alone(found: Chosen, built: Built) -> None:
    """A quantized model takes them where they are, and only there; a kernel is named for them."""
    assert found["quantized"][NEW].dot_products > 0
    assert found["quantized"][OLD].dot_products == 0
    names = {cpu: set(kernels(found["quantized"][cpu], built.symbols)) for cpu in (OLD, NEW)}
    dots = {name for name in names[NEW] if "dot" in name.lower()}
    assert dots
    assert not dots & names[OLD]
    assert any("Neon" in name for name in names[OLD])


def test_float32_is_the_same_on_both(found: Chosen, built: Built) -> None:
    """There the same kernels run on both, NEON's, and no dot products."""
    names = [set(kernels(found["float32"][cpu], built.symbols)) for cpu in (OLD, NEW)]
    assert names[0] == names[1]
    assert any("Sgemm" in name for name in names[0])
    assert [found["float32"][cpu].dot_products for cpu in (OLD, NEW)] == [0, 0]
