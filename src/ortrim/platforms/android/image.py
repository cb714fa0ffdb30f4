"""The images in which libraries for Android are compiled; what of Google's SDK one has is fetched by digest."""

import platform
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ortrim.base.cache import cache_folder, cached_folder
from ortrim.base.http import download
from ortrim.compiling.containers import ImageRecipe, Images, image_base, recipe_of
from ortrim.compiling.plan import Toolchain
from ortrim.errors import ToolError
from ortrim.pins.shipped import BasePin, ImagePins, image_pins
from ortrim.platforms.android.bionic import sysroot_of
from ortrim.platforms.android.ndk import PREBUILT, REPOSITORY, WITHOUT
from ortrim.sources.root_file_systems import zip_as_tar

NDK_HOST: Final = "x86_64"
"""The only Linux machine for which Google publishes an NDK (repository2-3.xml has no other)."""
COMMAND_LINE_TOOLS: Final = ("cmdline-tools", "19.0")


class SdkArchive(NamedTuple):
    """An archive that is pinned: its name and version in the SDK, its file and its SHA-256."""

    name: str
    version: str
    file: str
    sha256: str


def sdk_archive(archive: SdkArchive, announce: Callable[[str], None]) -> Path:
    """Return an archive as a tar file, fetched and checked when it is not in the cache.

    The engines unpack tar files by themselves, and keep the links and permissions that zip files have in a form that
    few programs read.
    """
    folder = cache_folder("sdk") / f"{archive.name}-{archive.version}-{archive.sha256[:16]}"

    def fill(temporary: Path) -> None:
        kept = cache_folder("downloads") / archive.file
        announce(f"fetch {REPOSITORY}/{archive.file}")
        download(f"{REPOSITORY}/{archive.file}", kept, archive.sha256)
        zip_as_tar(kept, temporary / "content.tar")

    cached_folder(folder, fill, large=True)
    return folder / "content.tar"


def _parts(pins: ImagePins, version: str) -> tuple[tuple[SdkArchive, SdkArchive], BasePin]:
    if platform.machine() != NDK_HOST:
        what = f"Google publishes no NDK for {platform.machine()} machines"
        hint = f"{WITHOUT}; or build for Android on an x86-64 machine"
        raise ToolError("no-ndk-for-host", what, where="android", hint=hint)
    pins.base("python")
    ndk, tools = (
        SdkArchive(name, number, *pins.archive(f"{name};{number}"))
        for name, number in (("ndk", version), COMMAND_LINE_TOOLS)
    )
    return (ndk, tools), pins.base("jdk")


class AndroidImages(Images):
    """The images in which the NDK compiles, with a Python for upstream's build; zig's are those of every platform."""

    def require_image(self, toolchain: Toolchain, pins: ImagePins) -> None:
        """Refuse an NDK that is not pinned. Raises `SourcesError` `image-not-pinned`, `ToolError` `no-ndk-for-host`."""
        if toolchain.kind == "zig":
            super().require_image(toolchain, pins)
        else:
            _parts(pins, toolchain.version)

    def image_recipe(self, toolchain: Toolchain, announce: Callable[[str], None]) -> ImageRecipe:
        """Return the recipe of an image with the NDK, Google's command-line tools and a JDK."""
        if toolchain.kind == "zig":
            return super().image_recipe(toolchain, announce)
        pins = image_pins()
        (ndk, tools), jdk = _parts(pins, toolchain.version)
        values, files = image_base(pins.base("python"), announce)
        values |= {"jdk": jdk, "ndk": ndk, "tools": tools, "ndk_folder": self.image_folders(toolchain)["ndk"]}
        files |= {f"{archive.name}.tar": sdk_archive(archive, announce) for archive in (ndk, tools)}
        return recipe_of("android", values, files)

    def image_folders(self, toolchain: Toolchain) -> Mapping[str, Path]:
        """Return where the image has its NDK, or this machine's sysroot for zig, which a container sees as it is."""
        if toolchain.kind == "zig":
            return {"bionic": sysroot_of(toolchain)}
        folder = Path("/opt/android/ndk") / toolchain.version
        return {"ndk": folder, "ndk_prebuilt": folder / PREBUILT["Linux", NDK_HOST]}
