"""Files of packages that are written from templates."""

from collections.abc import Mapping
from importlib.resources import files


def rendered(template: str, values: Mapping[str, object]) -> bytes:
    """Return a template of `data/package` with its values filled in; what is XML is escaped."""
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 - slow to import, and needed only when packaging

    text = (files("ortrim") / "data" / "package" / template).read_text(encoding="utf-8")
    environment = Environment(
        undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True, autoescape=template.endswith(".xml.j2")
    )
    return environment.from_string(text).render(values).encode()
