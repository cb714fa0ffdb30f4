"""The git store of the stand-in for GitHub: contents, trees, commits and refs that are no branches."""

import base64
import hashlib
import json
from typing import Any, Final

from github_contract import example

PAGE: Final = "https://api.github.invalid/git"
Data = dict[str, Any]


class GitStore:
    """What was stored; `refs` lead to commits, `log` are the refs that were made and removed, in order."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.trees: dict[str, dict[str, str]] = {}
        self.commits: dict[str, str] = {}
        self.refs: dict[str, str] = {}
        self.log: list[str] = []

    def files(self, ref: str) -> dict[str, bytes]:
        """Return the files under a ref, by their paths, as a checkout has them."""
        tree = self.trees[self.commits[self.refs[ref]]]
        return {path: self.blobs[sha] for path, sha in tree.items()}

    def blob(self, data: Data) -> Data:
        """Store a content under git's own name of it."""
        assert data["encoding"] == "base64"
        content = base64.b64decode(data["content"], validate=True)
        sha = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
        self.blobs[sha] = content
        return {"sha": sha, "url": f"{PAGE}/blobs/{sha}"}

    def tree(self, data: Data) -> Data | None:
        """Store a tree; None for one that names what is not there."""
        if any(entry["sha"] not in self.blobs for entry in data["tree"]):
            return None
        sha = _named(data)
        self.trees[sha] = {entry["path"]: entry["sha"] for entry in data["tree"]}
        entries = [{**entry, "size": len(self.blobs[entry["sha"]]), "url": PAGE} for entry in data["tree"]]
        return {"sha": sha, "url": PAGE, "truncated": False, "tree": entries}

    def commit(self, data: Data) -> Data | None:
        """Store a commit; None for one of a tree that is not there."""
        if data["tree"] not in self.trees:
            return None
        sha = _named(data)
        self.commits[sha] = data["tree"]
        return {**example("git-commit"), "sha": sha, "message": data["message"]}

    def create(self, data: Data) -> str | Data:
        """Make a ref, or return what GitHub has against it."""
        if not data["ref"].startswith("refs/") or data["ref"].count("/") < 2 or data["sha"] not in self.commits:
            return "Reference update failed"
        if data["ref"] in self.refs:
            return "Reference already exists"
        self.refs[data["ref"]] = data["sha"]
        self.log.append(f"+{data['ref']}")
        return {
            "ref": data["ref"],
            "node_id": "x",
            "url": PAGE,
            "object": {"type": "commit", "sha": data["sha"], "url": PAGE},
        }

    def remove(self, ref: str) -> bool:
        """Remove a ref; False when it is not there."""
        self.log.append(f"-{ref}")
        return self.refs.pop(ref, None) is not None


def _named(data: Data) -> str:
    return hashlib.sha1(json.dumps(data, sort_keys=True).encode(), usedforsecurity=False).hexdigest()
