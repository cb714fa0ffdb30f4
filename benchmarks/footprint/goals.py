"""What issue 7 asks, as data: of which profile, of which models, and how much at most. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from footprint.contenders import DEFAULT
from footprint.summary import Summary
from ortrim.parity.measurements import Interval

SIZE: Final = "size"


@dataclass(frozen=True, kw_only=True)
class Goal:
    """One goal; `asked` says of which contenders and models, with the figure that is `measured` of them."""

    text: str
    most: float
    asked: Callable[[Summary], bool]
    measured: Callable[[Summary], Interval | float | None]

    def is_met(self, summary: Summary) -> bool | None:
        """Whether a summary meets the goal; None where the figure could not be taken."""
        figure = self.measured(summary)
        middle = figure.median if isinstance(figure, Interval) else figure
        return None if middle is None else middle <= self.most


def _default(summary: Summary) -> bool:
    return summary.contender == DEFAULT


def _packed(summary: Summary) -> bool:
    return summary.library is not None and summary.library.packed


def _bytes(summary: Summary) -> float | None:
    return summary.library.file_bytes if summary.library else None


def _at_default(summary: Summary) -> Interval | None:
    return summary.p50.of_default


GOALS: Final = (
    Goal(text="library, bytes", most=1.25e6, asked=lambda one: _default(one) and not _packed(one), measured=_bytes),
    Goal(
        text="library with packed relocations, bytes",
        most=1.15e6,
        asked=lambda one: _default(one) and _packed(one),
        measured=_bytes,
    ),
    Goal(
        text="library by profile size, bytes",
        most=0.95e6,
        asked=lambda one: one.contender == SIZE,
        measured=_bytes,
    ),
    Goal(text="library of upstream's", most=0.68, asked=_default, measured=lambda one: one.of_upstream),
    Goal(
        text="p50 of the wheel's at the same level",
        most=1.0,
        asked=_default,
        measured=lambda one: one.p50.of_level,
    ),
    Goal(
        text="p50 of the wheel's at its default level, without convolutions",
        most=1.0,
        asked=lambda one: _default(one) and one.kind is not None and not one.kind.convolutions,
        measured=_at_default,
    ),
    Goal(
        text="p50 of the wheel's at its default level, convolutions with a layout named",
        most=1.05,
        asked=lambda one: _default(one) and one.kind is not None and one.kind.convolutions and one.kind.layout,
        measured=_at_default,
    ),
    Goal(text="peak RSS of the wheel's", most=0.33, asked=_default, measured=lambda one: one.peak_rss.of_default),
    Goal(text="load time of the wheel's", most=0.45, asked=_default, measured=lambda one: one.load.of_default),
)
"""At its default level the wheel lays convolutions out: models of them are asked there when a layout is named."""
