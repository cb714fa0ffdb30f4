"""The server that stores files for the stand-in for GitHub: signed addresses, ranges, links that break."""

import re
from collections import deque
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from github_state import VirtualClock
from github_wire import Reply

SIGNATURE: Final = "signature0marker"
MINUTE: Final = 60


class Blobs:
    """Stored bytes by name."""

    def __init__(self, clock: VirtualClock) -> None:
        self.cuts: deque[int] = deque()
        self.ranges = True
        self.changing = False
        self._contents: dict[str, bytes] = {}
        self._clock = clock
        self._answers = 0

    def keep(self, name: str, content: bytes) -> str:
        """Store bytes, and return the query of an address that is good for a minute."""
        self._contents[name] = content
        return urlencode({"se": str(self._clock.now + MINUTE), "sig": SIGNATURE})

    def reply(self, headers: Mapping[str, str], name: str, parameters: Mapping[str, str]) -> Reply:
        """Give stored bytes, or the part asked for, as the server behind artifacts does."""
        if "Authorization" in headers:
            return Reply(status=400, body=b"<Error><Code>InvalidAuthenticationInfo</Code></Error>")
        if parameters.get("sig") != SIGNATURE or float(parameters.get("se", "0")) < self._clock.now:
            return Reply(status=403, body=b"<Error><Code>AuthenticationFailed</Code></Error>")
        self._answers += 1
        content = memoryview(self._contents[name])
        tag = f'"0x{self._answers if self.changing else 8:X}"'
        cut = self.cuts.popleft() if self.cuts else None
        own = {"ETag": tag, "Content-Type": "application/zip", "Accept-Ranges": "bytes"}
        match = re.fullmatch(r"bytes=(\d+)-", headers.get("Range", ""))
        if not match or not self.ranges or headers.get("If-Range", tag) != tag:
            return Reply(body=content, headers=own, cut=cut)
        start = int(match[1])
        if start >= len(content):
            return Reply(status=416, headers={"Content-Range": f"bytes */{len(content)}"})
        own["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        return Reply(status=206, body=content[start:], headers=own, cut=cut)
