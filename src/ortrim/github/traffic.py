"""The account of what talking to GitHub took."""

from dataclasses import dataclass


@dataclass(kw_only=True)
class Traffic:
    """Requests sent, how many of them were repeats, how many answers said that nothing had changed; seconds waited.

    `bytes_received` are those of downloads, `bytes_again` those among them that had come before.
    """

    requests: int = 0
    repeats: int = 0
    unchanged: int = 0
    waited_seconds: float = 0.0
    bytes_received: int = 0
    bytes_again: int = 0

    @property
    def words(self) -> str:
        """The account in one line: `12 requests, 1 of them repeated, 7 unchanged; 1,234 bytes, 0 of them twice`."""
        asked = f"{self.requests:,} requests, {self.repeats:,} of them repeated, {self.unchanged:,} unchanged"
        return f"{asked}; {self.bytes_received:,} bytes fetched, {self.bytes_again:,} of them twice"
