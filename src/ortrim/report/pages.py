"""The frame of every page: one file that asks the network for nothing, with every name in it escaped."""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from ortrim.console import counted
from ortrim.report.figures import share_text
from ortrim.report.lines import SYMBOLS


def rendered(template: str, **values: Any) -> str:
    """Return a page of `data/report` filled in."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("ortrim", "data/report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(counted=counted, share=share_text)
    environment.globals.update(symbol=SYMBOLS)
    return environment
