"""What came of the measurement, and the table of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

MEGABYTE: Final = 1e6
HEAD: Final = (
    "| model | file | form | peak by lifetime | memory of a run | measured | off by |",
    "|---|---|---|---|---|---|---|",
)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One model in one form: what `invoke cost` says and what a process grew by, in bytes."""

    name: str
    form: str
    file_bytes: int
    lifetime_bytes: int
    predicted_bytes: int
    measured_bytes: int

    @property
    def off(self) -> float:
        """The prediction's distance from what was measured, as a share of that."""
        return self.predicted_bytes / self.measured_bytes - 1


@dataclass(frozen=True, kw_only=True)
class Record:
    """All rows, with the version of ONNX Runtime that ran."""

    schema: Literal["ortrim-activation-memory/1"] = "ortrim-activation-memory/1"
    ort_version: str
    rows: tuple[Row, ...]


def table(rows: Iterable[Row]) -> str:
    """Return a table in Markdown; sizes in millions of bytes."""
    lines = (
        f"| {row.name} | {_mb(row.file_bytes)} | {row.form} | {_mb(row.lifetime_bytes)} | {_mb(row.predicted_bytes)} "
        f"| {_mb(row.measured_bytes)} | {row.off:+.1%} |"
        for row in rows
    )
    return "\n".join((*HEAD, *lines)) + "\n"


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / MEGABYTE:.1f}"
