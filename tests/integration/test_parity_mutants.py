"""A real library and its model, damaged in many places: parity notices all damage that matters."""

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from builds import find_build  # noqa: E402 - the path comes first
from parity.measure import Bench, subjects_in  # noqa: E402
from parity.proof import CODE, CONSTANTS, ROUNDING, Mutant, Patient  # noqa: E402

from ortrim.base.command import run  # noqa: E402
from ortrim.base.console import Console  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.build, pytest.mark.network, pytest.mark.needs("qemu-x86_64-static")]
SPEC = BENCHMARKS.parent / "buildspecs" / "silero-vad.toml"
BUILD_SECONDS = 2400.0
CONDITIONS = 1e-4
"""Largest difference, as a share of an output's largest magnitude, by conditions: benchmarks/results/parity.md."""


@pytest.fixture(scope="module")
def mutants(tmp_path_factory: pytest.TempPathFactory) -> tuple[Mutant, ...]:
    folder = tmp_path_factory.mktemp("mutants")
    words: tuple[str | Path, ...] = ("build", "-s", SPEC, "-t", "linux-x64", "-o", folder / "output")
    done = run((sys.executable, "-m", "invoke", *words), cwd=SPEC.parents[1], timeout_seconds=BUILD_SECONDS)
    assert done.returncode == 0, done.stderr
    built = find_build(SPEC, Console())
    bench = Bench(builds=(built,), folder=folder, console=Console())
    ((subject, session),) = subjects_in(built)
    patient = Patient(
        subject=subject,
        library=built.library,
        link_map=built.link_map,
        runner=built.runner,
        session=session,
        folder=folder / "damaged",
        preloads={mode: bench.preload(mode) for mode in ROUNDING},
    )
    return tuple(patient.mutants(100, 10))


def test_all_damage_that_matters_is_noticed(mutants: tuple[Mutant, ...]) -> None:
    """No mutant changes an output by more than other processors do and passes."""
    missed = [each for each in mutants if each.change > CONDITIONS and not each.caught]
    assert missed == []


def test_damage_of_every_kind_was_done(mutants: tuple[Mutant, ...]) -> None:
    kinds = {each.kind for each in mutants if each.outcome == "differs" and each.change > CONDITIONS}
    assert kinds >= {CONSTANTS, "weights by 0.1 % up or down", "weights by 0.1 % up", "two channels swapped"}
    assert sum(each.kind == CODE and each.outcome != "same" for each in mutants) >= 50
