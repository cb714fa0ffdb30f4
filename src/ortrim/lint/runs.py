"""Rules about how a model fares in the full runtime."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ortrim.core.graph_facts import dynamic_dimensions
from ortrim.lint import versions
from ortrim.lint.facts import LintFacts, RunFacts
from ortrim.lint.findings import Shown


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The sizes at which one dimension worked and failed, and the words of a failure."""

    worked: tuple[int, ...]
    failed: tuple[int, ...]
    words: str


def does_not_load(facts: LintFacts) -> Iterator[Shown]:
    """Find a model that the full runtime refuses for another reason than a kernel, or than what its header says."""
    told = facts.kernels is not None and facts.kernels.missing is not None
    told = told or any((*versions.opset(facts), *versions.ir_version(facts)))
    if facts.run and facts.run.load_failure and not told:
        yield Shown(place="model", words=facts.run.load_failure)


def crashes(facts: LintFacts) -> Iterator[Shown]:
    """Find a model with which the full runtime crashes or does not come to an end."""
    if facts.run and facts.run.crash:
        yield Shown(place="model", words=facts.run.crash)


def does_not_run(facts: LintFacts) -> Iterator[Shown]:
    """Find a model of fixed sizes that does not run."""
    for trial in facts.run.trials if facts.run else ():
        if not trial.sizes and trial.failure:
            yield Shown(place="model", words=trial.failure)


def no_size_runs(facts: LintFacts) -> Iterator[Shown]:
    """Find a model of dynamic sizes that ran at none of those that were tried."""
    trials = [trial for trial in facts.run.trials if trial.sizes] if facts.run else []
    if trials and all(trial.failure for trial in trials):
        sizes = ", ".join(f"{name} = {size}" for name, size in trials[-1].sizes)
        words = f"none of {len(trials)} choices of sizes ran; with {sizes}: {trials[-1].failure}"
        yield Shown(place="model", words=words)


def baked_in_size(facts: LintFacts) -> Iterator[Shown]:
    """Find dynamic dimensions that run at a single size."""
    for name, outcome in _outcomes(facts).items():
        if len(outcome.worked) == 1 and len(outcome.failed) > 2:
            words = f"'{name}' runs at {outcome.worked[0]} alone, not at {_listed(outcome.failed)}: {outcome.words}"
            yield Shown(place=name, words=words)


def limited_size(facts: LintFacts) -> Iterator[Shown]:
    """Find dynamic dimensions that run at several sizes but not at all."""
    for name, outcome in _outcomes(facts).items():
        if len(outcome.worked) > 1 and outcome.failed:
            words = f"'{name}' runs at {_listed(outcome.worked)}, not at {_listed(outcome.failed)}: {outcome.words}"
            yield Shown(place=name, words=words)


def _outcomes(facts: LintFacts) -> Mapping[str, Outcome]:
    run = facts.run
    base = next((dict(trial.sizes) for trial in run.trials if trial.sizes and not trial.failure), None) if run else None
    if run is None or base is None:
        return {}
    names = dynamic_dimensions(facts.graph.model.inputs)
    return {name: _outcome(run, base, name) for name in names if name in base}


def _outcome(run: RunFacts, base: Mapping[str, int], name: str) -> Outcome:
    """Gather the runs in which a dimension was changed, alone or with all others: names for one size may differ."""
    worked: set[int] = set()
    failed: dict[int, str] = {}
    for trial in run.trials:
        sizes = dict(trial.sizes)
        others = {key: size for key, size in sizes.items() if key != name}
        if name not in sizes or not (_equal(sizes) or all(base.get(key) == size for key, size in others.items())):
            continue
        if trial.failure:
            failed[sizes[name]] = trial.failure
        else:
            worked.add(sizes[name])
    bad = sorted(size for size in failed if size not in worked)
    return Outcome(worked=tuple(sorted(worked)), failed=tuple(bad), words=failed[bad[-1]] if bad else "")


def _equal(sizes: Mapping[str, int]) -> bool:
    return len(set(sizes.values())) == 1


def _listed(sizes: tuple[int, ...]) -> str:
    return ", ".join(map(str, sizes))
