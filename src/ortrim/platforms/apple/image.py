"""The image in which zig compiles for Macs, which is that of Linux; Xcode runs in none."""

from ortrim.platforms.linux.image import image_folders, image_recipe, require_image

__all__ = ["image_folders", "image_recipe", "require_image"]
