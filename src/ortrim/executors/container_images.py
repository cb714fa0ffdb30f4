"""The image in which jobs run, built once per engine; its file and its log stay in the cache."""

import shutil
from collections.abc import Callable
from pathlib import Path

from ortrim.executors.container_recipes import ImageRecipe
from ortrim.storage.cache import cache_folder
from ortrim.storage.files import storage_errors
from ortrim.storage.folders import publish_folder
from ortrim.tools.containers import ImageBuild
from ortrim.tools.containers_choice import UsableEngine
from ortrim.tools.containers_images import build_image, image_exists


def ready_image(usable: UsableEngine, recipe: ImageRecipe, announce: Callable[[str], None]) -> None:
    """Build an image with an engine unless it has it; its Dockerfile and log lie in the cache.

    Raises what `build_image` raises; nothing is left then, nor when ortrim is killed once it is started again.
    """
    record = cache_folder("images") / f"{usable.name}-{recipe.tag.replace(':', '-')}"
    if record.is_dir() and not image_exists(usable, recipe.tag):
        shutil.rmtree(record, ignore_errors=True)
    publish_folder(record, lambda temporary: _build(usable, recipe, temporary, announce))


def _build(usable: UsableEngine, recipe: ImageRecipe, folder: Path, announce: Callable[[str], None]) -> None:
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
            image = ImageBuild(context=context, tag=recipe.tag)
            build_image(usable, image, scratch, lambda line: log.writelines((line, "\n")))
        shutil.rmtree(context)
        shutil.rmtree(scratch)


def _place(source: Path, destination: Path) -> None:
    """Have a large file in a second folder, without a copy where the file system allows it."""
    try:
        destination.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, destination)
