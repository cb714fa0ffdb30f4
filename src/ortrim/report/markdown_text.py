"""GitHub-flavoured Markdown: text that stays text, and tables."""

import re
from collections.abc import Iterable, Sequence


def escaped(text: str) -> str:
    """Return text that Markdown shows as it is: no markup, HTML, mention, link or table cell comes of it."""
    flat = " ".join(text.split())
    shown = re.sub(r"([\\`*_\[\]|~#$])", r"\\\1", flat)
    shown = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return shown.replace("@", "&#64;").replace("://", ":&#47;&#47;").replace("www.", "www&#46;")


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[int] = ()) -> str:
    """Write a table, or that there is none of it. `right` names the columns aligned to the right."""
    body = [f"| {' | '.join(row)} |" for row in rows]
    if not body:
        return "None."
    aligned = set(right)
    rule = "|".join("---:" if column in aligned else "---" for column in range(len(headings)))
    return "\n".join([f"| {' | '.join(headings)} |", f"|{rule}|", *body])
