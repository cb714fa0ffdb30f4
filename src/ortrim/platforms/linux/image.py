"""The image in which zig compiles for Linux."""

from collections.abc import Callable, Mapping
from pathlib import Path

from ortrim.build.container import ImageRecipe, image_base, not_in_image, recipe_of, root_files
from ortrim.build.plan import Toolchain
from ortrim.pins.images import ImagePins, image_pins


def require_image(toolchain: Toolchain, pins: ImagePins) -> None:
    """Refuse the system's compiler. Raises `SourcesError` `image-not-pinned`, `ToolError` `compiler-not-in-image`."""
    if toolchain.kind != "zig":
        raise not_in_image(toolchain)
    pins.base("python")


def image_recipe(toolchain: Toolchain, announce: Callable[[str], None]) -> ImageRecipe:
    """Return the recipe of an image with Python, which is all that zig and upstream's build need."""
    pins = image_pins()
    require_image(toolchain, pins)
    base, root = image_base(pins.base("python"), announce)
    return recipe_of("linux", {"base": base, "packages": root.packages if root else ()}, root_files(root))


def image_folders(_toolchain: Toolchain, _named: Path | None) -> Mapping[str, Path]:
    """Return nothing: no toolchain of Linux is an SDK."""
    return {}
