"""What a release or a run has of what is wanted, before anything large is fetched."""

from typing import Protocol

from ortrim.core.sums import FileEntry
from ortrim.fetch.lock import LockedArtifact
from ortrim.fetch.side_by_side import Download
from ortrim.fetch.store import Store


class Offer(Protocol):
    """What there is: `page` is where people see it, `words` what it is."""

    @property
    def page(self) -> str:
        """The page."""

    @property
    def words(self) -> str:
        """A few words on it."""

    @property
    def artifacts(self) -> tuple[LockedArtifact, ...]:
        """The archives that files are in; a release has some for folders alone."""

    def downloads(self, store: Store) -> tuple[Download, ...]:
        """Return what is not in the store yet."""

    def commit(self, store: Store) -> str:
        """Return the commit that it was made of; of a run it is known once everything is in the store."""

    def files(self, store: Store) -> tuple[FileEntry, ...]:
        """Return the files, in order; those in archives are known once everything is in the store."""
