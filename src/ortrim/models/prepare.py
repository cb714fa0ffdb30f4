"""Prepare: `ModelSpec` -> `PreparedModel`, our own checked copy of a model in a folder named by its digest."""

from pathlib import Path

from ortrim.core.model_spec import ModelSpec
from ortrim.core.models import PreparedModel
from ortrim.errors import ModelError
from ortrim.models.copies import (
    MODEL_FILE,
    StoredModel,
    copy_file,
    digest_with,
    keep,
    read_stored,
    refuse_links,
    require_files,
)
from ortrim.models.limits import check_limits
from ortrim.models.origins import check_digest, fetch_model, local_digest
from ortrim.storage.files import sha256_of
from ortrim.storage.records import cached_folder


def prepare(model: ModelSpec, *, base: Path, root: Path, ort_version: str, where: str) -> PreparedModel:
    """Return our own copy of a model, checked for `ort_version`.

    Relative paths in `model` start at `base`; copies lie in folders below `root`, named by SHA-256; `where` is
    the model's place in the buildspec (`x.toml: models[0]`). With nothing changed the model is not parsed again.
    Raises `ModelError`, `NetworkError` (addresses and wheels) or `StorageError`; nothing is left behind then.
    """
    if model.path is None:
        folder = _fetched(model, root, ort_version, where)
    else:
        folder = _copied(model, base / model.path, root, ort_version, where)
    facts = read_stored(folder).facts
    check_limits(facts, ort_version, where)
    return PreparedModel(name=model.name, path=folder / MODEL_FILE, facts=facts)


def _fetched(model: ModelSpec, root: Path, ort_version: str, where: str) -> Path:
    assert model.sha256 is not None, "the buildspec's reader requires a digest"
    digest = model.sha256

    def fill(temporary: Path) -> None:
        fetch_model(model, temporary / MODEL_FILE, where)
        stored = _check(temporary, digest, (), ort_version, where)
        if stored.external:
            what = f"the model keeps weights in '{stored.external[0]}', which is not fetched with it"
            hint = "download the model with its data and name it by 'path'"
            raise ModelError("missing-external-data", what, where=where, hint=hint)
        keep(stored, temporary)

    cached_folder(root / digest, fill)
    return root / digest


def _copied(model: ModelSpec, path: Path, root: Path, ort_version: str, where: str) -> Path:
    """Copy the user's file; when it keeps weights in other files, copy all of them under one digest."""

    def require_beside(names: tuple[str, ...]) -> None:
        if not model.allow_links:
            refuse_links(path, names, where)
        require_files(path.parent, names, where)

    def copied_under(digest: str, names: tuple[str, ...]) -> tuple[str, ...]:
        """Copy the model and the files `names` beside it; return the files that it needs."""

        def fill(temporary: Path) -> None:
            for name in names:
                copy_file(path.parent / name, temporary / name, where)
            copy = temporary / MODEL_FILE
            copy_file(path, copy, where)
            check_digest(digest_with(copy, sha256_of(copy), names, where), digest, str(path), where)
            stored = _check(temporary, digest, names, ort_version, where)
            require_beside(stored.external)
            keep(stored, temporary)

        cached_folder(root / digest, fill)
        return read_stored(root / digest).external

    digest = local_digest(path, model.sha256, where)
    external = copied_under(digest, ())
    if not external:
        return root / digest
    require_beside(external)
    together = digest_with(path, digest, external, where)
    copied_under(together, external)
    return root / together


def _check(folder: Path, digest: str, names: tuple[str, ...], ort_version: str, where: str) -> StoredModel:
    from ortrim.models.checks import check_model  # noqa: PLC0415 - onnx takes a third of a second to import

    copy = folder / MODEL_FILE
    size = sum((folder / name).stat().st_size for name in (MODEL_FILE, *names))
    facts, external = check_model(copy, sha256=digest, size_bytes=size, ort_version=ort_version, where=where)
    return StoredModel(facts=facts, external=external)
