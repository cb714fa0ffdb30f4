"""What the image is made of in which a toolchain compiles: rendered from `docker/<system>/Dockerfile.j2`."""

import hashlib
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, assert_never

from ortrim.core.plan import Toolchain
from ortrim.errors import ToolError
from ortrim.executors.container_archives import SdkArchive, sdk_archive
from ortrim.pins.images import BasePin, ImagePins, image_pins
from ortrim.sources.apt_packages import PackageRequest
from ortrim.sources.debian_root import DebianRoot, debian_root
from ortrim.storage.files import storage_errors
from ortrim.storage.shipped import shipped_folder
from ortrim.tools.containers_images import image_label

DEBIAN_NAMES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
"""Debian's words for the machines that ortrim builds on."""
NDK_HOST: Final = "x86_64"
"""The only Linux machine for which Google publishes an NDK (repository2-3.xml has no other)."""
COMMAND_LINE_TOOLS: Final = ("cmdline-tools", "19.0")


@dataclass(frozen=True, kw_only=True)
class ImageRecipe:
    """What an image is made of: its name, the text of its Dockerfile, and what that adds, by the name it has there."""

    tag: str
    dockerfile: str
    files: Mapping[str, Path]


def image_recipe(toolchain: Toolchain, announce: Callable[[str], None]) -> ImageRecipe:
    """Return the recipe of the image in which a toolchain compiles, fetching what it adds.

    Raises `SourcesError` (`image-not-pinned`, `bad-pin-file`, what apt and downloads raise) or `ToolError`
    (`compiler-not-in-image`, `no-ndk-for-host`, `unsupported-host`).
    """
    pins = image_pins()
    require_image(toolchain, pins)
    if toolchain.kind == "ndk":
        return _android(pins, toolchain.version, announce)
    return _linux(pins, announce)


def require_image(toolchain: Toolchain, pins: ImagePins) -> None:
    """Refuse a toolchain of which no image can be made, without fetching or building anything.

    Raises `SourcesError` (`image-not-pinned`) or `ToolError` (`compiler-not-in-image`, `no-ndk-for-host`).
    """
    match toolchain.kind:
        case "zig":
            pins.base("python")
        case "ndk":
            _android_parts(pins, toolchain.version)
        case "gcc" | "clang" | "xcode":
            what = f"the plan is for this machine's {toolchain.kind} {toolchain.version}, which the image does not have"
            hint = 'use compiler = "zig", which is the same in a container, or build with --executor native'
            raise ToolError("compiler-not-in-image", what, where=toolchain.kind, hint=hint)
        case _:
            assert_never(toolchain.kind)


def _linux(pins: ImagePins, announce: Callable[[str], None]) -> ImageRecipe:
    base, root = _base(pins.base("python"), announce)
    return _recipe("linux", {"base": base, "packages": root.packages if root else ()}, _root_files(root))


def _android_parts(pins: ImagePins, version: str) -> tuple[tuple[SdkArchive, SdkArchive], BasePin]:
    """Return the NDK, the command-line tools and the JDK that an image has."""
    if platform.machine() != NDK_HOST:
        what = f"Google publishes no NDK for {platform.machine()} machines"
        raise ToolError("no-ndk-for-host", what, where="android", hint="build for Android on an x86-64 machine")
    pins.base("python")
    return (_pinned(pins, "ndk", version), _pinned(pins, *COMMAND_LINE_TOOLS)), pins.base("jdk")


def _android(pins: ImagePins, version: str, announce: Callable[[str], None]) -> ImageRecipe:
    (ndk, tools), jdk = _android_parts(pins, version)
    base, root = _base(pins.base("python"), announce)
    values = {"base": base, "packages": root.packages if root else (), "jdk": jdk, "ndk": ndk, "tools": tools}
    parts = {f"{archive.name}.tar": sdk_archive(archive, announce) for archive in (ndk, tools)}
    return _recipe("android", {**values, "ndk_folder": image_ndk(version)}, _root_files(root) | parts)


def _pinned(pins: ImagePins, name: str, version: str) -> SdkArchive:
    file, sha256 = pins.archive(f"{name};{version}")
    return SdkArchive(name=name, version=version, file=file, sha256=sha256)


def image_ndk(version: str) -> Path:
    """Return where the image has its NDK."""
    return Path("/opt/android/ndk") / version


def _base(pin: BasePin, announce: Callable[[str], None]) -> tuple[BasePin, DebianRoot | None]:
    """Return the base by digest alone, or with the root file system that stands in for it."""
    if pin.digest or pin.suite is None:
        return pin, None
    machine = DEBIAN_NAMES.get(platform.machine())
    if machine is None:
        hint = "ortrim builds on Linux for x86-64 and arm64"
        raise ToolError("unsupported-host", f"{platform.machine()} is no host that ortrim knows", hint=hint)
    request = PackageRequest(names=tuple(sorted(pin.packages)), suite=pin.suite, architecture=machine)
    return pin, debian_root(request, announce)


def _root_files(root: DebianRoot | None) -> dict[str, Path]:
    return {"root.tar": root.archive} if root else {}


def _recipe(name: str, values: Mapping[str, Any], files: Mapping[str, Path]) -> ImageRecipe:
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
