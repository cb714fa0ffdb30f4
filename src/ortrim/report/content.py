"""What a report says of the library and the package, in words and in order; the forms only lay it out.

With `device_content.py`, `lines.py`, `side_by_side.py` and the charts it is all that reads a `VerifyReport`. Every name
that comes from a model, a library or a machine passes through `printable` there.
"""

import math
from dataclasses import dataclass

from ortrim.console import counted, duration_text, printable
from ortrim.core.measurements import Verdict
from ortrim.core.reports import Artifact, VerifyReport
from ortrim.report.figures import NONE, bytes_text, share_text
from ortrim.report.names import name_text


@dataclass(frozen=True, kw_only=True)
class Part:
    """One component of the library, one symbol: its name, size and share of the whole."""

    name: str
    component: str
    size: str
    share: float
    share_text: str


def components(report: VerifyReport) -> tuple[Part, ...]:
    """Return the library's components, largest first."""
    found = sorted(report.size.components, key=lambda component: (-component.size_bytes, component.component))
    return tuple(_part(report, name_text(part.component), "", part.size_bytes) for part in found)


def symbols(report: VerifyReport) -> tuple[Part, ...]:
    """Return the library's largest symbols, largest first."""
    found = sorted(report.size.largest_symbols, key=lambda symbol: (-symbol.size_bytes, symbol.name))
    return tuple(_part(report, symbol.name, symbol.component, symbol.size_bytes) for symbol in found)


def gates(report: VerifyReport) -> tuple[tuple[str, Verdict, str], ...]:
    """Return each gate's name, verdict and detail."""
    return tuple((printable(gate.name), gate.verdict, printable(gate.detail)) for gate in report.gates)


def package_facts(report: VerifyReport) -> tuple[tuple[str, str], ...]:
    """Return what else is known of package and library, as pairs of a label and a value."""
    library = report.library
    pairs = (
        ("package", f"{report.package} ({bytes_text(report.package_bytes)})"),
        ("library", f"{library.soname or NONE}, {library.machine}"),
        ("needs", ", ".join(library.needed) or "nothing"),
        ("symbol versions", ", ".join(library.symbol_versions) or "none"),
        ("exports", ", ".join(library.exported) or "nothing"),
        ("load alignment", counted(library.load_alignment, "byte")),
        *(("file", _digests(artifact)) for artifact in report.artifacts),
        *(
            ("model", f"{model.name}: SHA-256 {model.sha256}, made of {model.original_sha256}")
            for model in report.models
        ),
    )
    return tuple((label, printable(value)) for label, value in pairs)


def build_facts(report: VerifyReport) -> tuple[tuple[str, str], ...]:
    """Return how the library came to be, as pairs of a label and a value."""
    cache, units = report.compiler_cache, report.units
    pairs = (
        ("built in", duration_text(report.build_seconds) if math.isfinite(report.build_seconds) else NONE),
        ("compiler cache", f"{cache.hits} of {counted(cache.requests, 'compilation')}" if cache else "not used"),
        ("compiled", f"{units.compiled} of {counted(units.total, 'file')}" if units else "every file"),
        ("plan", report.plan_digest),
        ("made by", f"ortrim {report.ortrim_version}"),
        *(("damaged-cache", damage) for damage in report.damaged_cache),
    )
    return tuple((label, printable(value)) for label, value in pairs)


def _digests(artifact: Artifact) -> str:
    build_id = f", build-id {artifact.build_id}" if artifact.build_id else ""
    return f"{artifact.name}: SHA-256 {artifact.sha256}{build_id}"


def _part(report: VerifyReport, name: str, component: str, size_bytes: int) -> Part:
    whole = report.size.file_bytes
    share = size_bytes / whole if whole > 0 else 0.0
    return Part(
        name=printable(name),
        component=name_text(component),
        size=bytes_text(size_bytes),
        share=share,
        share_text=share_text(share) if whole > 0 else NONE,
    )
