"""The pins of other inference engines, which `compare` holds models against."""

from ortrim.pins.shipped import pin_text


def engine_requirements(name: str) -> str:
    """Return the text of an engine's requirements file, or of its converter's; every line is pinned with hashes."""
    text = pin_text(f"requirements/engine-{name}.txt")
    assert text is not None
    return text
