"""docker and podman: the same words, but for what each does by itself and the other has to be told. Pure.

Sources: `docker run --help` and `docker info` of 28.2, podman-run(1) and podman-build(1) of 4.3.
"""

from dataclasses import dataclass
from typing import Final

from ortrim.tools.base import Tool
from ortrim.tools.containers import OWNER_LABEL, ContainerRun, ImageBuild, Mount

CONFINED: Final = (
    *("--network", "none"),
    *("--cap-drop", "ALL"),
    *("--security-opt", "no-new-privileges"),
    # SELinux would keep a container from the user's files; giving those another label would change them.
    *("--security-opt", "label=disable"),
    *("--read-only", "--tmpfs", "/tmp"),  # noqa: S108 - the container's own, in memory
)


PODMAN_BUILD: Final = ("--pull=false", "--http-proxy=false", "--isolation", "chroot")
"""By chroot, because podman, when it is told to stop, leaves running what it started by another runtime."""


@dataclass(frozen=True, kw_only=True)
class DockerEngine:
    """An engine with docker's command line; `is_podman` for podman."""

    tool: Tool
    is_podman: bool

    @property
    def _program(self) -> str:
        return self.tool.name

    def probe(self) -> tuple[str, ...]:
        """See `Engine.probe`; docker's client answers for its server, podman for itself."""
        shown = "{{.Host.Security.Rootless}}" if self.is_podman else "{{.ServerVersion}} {{.SecurityOptions}}"
        return (self._program, "info", "--format", shown)

    def is_rootless(self, printed: str, user: int) -> bool:  # noqa: ARG002 - the Protocol fixes the parameters
        """See `Engine.is_rootless`."""
        return "true" in printed if self.is_podman else "name=rootless" in printed

    def image_exists(self, tag: str) -> tuple[str, ...]:
        """See `Engine.image_exists`."""
        return (self._program, "image", "inspect", "--format", "{{.Id}}", tag)

    def build(self, image: ImageBuild, proxies: tuple[str, ...]) -> tuple[str, ...]:
        """See `Engine.build`; a `--build-arg` without a value takes it from the environment."""
        arguments = tuple(word for name in proxies for word in ("--build-arg", name))
        own = PODMAN_BUILD if self.is_podman else ()
        return (self._program, "build", *own, "--force-rm", *arguments, "--tag", image.tag, str(image.context))

    def prepare(self, run: ContainerRun) -> tuple[tuple[str, ...], ...]:  # noqa: ARG002 - the Protocol fixes the parameters
        """See `Engine.prepare`; `run` does it."""
        return ()

    def run(self, run: ContainerRun) -> tuple[str, ...]:
        """See `Engine.run`."""
        entry, *arguments = run.command
        return (
            *(self._program, "run", "--rm", "--pull", "never", "--name", run.name),
            *("--label", f"{OWNER_LABEL}={run.owner}"),
            *CONFINED,
            *self._user(run),
            *("--workdir", run.folder),
            *(word for mount in run.mounts for word in ("--mount", self._mount(mount))),
            *run.flags,
            *("--entrypoint", entry, run.image, *arguments),
        )

    def remove(self, name: str) -> tuple[str, ...]:
        """See `Engine.remove`."""
        return (self._program, "rm", "--force", name)

    def list_owned(self, owner: str) -> tuple[str, ...]:
        """See `Engine.list_owned`."""
        return (self._program, "ps", "--all", "--filter", f"label={OWNER_LABEL}={owner}", "--format", "{{.Names}}")

    def list_unfinished(self) -> tuple[str, ...] | None:
        """See `Engine.list_unfinished`."""
        return None

    def inspect(self, name: str) -> tuple[str, ...]:
        """See `Engine.inspect`."""
        return (self._program, "container", "inspect", name)

    def pull(self, reference: str) -> tuple[str, ...]:
        """See `Engine.pull`."""
        return (self._program, "pull", "--quiet", reference)

    def digest(self, reference: str) -> tuple[str, ...]:
        """See `Engine.digest`; docker's is that of all architectures."""
        return (self._program, "image", "inspect", "--format", "{{index .RepoDigests 0}}", reference)

    def _user(self, run: ContainerRun) -> tuple[str, ...]:
        """Make what the command writes the user's: a rootless docker's root is the user, podman can keep the number."""
        if not run.rootless:
            return ("--user", f"{run.user}:{run.group}", *(("--http-proxy=false",) if self.is_podman else ()))
        if self.is_podman:
            return ("--userns", "keep-id", "--user", f"{run.user}:{run.group}", "--http-proxy=false")
        return ("--user", "0:0")

    def _mount(self, mount: Mount) -> str:
        ending = "" if mount.writable else ",ro=true" if self.is_podman else ",readonly"
        return f"type=bind,src={mount.source},dst={mount.target}{ending}"


DOCKER: Final = DockerEngine(tool=Tool(name="docker", package="docker.io", minimum=(20, 10)), is_podman=False)
PODMAN: Final = DockerEngine(tool=Tool(name="podman", package="podman", minimum=(4,)), is_podman=True)
