"""Where a library's bytes are, and what differs between two, as JSON-ready data: nothing rounded."""

from collections.abc import Sequence
from typing import Any

from ortrim.binaries.leaves import GROUPINGS, Leaf, Share, shares
from ortrim.report.size_content import Sized, change_lines


def size_data(sized: Sized, by: str, top: int | None) -> dict[str, Any]:
    """Return where the bytes are as JSON-ready data; all entries, or the `top` largest."""
    account = sized.accounting
    found = shares(account.leaves, GROUPINGS[by])
    return {
        "library": str(sized.library),
        "link_map": None if sized.link_map is None else str(sized.link_map),
        "file_bytes": account.file_bytes,
        "zeroed_bytes": account.zeroed_bytes,
        "by": by,
        "entries": [_entry(share, account.file_bytes, by) for share in found[:top]],
        "notes": list(account.notes),
    }


def difference_data(before: Sized, after: Sized, by: str, top: int | None) -> dict[str, Any]:
    """Return what differs as JSON-ready data; all entries, or the `top` of the largest effect."""
    old, new = before.accounting, after.accounting
    return {
        "before": {"library": str(before.library), "file_bytes": old.file_bytes, "notes": list(old.notes)},
        "after": {"library": str(after.library), "file_bytes": new.file_bytes, "notes": list(new.notes)},
        "difference_bytes": new.file_bytes - old.file_bytes,
        "by": by,
        "entries": [
            {
                "name": change.name[0],
                **_file(change.name),
                "kind": change.kind,
                "before_bytes": change.before,
                "after_bytes": change.after,
                "difference_bytes": change.difference,
            }
            for change in change_lines(before, after, by)[:top]
        ],
    }


def _entry(share: Share, file_bytes: int, by: str) -> dict[str, Any]:
    entry = {
        "name": share.name[0],
        **_file(share.name),
        "size_bytes": share.size_bytes,
        "share": share.size_bytes / file_bytes if file_bytes else 0.0,
    }
    return {**entry, **_more(share.leaves)} if by in {"symbol", "file"} else entry


def _file(name: Sequence[str]) -> dict[str, str]:
    return {"file": name[1]} if len(name) > 1 else {}


def _more(leaves: Sequence[Leaf]) -> dict[str, Any]:
    """Return what the leaves of one symbol or file have in common."""
    folded = sorted({name for leaf in leaves for name in leaf.folded})
    components = sorted({leaf.component for leaf in leaves})
    operators = sorted({leaf.operator for leaf in leaves if leaf.operator})
    return {"components": components, "operators": operators, "folded": folded}
