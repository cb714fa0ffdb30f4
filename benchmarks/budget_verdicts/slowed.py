"""A library that takes 5 % more: of the time for each inference, of the time to load a model, and of memory."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from programs import compile_c

from ortrim.devices.device import ProgramDevice
from ortrim.parity.measurements import median, quantile
from ortrim.parity.runner import RunnerOutput
from ortrim.verify.judge import LOAD, P50, PEAK, SHORT
from ortrim.verify.measure import ONCE, DeviceRuns, Measurement, Measuring, Rounds, carry_out

SOURCE: Final = Path(__file__).with_suffix(".c")
WORSE: Final = 1.05
MUCH: Final = 2000.0
"""Units of work that take tens of microseconds."""
CALIBRATION_ROUNDS: Final = 60
MEMORY_ROUNDS: Final = 200
TOLERATED: Final = 0.004
"""How far the library's median ratio may be from `WORSE`; a first guess made beside other work was 1.026."""
CORRECTIONS: Final = 6


def figures_of(output: RunnerOutput, share: float = 0.5) -> dict[str, float]:
    """Return what budgets are about of one process: by `PEAK`, `LOAD` and, for a quantile of each case, its name."""
    cases = {case.name: quantile(sorted(case.inference_ms), share) for case in output.cases}
    return {PEAK: output.memory.peak_rss_bytes, LOAD: output.own_load_ms, **cases}


def ratios_of(rounds: Rounds) -> dict[str, tuple[float, ...]]:
    found: dict[str, list[float]] = {}
    for turn in (*rounds.rounds, *rounds.shorter):
        assert turn.baseline
        ours, baseline = figures_of(turn.ours), figures_of(turn.baseline)
        for name in ours:
            if turn.is_for(name if name in {PEAK, LOAD} else P50):
                found.setdefault(name, []).append(ours[name] / baseline[name])
    return {name: tuple(ratios) for name, ratios in found.items()}


def measured(device: ProgramDevice, plan: Measurement, library: Path) -> Rounds:
    """Run all rounds of a measurement with another library in the place of ours."""
    measuring = Measuring(replace(plan, ours=replace(plan.ours, library=library)))
    carry_out(device, measuring.runs(), DeviceRuns(plan.rounds, lambda *_: None))
    return measuring.rounds


def slowed_library(device: ProgramDevice, plan: Measurement, headers: Path, folder: Path) -> Path:
    """Return a library that takes 5 % more than that of the plan, found by running two others beside the baseline."""
    once = plan.repeated(ONCE, MEMORY_ROUNDS)
    plan = plan.repeated(SHORT, CALIBRATION_ROUNDS)
    names = [case.name for case in plan.ours.cases]
    nothing = dict.fromkeys((*names, LOAD, PEAK), 0.0)
    much = nothing | dict.fromkeys(names, MUCH)
    trials = [
        _compiled(plan, each, headers, folder / f"trial-{number}.so") for number, each in enumerate((nothing, much))
    ]
    idle, busy = (measured(device, plan, library).rounds for library in trials)
    usual = _typical([turn.baseline for turn in (*idle, *busy) if turn.baseline])
    without, with_much = (_typical([turn.ours for turn in rounds]) for rounds in (idle, busy))
    memory = ratios_of(measured(device, once, trials[0]))[PEAK]
    unit_ms = median((with_much[name] - without[name]) / MUCH for name in names)
    wanted = {name: max(0.0, WORSE * usual[name] - without[name]) / unit_ms for name in names}
    wanted |= {LOAD: (WORSE - 1) * usual[LOAD] / unit_ms, PEAK: max(0.0, (WORSE - median(memory)) * usual[PEAK])}
    for _ in range(CORRECTIONS):
        library = _compiled(plan, wanted, headers, folder / "slowed.so")
        found = ratios_of(measured(device, plan, library))
        worse = {name: median(found[name]) - 1 for name in (*names, LOAD)}
        if all(abs(worse[name] - (WORSE - 1)) <= TOLERATED for name in names):
            return library
        # what a unit of work takes was found beside other work: what the units came to is a better measure of it
        wanted |= {name: wanted[name] * min(3.0, (WORSE - 1) / max(ratio, 0.001)) for name, ratio in worse.items()}
    words = ", ".join(f"{name} {1 + ratio:.4f}" for name, ratio in worse.items())
    raise SystemExit(f"no library is {WORSE} here for long: the last one had {words}")


def _typical(outputs: Sequence[RunnerOutput]) -> dict[str, float]:
    """Return the lower quartile of each time, and the median of memory, by the names of `figures_of`."""
    figures = [figures_of(output, 0.25) for output in outputs]
    return {
        name: quantile(sorted(each[name] for each in figures), 0.5 if name == PEAK else 0.25) for name in figures[0]
    }


def _compiled(plan: Measurement, amounts: dict[str, float], headers: Path, library: Path) -> Path:
    """Compile a library with so many units of work or bytes, by the names of `figures_of`."""
    sizes: dict[int, list[float]] = {}
    for case in plan.ours.cases:
        sizes.setdefault(np.load(case.folder / "input_000.npy").size, []).append(amounts[case.name])
    work = ",".join(f"{{{size},{round(median(each))}}}" for size, each in sizes.items())
    real = str(plan.ours.library.absolute()).replace("\\", "\\\\").replace('"', '\\"')
    named = {"REAL": f'"{real}"', "WORK": work, "LOAD_WORK": round(amounts[LOAD]), "MEMORY": round(amounts[PEAK])}
    defined = (f"-D{name}={value}" for name, value in named.items())
    compile_c("-shared", "-fPIC", f"-I{headers}", *defined, SOURCE, "-o", library, "-ldl")
    return library
