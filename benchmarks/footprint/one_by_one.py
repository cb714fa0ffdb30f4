"""Specs measured one after the other, while nothing else is measured on the machine."""

from collections.abc import Callable, Iterable
from pathlib import Path

from build_time.measure import alone

from ortrim.errors import Diagnostic, DiagnosticGroup


def one_by_one(specs: Iterable[Path], measure: Callable[[Path], None], show: Callable[[], None]) -> None:
    """Measure each spec, and `show` what there is in the end, interrupted or not."""
    failures = []
    with alone():
        try:
            for spec in specs:
                try:
                    measure(spec)
                except Diagnostic as failure:
                    failures.append(failure)
        finally:
            show()
    if failures:
        raise DiagnosticGroup(tuple(failures))
