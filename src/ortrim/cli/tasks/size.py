"""`invoke size`: where the bytes of a library are."""

import json as json_module
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from invoke.context import Context

from ortrim.analysis.size.content import TOP, Sized, difference_data, difference_tables, size_data, size_table
from ortrim.analysis.size.page import difference_page, size_page
from ortrim.analysis.size.run import size_of, sizes_of_two
from ortrim.base.console import Console
from ortrim.base.files import write_atomically
from ortrim.cli.boundary import boundary
from ortrim.cli.given_models import latest_folders
from ortrim.cli.options import HELP, count_option, help_for, request_from
from ortrim.cli.task import task
from ortrim.compiling.size.accounting import GROUPINGS
from ortrim.errors import UsageError, bad_option

DEFAULT_BY: Final = "component"


@task(
    positional=["library"],
    help={
        "library": "a library, a folder that contains one, a buildspec, or the name of what was built",
        "diff": "an older library to compare with: --diff OLD NEW",
        "by": f"{', '.join(GROUPINGS)} (default: {DEFAULT_BY}; with --diff: component, operator and symbol)",
        "top": f"how many lines (default: {TOP}; with --json: all)",
        "link-map": "the library's link map (default: link.map in its folder, or that of its finished build)",
        "target": HELP["target"],
        "html": "also write a page with a treemap, or with the differences, to this file",
        "output": "folder of what was built (default: artifacts)",
        **help_for("profile", "ndk", "json"),
    },
)
def size(
    _context: Context,
    library: str,
    diff: str = "",
    by: str = "",
    top: str = "",
    link_map: str = "",
    target: str | None = None,
    profile: str | None = None,
    ndk: str | None = None,
    html: str = "",
    output: str = "artifacts",
    json: bool = False,
) -> None:
    """Show where the bytes of a library are, or why it grew."""
    with boundary(json_mode=json) as console:
        _check(by, diff, link_map)
        asked = SizeRequest(by=by, top=count_option(top, "top"), html=html, json=json)
        request = request_from(None, target=target, profile=profile, ndk=ndk)
        if diff:
            words = (_built(diff, output, target), _built(library, output, target))
            _show_difference(sizes_of_two(words, request, console), asked, console)
        else:
            word = _built(library, output, target)
            _show_size(size_of(word, request, Path(link_map) if link_map else None, console), asked, console)


def _built(word: str, output: str, target: str | None) -> str:
    """Return the folder of the latest build of a name, any other word as it is. Raises `UsageError` (`one-target`)."""
    folders = latest_folders((word,), Path(output), target)
    if len(folders) > 1:
        hint = f"choose one with --target: {', '.join(folders)}"
        raise UsageError("one-target", "the size is that of one target", where=word, hint=hint)
    return str(next(iter(folders.values()), word))


@dataclass(frozen=True, kw_only=True)
class SizeRequest:
    """How the answer is to be shown."""

    by: str
    top: int | None
    html: str
    json: bool


def _show_size(sized: Sized, asked: SizeRequest, console: Console) -> None:
    by = asked.by or DEFAULT_BY
    if asked.html:
        write_atomically(Path(asked.html), size_page(sized))
    if asked.json:
        console.result(json_module.dumps(size_data(sized, by, asked.top), indent=2))
    else:
        console.render(size_table(sized, by, asked.top))


def _show_difference(pair: tuple[Sized, Sized], asked: SizeRequest, console: Console) -> None:
    before, after = pair
    if asked.html:
        write_atomically(Path(asked.html), difference_page(before, after))
    if asked.json:
        console.result(json_module.dumps(difference_data(before, after, asked.by or DEFAULT_BY, asked.top), indent=2))
    else:
        console.render(difference_tables(before, after, asked.by, asked.top))


def _check(by: str, diff: str, link_map: str) -> None:
    if by and by not in GROUPINGS:
        raise bad_option("by", by, f"choose one of {', '.join(GROUPINGS)}")
    if diff and link_map:
        hint = "put each map into its library's folder as link.map"
        raise UsageError("bad-option", "one map cannot belong to two libraries", where="--link-map", hint=hint)
