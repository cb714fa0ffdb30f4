"""The image for Android with the real buildah: every step of its file, on an NDK of scripts in Google's layout."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from container_storage import container_storage, containers
from fake_ndk import PREBUILT, VERSION, write_command_line_tools, write_ndk
from ortrim.base.cache import cache_folder
from ortrim.base.command import run
from ortrim.base.files import sha256_of
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.container_engines import BUILDAH, UsableEngine, probe
from ortrim.compiling.containers import ImageRecipe, build_image, ready_image, run_in
from ortrim.compiling.toolchains import zig_toolchain
from ortrim.errors import Diagnostic, SourcesError
from ortrim.pins.shipped import IMAGES_FILE
from ortrim.platforms import ANDROID, LINUX
from ortrim.platforms.android.ndk import ndk_toolchain
from refusing import refused

pytestmark = [
    pytest.mark.container,
    pytest.mark.network,
    pytest.mark.needs("buildah", "apt-get"),
    pytest.mark.needs("root"),  # whose the stores of these tests are
]

NDK = ndk_toolchain(TARGETS["android-arm64-v8a"], 24, VERSION)
PINS = """\
[bases.python]
reference = "{name}:1"
digest = "{digest}"
[bases.jdk]
reference = "{name}:1"
digest = "{digest}"
[archives."ndk;{version}"]
file = "ndk.zip"
sha256 = "{ndk}"
[archives."cmdline-tools;19.0"]
file = "tools.zip"
sha256 = "{tools}"
"""


@pytest.fixture(scope="module")
def usable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UsableEngine]:
    """Build a base that has what Python's and the JDK's images have, and pin it by the digest that it gets."""
    with container_storage(tmp_path_factory.mktemp("android")) as folder, pytest.MonkeyPatch.context() as patch:
        (folder / "cache" / "downloads").unlink()
        (folder / "cache" / "downloads").mkdir()
        usable = probe(BUILDAH)
        linux = LINUX.images().image_recipe(zig_toolchain(TARGETS["linux-x64"], "2.28", "0.17.0"), lambda _: None)
        ready_image(usable, linux, lambda _: None)
        base = folder / "base"
        base.mkdir()
        javac = "mkdir -p /opt/java/openjdk/bin && printf '#!/bin/sh\\n' > /opt/java/openjdk/bin/javac"
        lines = (f"FROM {linux.tag}", f"RUN {javac} && chmod 755 /opt/java/openjdk/bin/javac")
        (base / "Dockerfile").write_text("\n".join(lines))
        build_image(usable, base, "localhost/base:1", folder, lambda _: None)
        patch.setenv("ORTRIM_PINS", str(folder / "pins"))
        (folder / "pins").mkdir()
        yield usable


@pytest.fixture
def pinned(usable: UsableEngine) -> UsableEngine:
    pin()
    return usable


def pin(**changes: str) -> None:
    """Lay archives where downloads are kept, and pin them."""
    downloads = cache_folder("downloads")
    write_ndk(downloads / "ndk.zip", **changes)
    write_command_line_tools(downloads / "tools.zip")
    text = PINS.format(
        name="localhost/base",
        digest=run((*BUILDAH.digest, "localhost/base:1")).stdout.strip(),
        version=VERSION,
        ndk=sha256_of(downloads / "ndk.zip"),
        tools=sha256_of(downloads / "tools.zip"),
    )
    Path(os.environ["ORTRIM_PINS"], IMAGES_FILE).write_text(text)


def recipe() -> ImageRecipe:
    return ANDROID.images().image_recipe(NDK, lambda _: None)


def test_the_image_has_the_ndk_where_jobs_look_for_it(pinned: UsableEngine) -> None:
    """Programs, links and permissions of the zip files are there; so is what a build for Linux needs."""
    image = recipe()
    ready_image(pinned, image, lambda _: None)
    lines: list[str] = []
    folder = ANDROID.images().image_folders(NDK)["ndk"]
    script = f"{folder}/{PREBUILT}/bin/clang++ && readlink {folder}/{PREBUILT}/bin/clang++ && python3 -c 'print(1)' && "
    script += "/opt/java/openjdk/bin/javac && /opt/android/cmdline-tools/19.0/bin/sdkmanager"
    words, environment = ("/bin/sh", "-c", script), {"PATH": "/usr/bin"}
    assert run_in(pinned, image.tag, words, lines.append, environment=environment, folder=Path("/"), mounts=()) == 0
    assert lines == ["fake", "clang-18", "1", "fake"]


@pytest.mark.parametrize(
    "changes",
    [
        {"without": "build/cmake/android.toolchain.cmake"},
        {"without": "meta/platforms.json"},
        {"without": f"{PREBUILT}/bin/llvm-objcopy"},
        {"without": f"{PREBUILT}/bin/clang++"},
        {"without": f"{PREBUILT}/sysroot/usr/lib/i686-linux-android/libc++_shared.so"},
        {"version": "26.0.1"},
    ],
)
def test_another_ndk_is_refused_when_the_image_is_built(usable: UsableEngine, changes: dict[str, str]) -> None:
    """Of another layout or version, and not when the first job fails in it; nothing of the image is kept."""
    pin(**changes)
    assert refused(Diagnostic, ready_image, usable, recipe(), lambda _: None).code == "image-step-failed"
    assert containers("buildah") == []


def test_what_is_not_pinned_is_not_fetched(
    usable: UsableEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With the pins that travel with ortrim there is no image for Android yet, and the message says why."""
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path))
    error = refused(SourcesError, recipe)
    assert error.code == "image-not-pinned"
    assert VERSION in error.where
    assert "invoke pins.update --images" in error.hint
