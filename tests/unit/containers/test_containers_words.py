"""The words for each engine, golden."""

import os
from pathlib import Path

import pytest

from ortrim.compiling.containers.engines import (
    BUILDAH,
    DOCKER,
    ENGINES,
    PODMAN,
    ContainerEngine,
    ContainerRun,
    ImageBuild,
    Mount,
)

MOUNTS = (
    Mount(source=Path("/home/user/sources"), target="/home/user/sources"),
    Mount(source=Path("/home/user/tree"), target="/home/user/tree", writable=True),
)
OPTIONS = "--security-opt no-new-privileges --security-opt label=disable"
CONFINED = f"--network none --cap-drop ALL {OPTIONS} --read-only --tmpfs /tmp"


def sample(*, rootless: bool = False, flags: tuple[str, ...] = ()) -> ContainerRun:
    """Return a command to run."""
    return ContainerRun(
        image="ortrim-linux:1",
        name="ortrim-a-b",
        owner="a",
        command=("/usr/bin/python3", "-c", "pass"),
        folder="/home/user/tree/out",
        mounts=MOUNTS,
        user=1000,
        group=100,
        rootless=rootless,
        flags=flags,
    )


def test_docker_runs_a_confined_command_as_the_user() -> None:
    """No network, no capabilities, nothing to write but what is mounted for it; the container goes by itself."""
    assert " ".join(DOCKER.run(sample())) == (
        f"docker run --rm --pull never --name ortrim-a-b --label ortrim.cache=a {CONFINED} --user 1000:100 "
        "--workdir /home/user/tree/out "
        "--mount type=bind,src=/home/user/sources,dst=/home/user/sources,readonly "
        "--mount type=bind,src=/home/user/tree,dst=/home/user/tree "
        "--entrypoint /usr/bin/python3 ortrim-linux:1 -c pass"
    )
    assert DOCKER.prepare(sample()) == ()


def test_podman_runs_the_same() -> None:
    """What it hands on of the user's environment by itself is forbidden."""
    assert " ".join(PODMAN.run(sample())) == (
        f"podman run --rm --pull never --name ortrim-a-b --label ortrim.cache=a {CONFINED} --user 1000:100 "
        "--http-proxy=false --workdir /home/user/tree/out "
        "--mount type=bind,src=/home/user/sources,dst=/home/user/sources,ro=true "
        "--mount type=bind,src=/home/user/tree,dst=/home/user/tree "
        "--entrypoint /usr/bin/python3 ortrim-linux:1 -c pass"
    )


def test_buildah_makes_a_container_and_runs_in_it_in_namespaces_of_its_own() -> None:
    """Chroot isolates neither the network nor processes; the kernel ends the namespace with its first process."""
    assert [" ".join(words) for words in BUILDAH.prepare(sample())] == [
        "buildah from --http-proxy=false --pull-never --name ortrim-a-b ortrim-linux:1",
        "buildah config --label ortrim.cache=a ortrim-a-b",
    ]
    assert " ".join(BUILDAH.run(sample())) == (
        "unshare --net --ipc --uts --pid --fork --kill-child --mount-proc "
        "buildah run --isolation chroot --cap-drop ALL --user 1000:100 --workingdir /home/user/tree/out "
        "--mount type=bind,src=/home/user/sources,dst=/home/user/sources,ro=true "
        "--mount type=bind,src=/home/user/tree,dst=/home/user/tree,rw=true "
        "ortrim-a-b -- /usr/bin/python3 -c pass"
    )


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        (DOCKER, ("--user", "0:0")),
        (PODMAN, ("--userns", "keep-id", "--user", "1000:100", "--http-proxy=false")),
        (BUILDAH, ("--user", "0:0")),
    ],
)
def test_without_root_files_are_the_users_too(engine: ContainerEngine, words: tuple[str, ...]) -> None:
    """A rootless engine's root is the user; podman keeps the user's number."""
    run = " ".join(engine.run(sample(rootless=True)))
    assert " ".join(words) in run


def test_buildah_without_root_makes_a_user_namespace_first() -> None:
    """In it the user may make the others."""
    assert BUILDAH.run(sample(rootless=True))[:4] == ("buildah", "unshare", "--", "unshare")


@pytest.mark.parametrize("engine", ENGINES)
def test_flags_come_before_the_image(engine: ContainerEngine) -> None:
    """They are the engine's, not the command's."""
    words = engine.run(sample(flags=("--memory=8g",)))
    named = "ortrim-a-b" if engine is BUILDAH else "ortrim-linux:1"
    flag = words.index("--memory=8g")
    assert words.index("run") < flag < len(words) - 1 - words[::-1].index(named)


def test_images_are_built_with_the_names_of_proxies_alone() -> None:
    """A password on a command line could be read by every user of the machine."""
    image = ImageBuild(context=Path("/tmp/context"), tag="ortrim-linux:1")  # noqa: S108
    assert " ".join(DOCKER.build(image, ("HTTPS_PROXY",))) == (
        "docker build --force-rm --build-arg HTTPS_PROXY --tag ortrim-linux:1 /tmp/context"
    )
    assert " ".join(PODMAN.build(image, ("HTTPS_PROXY",))) == (
        "podman build --pull=false --http-proxy=false --isolation chroot --force-rm --build-arg HTTPS_PROXY "
        "--tag ortrim-linux:1 /tmp/context"
    )
    assert " ".join(BUILDAH.build(image, ("HTTPS_PROXY",))) == (
        "buildah build --isolation chroot --pull=false --http-proxy=false --no-cache --force-rm "
        "--build-arg HTTPS_PROXY --tag ortrim-linux:1 /tmp/context"
    )


@pytest.mark.parametrize(
    ("engine", "printed", "user", "rootless"),
    [
        (DOCKER, "28.2.2 [name=seccomp,profile=builtin name=rootless name=cgroupns]\n", 1000, True),
        (DOCKER, "28.2.2 [name=seccomp,profile=builtin]\n", 1000, False),
        (PODMAN, "true\n", 1000, True),
        (PODMAN, "false\n", 0, False),
        (BUILDAH, "{}", 1000, True),
        (BUILDAH, "{}", 0, False),
    ],
)
def test_engines_say_whether_they_have_root(engine: ContainerEngine, printed: str, user: int, rootless: bool) -> None:  # noqa: FBT001
    """Docker and podman are asked; buildah is what its user is."""
    assert engine.is_rootless(printed, user) is rootless


@pytest.mark.parametrize("engine", ENGINES)
def test_every_word_is_one_argument(engine: ContainerEngine) -> None:
    """Commands are lists with the engine's own program somewhere, never a shell's line."""
    image = ImageBuild(context=Path("/a b"), tag="t:1")
    commands = [
        engine.probe, engine.image_exists, engine.build(image, ()), engine.run(sample()), engine.remove,
        engine.list_owned("a"), engine.inspect, engine.pull, engine.digest,
        *engine.prepare(sample()), *filter(None, [engine.list_unfinished]),
    ]  # fmt: skip
    for words in commands:
        assert engine.tool.name in words
        assert all(words)
    assert os.fspath(image.context) in engine.build(image, ())
