"""A point as the settings that the runner is given."""

from bench_samples import BASE, FULL_BASE
from ortrim.bench.points import settings_at, with_value
from ortrim.buildspec.buildspec import DIRECTLY, IN_PLACE, NO_PREPACKING


def test_a_converted_model_has_what_its_package_has() -> None:
    settings = settings_at(BASE, style="fixed", reads_in_place=True, onnx=False)
    assert (settings.load, settings.optimization_level) == ("map", "none")
    assert settings.configuration == (DIRECTLY, IN_PLACE)


def test_a_model_in_onnx_format_has_its_level_and_no_word_about_bytes() -> None:
    point = with_value(with_value(FULL_BASE, "level", "basic"), "prepacking", value=False)
    settings = settings_at(with_value(point, "load", "map"), style="fixed", reads_in_place=True, onnx=True)
    assert (settings.load, settings.optimization_level) == ("map", "basic")
    assert settings.configuration == (NO_PREPACKING,)
