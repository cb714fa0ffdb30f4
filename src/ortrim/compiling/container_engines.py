"""Container engines: docker's, podman's and buildah's commands, the choice among them, and what their errors mean."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from ortrim.base.command import run
from ortrim.base.tools import Tool, causes, diagnose, require
from ortrim.errors import Diagnostic, ToolError, bad_option

OWNER_LABEL: Final = "ortrim.cache"
"""Marks what ortrim starts; its value is a digest of the cache folder, so that users of an engine do not interfere."""
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

    `owner` is the value of its `OWNER_LABEL`, `flags` are the user's. `user` and `group` are numbers of this machine,
    which a `rootless` engine may map.
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


CONFINED: Final = (
    *("--network", "none"),
    *("--cap-drop", "ALL"),
    *("--security-opt", "no-new-privileges"),
    # SELinux would keep a container from the user's files; giving those another label would change them.
    *("--security-opt", "label=disable"),
    *("--read-only", "--tmpfs", "/tmp"),  # noqa: S108 - the container's own, in memory
)


@dataclass(frozen=True, kw_only=True)
class ContainerEngine:
    """The words of one engine: commands, and what tells their answers. They are docker's, and podman's, if it is that.

    Commands about one thing want its name as their last word: `image_exists` ends with 0 when an image is here;
    `digest` prints the digest that the registry gave an image at the end of its first line; `inspect` describes a
    container with its image's labels. `list_unfinished` lists what broken builds of images may have left, None where
    the engine removes it. `rootless_sign` is what `probe` prints of an engine that runs without root; empty for one
    that does so for every user but root.
    """

    tool: Tool
    is_podman: bool = False
    probe: tuple[str, ...]
    rootless_sign: str = ""
    build_flags: tuple[str, ...]
    image_exists: tuple[str, ...]
    pull: tuple[str, ...]
    digest: tuple[str, ...]
    remove: tuple[str, ...]
    inspect: tuple[str, ...]
    list_unfinished: tuple[str, ...] | None = None

    def is_rootless(self, printed: str, user: int) -> bool:
        """Whether the engine that answered `printed` to this `user` runs without root."""
        return self.rootless_sign in printed if self.rootless_sign else user != 0

    def build(self, context: Path, tag: str, proxies: tuple[str, ...]) -> tuple[str, ...]:
        """Build and tag an image; its steps see the variables named by `proxies`, valued by the environment."""
        arguments = tuple(word for name in proxies for word in ("--build-arg", name))
        return (self.tool.name, "build", *self.build_flags, *arguments, "--tag", tag, str(context))

    def prepare(self, run: ContainerRun) -> tuple[tuple[str, ...], ...]:  # noqa: ARG002 - buildah's needs it
        """Make the container, where that is a step of its own."""
        return ()

    def run(self, run: ContainerRun) -> tuple[str, ...]:
        """Run the command in the container."""
        entry, *arguments = run.command
        return (
            *(self.tool.name, "run", "--rm", "--pull", "never", "--name", run.name),
            *("--label", f"{OWNER_LABEL}={run.owner}"),
            *CONFINED,
            *self._user(run),
            *("--workdir", run.folder),
            *(word for mount in run.mounts for word in ("--mount", self._mount(mount))),
            *run.flags,
            *("--entrypoint", entry, run.image, *arguments),
        )

    def list_owned(self, owner: str) -> tuple[str, ...]:
        """List the names of an owner's containers, one a line; other names may be among them."""
        return (self.tool.name, "ps", "--all", "--filter", f"label={OWNER_LABEL}={owner}", "--format", "{{.Names}}")

    def _user(self, run: ContainerRun) -> tuple[str, ...]:
        """Make what the command writes the user's: a rootless docker's root is the user, podman can keep the number."""
        if run.rootless and not self.is_podman:
            return ("--user", "0:0")
        keep = ("--userns", "keep-id") if run.rootless else ()
        return (*keep, "--user", f"{run.user}:{run.group}", *(("--http-proxy=false",) if self.is_podman else ()))

    def _mount(self, mount: Mount) -> str:
        ending = "" if mount.writable else ",ro=true" if self.is_podman else ",readonly"
        return f"type=bind,src={mount.source},dst={mount.target}{ending}"


def _of_docker(
    tool: Tool, *, is_podman: bool, shown: str, rootless_sign: str, build_flags: tuple[str, ...]
) -> ContainerEngine:
    """Return an engine with docker's words; its digests are those of all architectures, `shown` what `info` prints."""
    return ContainerEngine(
        tool=tool,
        is_podman=is_podman,
        probe=(tool.name, "info", "--format", shown),
        rootless_sign=rootless_sign,
        build_flags=build_flags,
        image_exists=(tool.name, "image", "inspect", "--format", "{{.Id}}"),
        pull=(tool.name, "pull", "--quiet"),
        digest=(tool.name, "image", "inspect", "--format", "{{index .RepoDigests 0}}"),
        remove=(tool.name, "rm", "--force"),
        inspect=(tool.name, "container", "inspect"),
    )


DOCKER: Final = _of_docker(
    Tool(name="docker", package="docker.io", minimum=(20, 10)),
    is_podman=False,
    shown="{{.ServerVersion}} {{.SecurityOptions}}",  # the client answers for its server
    rootless_sign="name=rootless",
    build_flags=("--force-rm",),
)
CHROOT: Final = ("--isolation", "chroot")
PODMAN: Final = _of_docker(
    Tool(name="podman", package="podman", minimum=(4,)),
    is_podman=True,
    shown="{{.Host.Security.Rootless}}",
    rootless_sign="true",
    # By chroot, because podman, when it is stopped, leaves running what it started by another runtime.
    build_flags=("--pull=false", "--http-proxy=false", *CHROOT, "--force-rm"),
)


NAMESPACES: Final = ("unshare", "--net", "--ipc", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc")
INSIDE_USER_NAMESPACE: Final = ("buildah", "unshare", "--")  # where a user who is not root may make those namespaces


@dataclass(frozen=True, kw_only=True)
class BuildahEngine(ContainerEngine):
    """buildah; a container is made, used and removed in steps of their own."""

    def prepare(self, run: ContainerRun) -> tuple[tuple[str, ...], ...]:
        """See `ContainerEngine.prepare`."""
        return (
            ("buildah", "from", "--http-proxy=false", "--pull-never", "--name", run.name, run.image),
            ("buildah", "config", "--label", f"{OWNER_LABEL}={run.owner}", run.name),
        )

    def run(self, run: ContainerRun) -> tuple[str, ...]:
        """See `ContainerEngine.run`."""
        user = "0:0" if run.rootless else f"{run.user}:{run.group}"
        return (
            *(INSIDE_USER_NAMESPACE if run.rootless else ()),
            *NAMESPACES,
            *("buildah", "run", *CHROOT, "--cap-drop", "ALL", "--user", user, "--workingdir", run.folder),
            *(word for mount in run.mounts for word in ("--mount", self._mount(mount))),
            *run.flags,
            *(run.name, "--", *run.command),
        )

    def list_owned(self, owner: str) -> tuple[str, ...]:  # noqa: ARG002 - it cannot filter by label
        """See `ContainerEngine.list_owned`; buildah cannot filter by label, so names are used."""
        return ("buildah", "containers", "--all", "--noheading", "--format", "{{.ContainerName}}")

    def _mount(self, mount: Mount) -> str:
        # Without `rw` buildah 1.28 mounts read-only whatever else is said.
        return f"type=bind,src={mount.source},dst={mount.target},{'rw=true' if mount.writable else 'ro=true'}"


BUILDAH: Final = BuildahEngine(
    tool=Tool(name="buildah", package="buildah", minimum=(1, 24)),
    probe=("buildah", "info"),
    build_flags=(*CHROOT, "--pull=false", "--http-proxy=false", "--no-cache", "--force-rm"),
    image_exists=("buildah", "inspect", "--type", "image", "--format", "{{.FromImageID}}"),
    pull=("buildah", "pull", "--quiet"),
    digest=("buildah", "inspect", "--type", "image", "--format", "{{.FromImageDigest}}"),
    remove=("buildah", "rm"),
    inspect=("buildah", "inspect", "--type", "container"),
    list_unfinished=("buildah", "containers", "--noheading", "--format", "{{.ContainerName}}"),
)
"""Its digests are those of this machine's architecture."""


SHOWN_LINES: Final = 6
LONGEST_LINE: Final = 600
STEP: Final = "image-step-failed"  # of this cause the lines before tell more than its own
USERINFO: Final = re.compile(r"(://)[^/@\s\"']+@")
HIDDEN: Final = "..."


def engine_error(engine: str, doing: str, printed: str, environment: Mapping[str, str]) -> Diagnostic:
    """Return the diagnostic of an engine that failed while `doing` something; proxies' credentials are taken out."""
    told = without_credentials(printed, environment).strip()
    where, last = f"{engine}: {doing}" if doing else engine, "\n".join(told.splitlines()[-SHOWN_LINES:])
    error = diagnose(told, causes("container"), where, engine=engine)
    if error is None:
        hint = "check whether it works outside of ortrim, or choose another engine with --engine"
        return ToolError("engine-failed", "failed", where=where, why=last or "it printed nothing", hint=hint)
    error.why = last if error.code == STEP else error.why[:LONGEST_LINE]
    return error


def proxies_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the proxy variables that are set, in either case, in order."""
    return tuple(name for each in PROXIES for name in (each, each.lower()) if environment.get(name))


def without_credentials(text: str, environment: Mapping[str, str]) -> str:
    """Return a text without what stands before the `@` of any address, nor a proxy's password by itself."""
    text = USERINFO.sub(rf"\1{HIDDEN}@", text)
    for secret in sorted(_secrets(environment), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def _secrets(environment: Mapping[str, str]) -> set[str]:
    """Return every form in which a proxy's password may be printed."""
    found: set[str] = set()
    for name in proxies_in(environment):
        value = environment[name]
        userinfo = value.rpartition("@")[0].rpartition("//")[2]
        password = userinfo.partition(":")[2] or userinfo
        found |= {userinfo, unquote(userinfo), password, unquote(password)}
    return found - {""}


ENGINES: Final[tuple[ContainerEngine, ...]] = (DOCKER, PODMAN, BUILDAH)  # in the order in which they are tried
ANSWER_SECONDS: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class UsableEngine:
    """An engine that answers here."""

    engine: ContainerEngine
    version: str
    rootless: bool

    @property
    def name(self) -> str:
        """The engine's name, as users give it."""
        return self.engine.tool.name


def engine_named(name: str) -> ContainerEngine:
    """Return an engine."""
    for engine in ENGINES:
        if engine.tool.name == name:
            return engine
    raise bad_option("engine", name, f"choose {', '.join(engine.tool.name for engine in ENGINES)}")


def probe(engine: ContainerEngine) -> UsableEngine:
    """Find out whether an engine answers here; whether it may make containers shows when it does."""
    installed = require(engine.tool)
    done = run(engine.probe, timeout_seconds=ANSWER_SECONDS)
    if done.returncode != 0:
        raise engine_error(engine.tool.name, "", done.stdout + done.stderr, os.environ)
    user = os.geteuid() if hasattr(os, "geteuid") else 0
    rootless = engine.is_rootless(done.stdout, user)
    return UsableEngine(engine=engine, version=installed.version, rootless=rootless)


def first_that_works(
    wanted: str | None, attempt: Callable[[UsableEngine], None], on_note: Callable[[str], None]
) -> UsableEngine:
    """Return the requested engine, or else the first with which `attempt` raises no `ToolError`, noting the others."""
    failures: list[Diagnostic] = []
    for engine in ENGINES if wanted is None else (engine_named(wanted),):
        try:
            usable = probe(engine)
            attempt(usable)
        except ToolError as error:
            failures.append(error)
            if error.code != "tool-missing":
                on_note(f"{error.where}: {error.what}")
        else:
            return usable
    if wanted is not None:
        raise failures[0]
    why = "\n".join(f"{failure.where}: {failure.what} ({failure.hint})" for failure in failures)
    hint = "repair one of them, or build without a container: --executor native"
    raise ToolError("no-container-engine", "no container engine works here", why=why, hint=hint)
