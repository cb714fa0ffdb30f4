"""A store of images and containers for tests alone, in a folder of theirs, for a real engine."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from ortrim.base.cache import cache_folder
from ortrim.base.command import run

SHARED = ("apt", "downloads", "packages", "roots", "sources", "zig")
"""Parts of the cache that hold only what was fetched or compiled before."""
NAMES = {
    "buildah": ("buildah", "containers", "--all", "--noheading", "--format", "{{.ContainerName}}"),
    "docker": ("docker", "ps", "--all", "--format", "{{.Names}}"),
    "podman": ("podman", "ps", "--all", "--format", "{{.Names}}"),
}
PODMAN_SETTINGS = """\
[containers]
default_ulimits = ["nofile=1000:1000", "nproc=1000:1000"]
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
"""
"""For machines that are containers or small virtual machines themselves: what podman would ask for may be refused."""
DAEMON_SECONDS = 30.0


def own_environment(folder: Path) -> dict[str, str]:
    """Lay out a cache that shares the user's downloads, and a store; return the variables that lead there."""
    cache, storage, settings = folder / "cache", folder / "storage.conf", folder / "containers.conf"
    cache.mkdir(parents=True)
    for kind in SHARED:
        (cache / kind).symlink_to(cache_folder(kind))
    places = f'graphroot = "{folder / "store"}"\nrunroot = "{folder / "run"}"'
    storage.write_text(f'[storage]\ndriver = "overlay"\n{places}\n')
    settings.write_text(PODMAN_SETTINGS)
    return {
        "ORTRIM_CACHE": str(cache),
        "CONTAINERS_STORAGE_CONF": str(storage),
        "CONTAINERS_CONF": str(settings),
    }


@contextmanager
def container_storage(folder: Path, engine: str = "buildah") -> Iterator[Path]:
    """Use a cache and a store below `folder` for a while; afterwards nothing of it is left mounted or running."""
    environment = own_environment(folder)
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        if engine == "docker":
            environment["DOCKER_HOST"] = stack.enter_context(own_daemon(folder))
        for name, value in environment.items():
            patch.setenv(name, value)
        try:
            yield folder
        finally:
            if engine != "docker":
                run((engine, "rm", "--all"))
            run(("umount", "--recursive", "--quiet", folder / "store" / "overlay"))


@contextmanager
def own_daemon(folder: Path) -> Iterator[str]:
    """Run a docker daemon without a network; give its address."""
    with tempfile.TemporaryDirectory(prefix="docker-") as sockets:  # short: a socket's path has at most 107 bytes
        address = f"unix://{sockets}/s"
        own = ("--data-root", str(folder / "store"), "--exec-root", f"{sockets}/exec", "--pidfile", f"{sockets}/pid")
        words = ("dockerd", "--bridge=none", "--iptables=false", "--ip6tables=false", "--host", address, *own)
        log = os.open(folder / "dockerd.log", os.O_WRONLY | os.O_CREAT)
        program = shutil.which("dockerd")
        assert program is not None
        actions = [(os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)]
        daemon = os.posix_spawn(program, list(words), os.environ, file_actions=actions, setsid=True)
        try:
            ends = time.monotonic() + DAEMON_SECONDS
            while run(("docker", "--host", address, "info")).returncode != 0:
                assert time.monotonic() < ends, (folder / "dockerd.log").read_text()
                time.sleep(0.2)
            yield address
        finally:
            os.kill(daemon, 15)
            os.waitpid(daemon, 0)
            os.close(log)


def containers(engine: str) -> list[str]:
    return run(NAMES[engine]).stdout.split()
