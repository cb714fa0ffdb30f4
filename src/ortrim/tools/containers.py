"""Container engines as one thing: what is asked of docker, podman and buildah, in words that each of them understands.

An engine here is pure: it says which command does what. `containers_running` runs the commands.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from ortrim.tools.base import Tool

OWNER_LABEL: Final = "ortrim.cache"
"""Marks what ortrim starts; its value tells the cache folder, so that two users of an engine leave each other alone."""
PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY")
"""The variables, in either case, that engines hand to the steps of an image's build and keep out of the image."""


@dataclass(frozen=True, kw_only=True)
class Mount:
    """A file or folder of this machine that a container sees at `target`, an absolute path."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True, kw_only=True)
class ContainerOptions:
    """What the user says about containers: the engine's name (None: the first that works), mounts, and flags."""

    engine: str | None = None
    mounts: tuple[Mount, ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ContainerRun:
    """One command in a container of its own: no network, no capabilities, the user's own files.

    `name` is the container's, `owner` the value of its `OWNER_LABEL`. `folder` is where the command starts; `flags`
    are words that the user adds for the engine. `user` and `group` are numbers of this machine; `rootless` says that
    the engine runs without root, where it may map them.
    """

    image: str
    name: str
    owner: str
    command: tuple[str, ...]
    folder: str
    mounts: tuple[Mount, ...]
    user: int
    group: int
    rootless: bool
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ImageBuild:
    """An image made from the `Dockerfile` of a folder and called `tag`."""

    context: Path
    tag: str


class Engine(Protocol):
    """The words of one engine: each method returns a command, or commands to be run one after the other."""

    @property
    def tool(self) -> Tool:
        """The engine's program."""

    def probe(self) -> tuple[str, ...]:
        """Ask whether the engine works; what it prints tells `is_rootless`."""

    def is_rootless(self, printed: str, user: int) -> bool:
        """Whether the engine that answered `printed` to this `user` runs without root."""

    def image_exists(self, tag: str) -> tuple[str, ...]:
        """Ask for an image of this machine: the exit code is 0 when it is there."""

    def build(self, image: ImageBuild, proxies: tuple[str, ...]) -> tuple[str, ...]:
        """Build an image; `proxies` are names of variables whose values its steps see and the image does not keep."""

    def prepare(self, run: ContainerRun) -> tuple[tuple[str, ...], ...]:
        """Make the container, where that is a step of its own."""

    def run(self, run: ContainerRun) -> tuple[str, ...]:
        """Run the command in the container."""

    def remove(self, name: str) -> tuple[str, ...]:
        """Stop and remove a container."""

    def list_owned(self, owner: str) -> tuple[str, ...]:
        """List the names of an owner's containers, one a line; other names may be among them."""

    def list_unfinished(self) -> tuple[str, ...] | None:
        """List the containers that broken builds of images may have left; None where the engine removes them."""

    def inspect(self, name: str) -> tuple[str, ...]:
        """Describe a container, with the labels that its image's file gives it."""

    def pull(self, reference: str) -> tuple[str, ...]:
        """Fetch an image from its registry, by its tag."""

    def digest(self, reference: str) -> tuple[str, ...]:
        """Ask for the digest that the registry gives a fetched image; it ends the first line that is printed."""
