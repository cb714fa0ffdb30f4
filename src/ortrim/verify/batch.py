"""All that one verification runs on a device, known beforehand: for devices that run everything in one go."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from ortrim.parity.runner import RunRequest
from ortrim.verify.measure import ONCE, TRIAL, Measurement, request_of

SOMEWHERE: Final = Path("outputs")
"""Where outputs go is said when they are requested."""


def batch_requests(
    plans: tuple[Measurement, ...], timed: tuple[Measurement, ...], *, trace: bool
) -> tuple[RunRequest, ...]:
    """Return what `verify_on` runs on a device that is not this machine, in its order.

    That is each model of `plans` once for its outputs, the baseline of each of `timed` once to see whether it runs,
    the rounds of each, and each model's profile when `trace` is asked for. A baseline that does not run is found out
    too late for the rounds to leave it out.
    """
    proofs = tuple(_proof(plan) for plan in plans)
    profiles = tuple(replace(proof, trace=True) for proof in proofs) if trace else ()
    rounds = tuple(request for plan in timed for request in _rounds(plan))
    return (*proofs, *_trials(timed), *rounds, *profiles)


def _proof(plan: Measurement) -> RunRequest:
    request = request_of(replace(plan, repetition=ONCE), plan.library, plan.ort_model)
    return replace(request, outputs=SOMEWHERE)


def _trials(timed: tuple[Measurement, ...]) -> tuple[RunRequest, ...]:
    return tuple(
        request_of(replace(plan, repetition=TRIAL), plan.baseline_library, plan.onnx_model)
        for plan in timed
        if plan.baseline_library is not None
    )


def _rounds(plan: Measurement) -> Iterator[RunRequest]:
    """Yield the requests of all rounds; which library goes first alternates, as in `measure`."""
    ours = request_of(plan, plan.library, plan.ort_model)
    if plan.baseline_library is None:
        yield from (ours for _ in range(plan.rounds))
        return
    baseline = request_of(plan, plan.baseline_library, plan.onnx_model)
    for number in range(plan.rounds):
        yield from (ours, baseline) if number % 2 == 0 else (baseline, ours)
