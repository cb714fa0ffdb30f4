"""buildah: builds images and runs commands in them without a daemon, by chroot, where nothing else may. Pure.

With `--isolation chroot` buildah itself shares this machine's network and processes with the command, so that it is
started in namespaces of its own by util-linux's `unshare`; when that ends, the kernel ends all that is in them.
Sources: buildah-run(1), buildah-from(1), buildah-build(1) of 1.28, unshare(1); tried as root with 1.28.2.
"""

from dataclasses import dataclass
from typing import Final

from ortrim.tools.base import Tool
from ortrim.tools.containers import OWNER_LABEL, ContainerRun, ImageBuild, Mount

CHROOT: Final = ("--isolation", "chroot")
NAMESPACES: Final = ("unshare", "--net", "--ipc", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc")
INSIDE_USER_NAMESPACE: Final = ("buildah", "unshare", "--")
"""Where a user who is not root may make those namespaces."""


@dataclass(frozen=True, kw_only=True)
class BuildahEngine:
    """buildah; a container is made, used and removed in steps of their own."""

    tool: Tool

    def probe(self) -> tuple[str, ...]:
        """See `Engine.probe`."""
        return ("buildah", "info")

    def is_rootless(self, printed: str, user: int) -> bool:  # noqa: ARG002 - the Protocol fixes the parameters
        """See `Engine.is_rootless`."""
        return user != 0

    def image_exists(self, tag: str) -> tuple[str, ...]:
        """See `Engine.image_exists`."""
        return ("buildah", "inspect", "--type", "image", "--format", "{{.FromImageID}}", tag)

    def build(self, image: ImageBuild, proxies: tuple[str, ...]) -> tuple[str, ...]:
        """See `Engine.build`; a `--build-arg` without a value takes it from the environment."""
        arguments = tuple(word for name in proxies for word in ("--build-arg", name))
        own = ("--pull=false", "--http-proxy=false", "--no-cache", "--force-rm")
        return ("buildah", "build", *CHROOT, *own, *arguments, "--tag", image.tag, str(image.context))

    def prepare(self, run: ContainerRun) -> tuple[tuple[str, ...], ...]:
        """See `Engine.prepare`."""
        return (
            ("buildah", "from", "--http-proxy=false", "--pull-never", "--name", run.name, run.image),
            ("buildah", "config", "--label", f"{OWNER_LABEL}={run.owner}", run.name),
        )

    def run(self, run: ContainerRun) -> tuple[str, ...]:
        """See `Engine.run`."""
        user = "0:0" if run.rootless else f"{run.user}:{run.group}"
        return (
            *(INSIDE_USER_NAMESPACE if run.rootless else ()),
            *NAMESPACES,
            *("buildah", "run", *CHROOT, "--cap-drop", "ALL", "--user", user, "--workingdir", run.folder),
            *(word for mount in run.mounts for word in ("--mount", _mount(mount))),
            *run.flags,
            *(run.name, "--", *run.command),
        )

    def remove(self, name: str) -> tuple[str, ...]:
        """See `Engine.remove`."""
        return ("buildah", "rm", name)

    def list_owned(self, owner: str) -> tuple[str, ...]:  # noqa: ARG002 - the Protocol fixes the parameters
        """See `Engine.list_owned`; buildah cannot filter by label, so the names have to tell."""
        return ("buildah", "containers", "--all", "--noheading", "--format", "{{.ContainerName}}")

    def list_unfinished(self) -> tuple[str, ...] | None:
        """See `Engine.list_unfinished`."""
        return ("buildah", "containers", "--noheading", "--format", "{{.ContainerName}}")

    def inspect(self, name: str) -> tuple[str, ...]:
        """See `Engine.inspect`."""
        return ("buildah", "inspect", "--type", "container", name)

    def pull(self, reference: str) -> tuple[str, ...]:
        """See `Engine.pull`."""
        return ("buildah", "pull", "--quiet", reference)

    def digest(self, reference: str) -> tuple[str, ...]:
        """See `Engine.digest`; buildah's is that of this machine's architecture."""
        return ("buildah", "inspect", "--type", "image", "--format", "{{.FromImageDigest}}", reference)


def _mount(mount: Mount) -> str:
    """Return a mount's words; without `rw` buildah 1.28 mounts read-only whatever else is said."""
    return f"type=bind,src={mount.source},dst={mount.target},{'rw=true' if mount.writable else 'ro=true'}"


BUILDAH: Final = BuildahEngine(tool=Tool(name="buildah", package="buildah", minimum=(1, 24)))
