"""A point as the settings of a session."""

from dataclasses import replace
from typing import Final

from ortrim.core.bench import BenchPoint
from ortrim.core.sessions import DIRECTLY, IN_PLACE, SessionSettings, settings_of

CONVERTED_ALONE: Final = (DIRECTLY, IN_PLACE)
"""Entries that say nothing to a model in ONNX format, whose bytes are always copied."""


def settings_at(point: BenchPoint, *, style: str, aligned: bool, onnx: bool) -> SessionSettings:
    """Return the settings of a point for a converted model, or for one in ONNX format."""
    settings = settings_of(point.session, style=style, aligned=aligned)
    if not onnx:
        return settings
    entries = tuple(entry for entry in settings.configuration if entry not in CONVERTED_ALONE)
    return replace(settings, optimization_level=point.level, configuration=entries)
