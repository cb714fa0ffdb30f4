"""Builds of a history, made up."""

from dataclasses import replace
from typing import Any, Final

from ortrim.binaries.elf import ComponentSize
from ortrim.report.history import BuildEntry, Measure

ENTRY: Final = BuildEntry(
    recorded_at="2026-11-21T12:00:00+00:00",
    spec="silero-vad",
    target="linux-x64",
    profile="balanced",
    ort_version="1.21.0",
    ortrim_version="0.1.0",
    plan_digest="4da441ab049f" + "0" * 52,
    verdict="pass",
    package_bytes=2_110_000,
    file_bytes=1_702_856,
    loadable_bytes=1_716_072,
    compressed_bytes=645_000,
    build_seconds=213.6,
    components=(
        ComponentSize(component="framework", size_bytes=376_000),
        ComponentSize(component="mlas", size_bytes=223_958),
        ComponentSize(component="libc++", size_bytes=194_946),
    ),
    measures=(
        Measure(device="host", model="silero", case="", measure="load", unit="ms", value=8.77),
        Measure(device="host", model="silero", case="", measure="peak memory", unit="bytes", value=10_000_000.0),
        Measure(device="host", model="silero", case="short", measure="p50", unit="ms", value=0.127),
        Measure(device="host", model="silero", case="long", measure="p50", unit="ms", value=0.322),
        Measure(device="qemu-user", model="silero", case="short", measure="p50", unit="ms", value=4.2),
    ),
)


def sample_entry(**changes: Any) -> BuildEntry:
    return replace(ENTRY, **changes)
