"""Containers of this machine as places where jobs run: images, containers, and what they see of this machine."""

import hashlib
import os
import platform
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ortrim.base.cache import cache_folder, locked, locked_if_free, publish_folder
from ortrim.base.command import run, stream
from ortrim.base.files import shipped_folder, storage_errors
from ortrim.compiling import container_engines as engines
from ortrim.compiling.plan import Toolchain
from ortrim.compiling.workspace import ExecutionEnvironment, JobPaths
from ortrim.errors import Diagnostic, NetworkError, ToolError, UsageError, bad_option
from ortrim.pins.shipped import BasePin, ImagePins, image_pins
from ortrim.sources.debian import PackageRequest
from ortrim.sources.root_file_systems import debian_root

REMOVAL_SECONDS: Final = 120.0
PIPE: Final = "alive"


@contextmanager
def own_folder() -> Iterator[Path]:
    """Make the folder of one container, called as that is, with a pipe that ends with us, and hold its lock."""
    folder = cache_folder("containers") / f"{_prefix()}{secrets.token_hex(6)}"
    with locked(folder):
        try:
            with storage_errors(folder):
                folder.mkdir()
                os.mkfifo(folder / PIPE)
                pipe = os.open(folder / PIPE, os.O_RDWR)
            try:
                yield folder
            finally:
                os.close(pipe)
        finally:
            _forget(folder)


def owner() -> str:
    """Return what distinguishes this cache folder from those of other users of the same engine."""
    return hashlib.sha256(str(cache_folder("containers")).encode()).hexdigest()[:12]


def remove(usable: engines.UsableEngine, name: str) -> None:
    """Remove a container that may be gone already; what cannot be removed now is a leftover for the next run."""
    with suppress(Diagnostic):
        run((*usable.engine.remove, name), timeout_seconds=REMOVAL_SECONDS)


def remove_leftovers(usable: engines.UsableEngine) -> tuple[str, ...]:
    """Remove the containers and folders that killed runs of this cache folder left; return the containers' names."""
    listed = run(usable.engine.list_owned(owner()), timeout_seconds=engines.ANSWER_SECONDS).stdout
    names = tuple(name for name in map(str.strip, listed.splitlines()) if name.startswith(_prefix()))
    removed = tuple(name for name in names if _removed_if_dead(usable, name))
    for folder in cache_folder("containers").glob(f"{_prefix()}*"):
        if folder.name not in names:
            with locked_if_free(folder) as free:
                if free:
                    _forget(folder)
    return removed


def _removed_if_dead(usable: engines.UsableEngine, name: str) -> bool:
    folder = cache_folder("containers") / name
    with locked_if_free(folder) as free:
        if free:
            remove(usable, name)
            _forget(folder)
    return free


def _forget(folder: Path) -> None:
    """Remove a container's folder and lock file; names are never used again, so nobody waits for the lock."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.with_name(f".{folder.name}.lock").unlink(missing_ok=True)


def _prefix() -> str:
    return f"ortrim-{owner()}-"


DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}\b")


def image_exists(usable: engines.UsableEngine, tag: str) -> bool:
    """Whether the engine has an image."""
    return run((*usable.engine.image_exists, tag), timeout_seconds=engines.ANSWER_SECONDS).returncode == 0


def build_image(
    usable: engines.UsableEngine, context: Path, tag: str, temporary: Path, on_line: Callable[[str], None]
) -> None:
    """Build an image while the caller holds the lock of its tag; `on_line` gets what is printed without credentials.

    The engine's temporary files go to `temporary`. If ortrim is killed, the engine's program ends.
    """
    _remove_unfinished(usable, tag)
    lines: list[str] = []

    def take(line: str) -> None:
        lines.append(line)
        on_line(engines.without_credentials(line, os.environ))

    # util-linux's `setpriv`, where it is installed, ends a program when this one is killed.
    with_us = ("setpriv", "--pdeathsig", "TERM") if shutil.which("setpriv") else ()
    words = (*with_us, *usable.engine.build(context, tag, engines.proxies_in(os.environ)))
    code = stream(words, take, environment={**os.environ, "TMPDIR": str(temporary)})
    if code != 0:
        raise engines.engine_error(usable.name, f"build {tag}", "\n".join(lines[-200:]), os.environ)


def pulled_digest(usable: engines.UsableEngine, reference: str) -> str:
    """Fetch an image by its tag and return the digest (`sha256:...`) that its registry gives it."""
    for words in (usable.engine.pull, usable.engine.digest):
        done = run((*words, reference))
        if done.returncode != 0:
            raise engines.engine_error(usable.name, f"pull {reference}", done.stdout + done.stderr, os.environ)
    found = DIGEST.search(done.stdout)
    if found is None:
        what = "the registry has no digest for it, so that the same image could not be fetched again"
        raise NetworkError("image-without-digest", what, where=reference, why=done.stdout.strip()[:300])
    return found[0]


def _remove_unfinished(usable: engines.UsableEngine, tag: str) -> None:
    """Remove what a killed build of this image left; the label, which comes first in its file, says whose it is."""
    words = usable.engine.list_unfinished
    listed = run(words, timeout_seconds=engines.ANSWER_SECONDS).stdout if words else ""
    for name in filter(None, map(str.strip, listed.splitlines())):
        described = run((*usable.engine.inspect, name), timeout_seconds=engines.ANSWER_SECONDS).stdout
        if image_label(tag).replace('"', r"\"") in described:
            run((*usable.engine.remove, name), timeout_seconds=engines.ANSWER_SECONDS)


def image_label(tag: str) -> str:
    """Return the instruction that comes first in an image's file, and marks what a killed build has left."""
    return f'LABEL ortrim.image="{tag}" ortrim.builder="{owner()}"'


NOT_MOUNTABLE: Final = re.compile(r'[,"\n\r\0]')  # what the engines' `--mount` cannot hold
OF_THE_IMAGE: Final = ("/", "/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/tmp", "/usr", "/var")  # noqa: S108
FLAG: Final = re.compile(r"--[a-z][a-z0-9-]*(=[^\n\r\0]*)?", re.ASCII)
OURS: Final = frozenset({
    "--cap-add", "--detach", "--entrypoint", "--env", "--env-file", "--init", "--interactive", "--isolation", "--label",
    "--mount", "--name", "--net", "--network", "--pid", "--privileged", "--publish", "--pull", "--read-only",
    "--restart", "--rm", "--tty", "--user", "--userns", "--volume", "--volumes-from", "--workdir", "--workingdir",
})  # fmt: skip
"""Flags that would undo what ortrim promises of a container, or that it needs itself."""


def parse_mount(word: str) -> engines.Mount:
    """Return the mount that `SRC:DST` or `SRC:DST:ro` means."""
    source, _, rest = word.partition(":")
    target, _, mode = rest.partition(":")
    if mode not in {"", "ro"}:
        raise bad_option("mount", word, "write it as SRC:DST or SRC:DST:ro")
    path, inside = _existing(source), PurePosixPath(target)
    if path is None:
        raise bad_option("mount", word, "its first part must be an existing file or folder")
    if not inside.is_absolute() or ".." in inside.parts or NOT_MOUNTABLE.search(f"{path}{inside}"):
        raise bad_option(
            "mount", word, "its second part must be an absolute path; neither may contain commas or quotes"
        )
    if str(inside) in OF_THE_IMAGE or any(inside.is_relative_to(folder) for folder in ("/dev", "/proc", "/sys")):
        raise bad_option(
            "mount", word, "the image needs that folder itself: choose one of your own, such as /opt/company"
        )
    return engines.Mount(source=path, target=str(inside), writable=mode != "ro")


def _existing(source: str) -> Path | None:
    """Return a file or folder with links followed; None for a name of nothing, or of nothing that could be."""
    try:
        return Path(source).expanduser().resolve(strict=True) if source else None
    except (OSError, RuntimeError, ValueError):
        return None


def parse_mounts(words: Sequence[str]) -> tuple[engines.Mount, ...]:
    """Return all mounts; two may not have the same target."""
    mounts = tuple(parse_mount(word) for word in words)
    targets = [mount.target for mount in mounts]
    for word, target in zip(words, targets, strict=True):
        if targets.count(target) > 1:
            raise bad_option("mount", word, "two mounts have the same target")
    return mounts


def parse_flags(words: Sequence[str]) -> tuple[str, ...]:
    """Return the flags for the engine's `run`, as they are: one word each, `--name` or `--name=value`."""
    for word in words:
        if FLAG.fullmatch(word) is None:
            raise bad_option("engine-flag", word, "write each as one argument: --engine-flag=--memory=8g")
        if word.partition("=")[0] in OURS:
            raise bad_option("engine-flag", word, "ortrim sets this itself; for folders there is --mount")
    return tuple(words)


def require_mountable(mounts: Sequence[engines.Mount], own: Sequence[engines.Mount]) -> None:
    """Refuse a user's mount that covers or is covered by one of ortrim's `own`, and paths that no engine can mount."""
    for mount in own:
        if NOT_MOUNTABLE.search(str(mount.source)):
            hint = "choose another cache folder with ORTRIM_CACHE"
            what = "no container engine can mount a path that contains a comma or a quote"
            raise UsageError("path-not-mountable", what, where=str(mount.source), hint=hint)
        for other in mounts:
            ours, theirs = PurePosixPath(mount.target), PurePosixPath(other.target)
            if ours.is_relative_to(theirs) or theirs.is_relative_to(ours):
                raise bad_option(
                    "mount", f"{other.source}:{other.target}", f"ortrim mounts {mount.target}: choose another place"
                )


LIFELINE: Final = (shipped_folder("scripts") / "lifeline.py").read_text(encoding="utf-8")
STARTED: Final = "ortrim: the container runs"
"""What `lifeline.py` prints first: until then, what fails is the engine and not the command."""
NOISE: Final = ("subprocess exited with status", "subprocess exited on", "Error: exit status")
"""How buildah's lines begin that only repeat the exit code."""
PYTHON: Final = "/usr/bin/python3"  # where every image has a Python


def run_in(
    usable: engines.UsableEngine,
    image: str,
    words: Sequence[str],
    on_line: Callable[[str], None],
    *,
    environment: Mapping[str, str],
    folder: Path,
    mounts: Sequence[engines.Mount],
    flags: tuple[str, ...] = (),
) -> int:
    """Run a command, hand over its lines, and return its exit code (above 128: a signal's); it ends with us.

    `environment` is the whole of it, `mounts` all that it sees of this machine.
    """
    with own_folder() as own:
        variables = tuple(f"{name}={value}" for name, value in environment.items())
        lifeline = (PYTHON, "-I", "-S", "-c", LIFELINE, str(own / PIPE))
        planned = engines.ContainerRun(
            image=image,
            name=own.name,
            owner=owner(),
            command=(*lifeline, "/usr/bin/env", "-i", *variables, *words),
            folder=str(folder),
            mounts=(*mounts, engines.Mount(source=own, target=str(own))),
            user=os.geteuid(),
            group=os.getegid(),
            rootless=usable.rootless,
            flags=flags,
        )
        try:
            for step in usable.engine.prepare(planned):
                done = run(step, timeout_seconds=REMOVAL_SECONDS)
                if done.returncode != 0:
                    raise engines.engine_error(usable.name, "make a container", done.stdout + done.stderr, os.environ)
            return _streamed(usable, planned, on_line)
        finally:
            remove(usable, planned.name)


def _streamed(usable: engines.UsableEngine, planned: engines.ContainerRun, on_line: Callable[[str], None]) -> int:
    """Run it and separate the engine's own output, which comes before `STARTED`, from the command's."""
    before: list[str] = []
    started = False

    def take(line: str) -> None:
        nonlocal started
        if not started:
            started = line == STARTED
            before.append(line)
        elif not line.startswith(NOISE):
            on_line(line)

    code = stream(usable.engine.run(planned), take)
    if not started:
        raise engines.engine_error(usable.name, "run a command", "\n".join(before), os.environ)
    return code


DEBIAN_NAMES: Final = {"x86_64": "amd64", "aarch64": "arm64"}  # Debian's words for the machines that ortrim builds on


@dataclass(frozen=True, kw_only=True)
class ImageRecipe:
    """What an image is made of: its name, the text of its Dockerfile, and what that adds, by the name it has there."""

    tag: str
    dockerfile: str
    files: Mapping[str, Path]


class Images:
    """The images in which a platform's toolchains run; these have Python, which is all that zig needs."""

    def require_image(self, toolchain: Toolchain, pins: ImagePins) -> None:
        """Refuse a toolchain of which no image can be made, without fetching or building anything."""
        if toolchain.kind != "zig":
            what = f"the plan is for this machine's {toolchain.kind} {toolchain.version}, which the image does not have"
            hint = 'use compiler = "zig", which is the same in a container, or build with --executor native'
            raise ToolError("compiler-not-in-image", what, where=toolchain.kind, hint=hint)
        pins.base("python")

    def image_recipe(self, toolchain: Toolchain, announce: Callable[[str], None]) -> ImageRecipe:
        """Return the recipe of the image in which a toolchain compiles, fetching what it adds."""
        pins = image_pins()
        self.require_image(toolchain, pins)
        return recipe_of("linux", *image_base(pins.base("python"), announce))

    def image_folders(self, _toolchain: Toolchain) -> Mapping[str, Path]:
        """Return the image's folders that a toolchain's symbolic paths mean."""
        return {}


def image_base(pin: BasePin, announce: Callable[[str], None]) -> tuple[dict[str, Any], dict[str, Path]]:
    """Return what an image's file says of its base, and what it adds: nothing, or a root file system in its place."""
    if pin.digest or pin.suite is None:
        return {"base": pin, "packages": ()}, {}
    machine = DEBIAN_NAMES.get(platform.machine())
    if machine is None:
        hint = "ortrim builds on Linux for x86-64 and arm64"
        raise ToolError("unsupported-host", f"{platform.machine()} is not a supported host", hint=hint)
    request = PackageRequest(names=tuple(sorted(pin.packages)), suite=pin.suite, architecture=machine)
    root = debian_root(request, announce)
    return {"base": pin, "packages": root.packages}, {"root.tar": root.archive}


def recipe_of(name: str, values: Mapping[str, Any], files: Mapping[str, Path]) -> ImageRecipe:
    """Name the image after all that its file says, which has the digest of all that it adds."""
    template = shipped_folder("docker") / name / "Dockerfile.j2"
    with storage_errors(template):
        text = template.read_text(encoding="utf-8")
    digest = hashlib.sha256(render(text, {**values, "label": ""}).encode()).hexdigest()[:16]
    tag = f"ortrim-{name}:{digest}"
    return ImageRecipe(tag=tag, dockerfile=render(text, {**values, "label": image_label(tag)}), files=files)


def render(template: str, values: Mapping[str, Any]) -> str:
    """Return the text of a Dockerfile."""
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 - slow to import, needed only when an image is

    environment = Environment(  # noqa: S701 - a Dockerfile, not HTML
        undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=False
    )
    return environment.from_string(template).render(values)


def ready_image(usable: engines.UsableEngine, recipe: ImageRecipe, announce: Callable[[str], None]) -> None:
    """Build an image with an engine unless it has it; its Dockerfile and log lie in the cache."""
    record = cache_folder("images") / f"{usable.name}-{recipe.tag.replace(':', '-')}"
    if record.is_dir() and not image_exists(usable, recipe.tag):
        shutil.rmtree(record, ignore_errors=True)
    publish_folder(record, lambda temporary: _build(usable, recipe, temporary, announce))


def _build(usable: engines.UsableEngine, recipe: ImageRecipe, folder: Path, announce: Callable[[str], None]) -> None:
    announce(f"{usable.name} builds the image {recipe.tag}, once")
    context, scratch = folder / "context", folder / "scratch"
    with storage_errors(folder):
        context.mkdir()
        scratch.mkdir()
        (context / "Dockerfile").write_text(recipe.dockerfile, encoding="utf-8")
        (folder / "Dockerfile").write_text(recipe.dockerfile, encoding="utf-8")
        for name, source in recipe.files.items():
            _place(source, context / name)
        with (folder / "build.log").open("w", encoding="utf-8") as log:
            build_image(usable, context, recipe.tag, scratch, lambda line: log.writelines((line, "\n")))
        shutil.rmtree(context)
        shutil.rmtree(scratch)


def _place(source: Path, destination: Path) -> None:
    """Have a large file in a second folder, without a copy where the file system allows it."""
    try:
        destination.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, destination)


WRITTEN: Final = ("ZIG_GLOBAL_CACHE_DIR",)  # Variables of a job that name folders it writes into
CONFIGURATION: Final = "CCACHE_CONFIGPATH"
"""The variable that names the compiler cache's settings; beside them ccache writes what it counted."""


def job_mounts(paths: JobPaths, environment: Mapping[str, str]) -> tuple[engines.Mount, ...]:
    """Return the mounts of a job: sources and tools read-only, the build folder and the caches to be written to.

    Folders have the same name inside, so that build tree and compiler cache keys are those of this machine.
    """
    found = {paths.archive: paths.archive.parent, paths.bionic: paths.bionic, paths.apple: paths.apple}
    linked = (folder for path, folder in found.items() if path != Path())
    read = (paths.sources, paths.tools, paths.runner, *linked)
    written = (paths.build.parent, *_caches(environment, paths.build.parent))
    return (
        *(engines.Mount(source=folder, target=str(folder)) for folder in read),
        *(engines.Mount(source=folder, target=str(folder), writable=True) for folder in written),
    )


def _caches(environment: Mapping[str, str], own: Path) -> Iterator[Path]:
    for name in WRITTEN:
        if name in environment and not Path(environment[name]).is_relative_to(own):
            yield Path(environment[name])
    if CONFIGURATION in environment:
        yield cache_folder("compiler")
        yield Path(environment[CONFIGURATION]).parent


Opener = Callable[[Toolchain, Callable[[str], None]], "ContainerEnvironment"]
"""What opens the container in which a toolchain's programs run, and notes what that takes."""


def environments_in_containers(options: engines.ContainerOptions, images: Images) -> Opener:
    """Return what opens, for executors, the container in which a toolchain's programs run: once for each toolchain."""
    opened: dict[Toolchain, ContainerEnvironment] = {}

    def environment(toolchain: Toolchain, on_note: Callable[[str], None]) -> ContainerEnvironment:
        if toolchain not in opened:
            found = container_environment(images.image_recipe(toolchain, on_note), options, on_note)
            opened[toolchain] = replace(found, folders=images.image_folders(toolchain))
        return opened[toolchain]

    return environment


@dataclass(frozen=True, kw_only=True)
class ContainerEnvironment(ExecutionEnvironment):
    """Starts a container for each program; trees know the Python of its image, which CMake finds."""

    usable: engines.UsableEngine
    image: str
    options: engines.ContainerOptions

    def stream(
        self,
        words: Sequence[str],
        on_line: Callable[[str], None],
        *,
        paths: JobPaths,
        cwd: Path,
        environment: Mapping[str, str],
    ) -> int:
        """See `ExecutionEnvironment.stream`."""
        own = job_mounts(paths, environment)
        require_mountable(self.options.mounts, own)
        return run_in(
            self.usable,
            self.image,
            words,
            on_line,
            environment=environment,
            folder=cwd,
            mounts=(*own, *self.options.mounts),
            flags=self.options.flags,
        )


def container_environment(
    recipe: ImageRecipe, options: engines.ContainerOptions, on_note: Callable[[str], None]
) -> ContainerEnvironment:
    """Return what runs in an image by the requested engine or the first that builds it and starts a command in it."""

    def attempt(usable: engines.UsableEngine) -> None:
        for name in remove_leftovers(usable):
            on_note(f"removed {name}, which a run that was killed has left")
        ready_image(usable, recipe, on_note)
        _try_out(usable, recipe.tag, options)

    usable = engines.first_that_works(options.engine, attempt, on_note)
    on_note(f"in {recipe.tag} with {usable.name} {usable.version}")
    return ContainerEnvironment(
        usable=usable,
        image=recipe.tag,
        options=options,
        python=(PYTHON, "-S", "-s"),
        apart=recipe.tag.partition(":")[2],
        reaches_stores=False,
        folders={},
    )


def _try_out(usable: engines.UsableEngine, image: str, options: engines.ContainerOptions) -> None:
    words, mounts, flags = ("/bin/sh", "-c", ":"), options.mounts, options.flags
    code = run_in(usable, image, words, lambda _: None, environment={}, folder=Path("/"), mounts=mounts, flags=flags)
    if code != 0:
        hint = f"remove the image, so that it is built again: {usable.name} rmi {image}"
        raise ToolError("image-unusable", f"its shell ends with {code}", where=image, hint=hint)
