"""`invoke size`: where the bytes of a library are."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import RenderableType

from ortrim.analysis.size import (
    TOP,
    difference_data,
    difference_page,
    difference_tables,
    size_data,
    size_of,
    size_page,
    size_table,
    sizes_of_two,
)
from ortrim.base.console import Console
from ortrim.base.files import write_atomically
from ortrim.cli.options import count_option, latest_folders, request_from
from ortrim.cli.task import task
from ortrim.errors import UsageError, bad_option
from ortrim.size.accounting import GROUPINGS

DEFAULT_BY: Final = "component"


@task(
    help={
        "library": "a library, a folder that contains one, a buildspec, or the name of what was built",
        "diff": "an older library to compare with: --diff OLD NEW",
        "by": f"{', '.join(GROUPINGS)} (default: {DEFAULT_BY}; with --diff: component, operator and symbol)",
        "top": f"how many lines (default: {TOP}; with --json: all)",
        "link-map": "the library's link map (default: link.map in its folder, or that of its finished build)",
        "html": "also write a page with a treemap, or with the differences, to this file",
        "output": "folder of what was built (default: artifacts)",
    },
)
def size(
    console: Console,
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
    if by and by not in GROUPINGS:
        raise bad_option("by", by, f"choose one of {', '.join(GROUPINGS)}")
    if diff and link_map:
        hint = "put each map into its library's folder as link.map"
        raise UsageError("bad-option", "one map cannot belong to two libraries", where="--link-map", hint=hint)
    most, by_or_default = count_option(top, "top"), by or DEFAULT_BY
    request = request_from(None, target=target, profile=profile, output=output, ndk=ndk)
    table: Callable[[], RenderableType]
    if diff:
        words = (_built(diff, output, target), _built(library, output, target))
        pair = sizes_of_two(words, request, console)
        made = partial(difference_page, *pair)
        data = partial(difference_data, *pair, by_or_default, most)
        table = partial(difference_tables, *pair, by, most)
    else:
        word = _built(library, output, target)
        sized = size_of(word, request, Path(link_map) if link_map else None, console)
        made = partial(size_page, sized)
        data = partial(size_data, sized, by_or_default, most)
        table = partial(size_table, sized, by_or_default, most)
    if html:
        write_atomically(Path(html), made())
    if json:
        console.document(data())
    else:
        console.render(table())


def _built(word: str, output: str, target: str | None) -> str:
    """Return the folder of the latest build of a name, any other word as it is."""
    folders = latest_folders((word,), Path(output), target)
    if len(folders) > 1:
        hint = f"choose one with --target: {', '.join(folders)}"
        raise UsageError("one-target", "the size is that of one target", where=word, hint=hint)
    return str(next(iter(folders.values()), word))
