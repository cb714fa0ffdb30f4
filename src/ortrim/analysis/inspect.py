"""`inspect`: what is in a file, whatever kind of file it is."""

from codecs import getincrementaldecoder
from collections import Counter
from pathlib import Path
from typing import Any, Final

from ortrim.base.archives import open_zip
from ortrim.base.files import sha256_of, storage_errors
from ortrim.base.json import to_data
from ortrim.binaries.android import NativeLibrary
from ortrim.binaries.elf import machine_of, read_library, with_elf_type
from ortrim.binaries.macho.files import MachImage, is_macho, read_macho
from ortrim.binaries.objects import archive_members, visible_symbols
from ortrim.binaries.static_archives import AR_MAGIC
from ortrim.binaries.xcframework import FRAMEWORK_SUFFIX as FRAMEWORK
from ortrim.binaries.xcframework import SUFFIX as XCFRAMEWORK
from ortrim.binaries.xcframework import SliceFacts, holds_framework, read_xcframework, used_categories
from ortrim.errors import BinaryError, Diagnostic, ModelError, OperatorsError
from ortrim.models.onnx_files import format_by_name, other_format
from ortrim.models.operators import OperatorId, RequiredOperators, parse_config
from ortrim.models.ort_format import Damaged, Table, misaligned, nodes_of, root_of, tensor_places
from ortrim.package.aar_contents import read_aar
from ortrim.parity.measurements import Verdict
from ortrim.platforms.android.gates import broken_rules, check_aar, own_promise
from ortrim.platforms.apple.gates import LINKERS, check_xcframework, is_public
from ortrim.platforms.apple.gates import broken_rules as apple_broken_rules
from ortrim.size.library import library_size
from ortrim.verify.gates import CXX_PREFIXES, PUBLIC_API


def inspect_aar(path: Path) -> dict[str, Any]:
    """Return what is in an AAR as JSON-ready data.

    `label` names it by the version that its library says of itself: sizes of different versions are not to be compared
    without. The gates are judged by what the AAR itself promises; those that fail come first, and `broken` has their
    references.
    """
    aar = read_aar(path)
    classes = aar.classes
    gates = check_aar(aar, own_promise(aar))
    return {
        "label": f"{aar.file}: ONNX Runtime {aar.version}" if aar.version else f"{aar.file}: of no known version",
        "version": aar.version or None,
        "package": aar.package,
        "minimum_api": aar.minimum_api,
        "broken": list(broken_rules(gates)),
        "size_bytes": aar.size_bytes,
        "members": aar.members,
        "abis": {each.pop("abi"): each for each in map(to_data, aar.sizes)},
        "libraries": [_library(library) for library in aar.libraries],
        "classes": classes and to_data(classes) | {"native_methods": len(classes.native_methods)},
        "keep_rules": list(aar.keep_rules),
        "prefab": bool(aar.prefab),
        "headers": len(aar.headers),
        "assets": list(aar.assets),
        "metadata": dict(aar.metadata),
        "manifest": None if aar.manifest is None else to_data(aar.manifest),
        "gates": to_data(tuple(sorted(gates, key=lambda gate: gate.verdict is not Verdict.FAIL))),
    }


def _library(library: NativeLibrary) -> dict[str, Any]:
    return {
        "path": library.path,
        "size_bytes": library.size_bytes,
        "compressed_bytes": library.compressed_bytes,
        "api_level": library.api_level,
        "ndk": library.ndk,
        "alignment": library.facts.load_alignment,
        "needed": list(library.facts.needed),
        "build_id": library.build_id,
    }


MOST_NAMES: Final = 20


def inspect_xcframework(path: Path) -> dict[str, Any]:
    """Return what is in an xcframework or a framework, a folder or a zip archive of one, as JSON-ready data.

    `label` names it by the version that it says of itself: sizes of different versions are not to be compared without.
    The gates are judged without any promise; those that fail come first, and `broken` has their references.
    """
    facts = read_xcframework(path)
    gates = check_xcframework(facts)
    return {
        "label": _label(facts.file, facts.version),
        "version": facts.version or None,
        "broken": list(apple_broken_rules(gates)),
        "size_bytes": facts.size_bytes,
        "sha256": facts.digest or None,
        "slices": {each.identifier or each.kind: _slice(each) for each in facts.slices},
        "libraries": [_image(each.identifier or each.kind, image) for each, image in facts.images],
        **_names(tuple(image for _, image in facts.images)),
        "required_reasons": list(used_categories(name for _, image in facts.images for name in image.undefined)),
        "gates": to_data(tuple(sorted(gates, key=lambda gate: gate.verdict is not Verdict.FAIL))),
    }


def inspect_macho(path: Path) -> dict[str, Any]:
    """Return what is in a Mach-O library, object or static library as JSON-ready data."""
    file = read_macho(path)
    version = next((image.version for image in file.images if image.version), "")
    return {
        "label": _label(path.name, version),
        "version": version or None,
        "size_bytes": file.size_bytes,
        "architectures": [_image(image.architecture, image) for image in file.images],
        **_names(file.images),
        "needed": sorted({need.name for image in file.images for need in image.needed}),
        "segments": [
            {
                "segment": f"{image.architecture} {segment.name}",
                "file_bytes": segment.file_bytes,
                "memory_bytes": segment.memory_bytes,
            }
            for image in file.images
            for segment in image.segments
        ],
    }


def _label(file: str, version: str) -> str:
    return f"{file}: ONNX Runtime {version}" if version else f"{file}: of no known version"


def _slice(each: SliceFacts) -> dict[str, Any]:
    return {
        "architectures": ", ".join(each.architectures),
        "binary_bytes": each.binary.size_bytes if each.binary else None,
        "size_bytes": each.size_bytes,
    }


def _image(place: str, image: MachImage) -> dict[str, Any]:
    return {
        "place": place,
        "architecture": image.architecture,
        "kind": image.kind.value,
        "size_bytes": image.size_bytes,
        "built_for": [build.words for build in image.builds],
        "install_name": image.install_name or None,
        "signature": image.signature.value,
        "bitcode": image.bitcode,
        "debug_information": image.debug,
        "uuid": image.uuid or None,
    }


def _names(images: tuple[MachImage, ...]) -> dict[str, Any]:
    """Return what is offered to apps, ONNX Runtime's API and all else, and how much is asked of others."""
    offered = {name for image in images for name in image.exported}
    others = sorted(name for name in offered if not is_public(name))
    return {
        "public_api": sorted(name for name in offered - LINKERS if is_public(name)),
        "other_names": others[:MOST_NAMES],
        "other_names_in_all": len(others),
        "names_asked_for": len({name for image in images for name in image.undefined}),
    }


OBJECT: Final = ("ET_REL", "not-an-object", "this is not an object")


def inspect_archive(path: Path) -> dict[str, Any]:
    """Return what is in a static library as JSON-ready data.

    `names_offered` and `names_asked_for` count what its objects show together; those of ONNX Runtime's C API and the
    first of all others, which could clash with a program's own, are told. With `needs_cxx_library` one has to be linked
    beside. `unread` are the members that are no ELF objects.
    """
    members = archive_members(path)
    offered, asked, machines, unread = set[str](), set[str](), set[str](), []
    for name, content in members:
        try:
            here, elsewhere = visible_symbols(content, f"{path}: {name}")
            machines.add(with_elf_type(content, path, OBJECT, machine_of))
        except BinaryError:
            unread.append(name)
            continue
        offered |= here
        asked |= elsewhere
    others = sorted(offered - PUBLIC_API)
    largest = sorted(((len(content), name) for name, content in members), reverse=True)
    return {
        "machines": sorted(machines),
        "size_bytes": path.stat().st_size,
        "objects": len(members) - len(unread),
        "unread": unread,
        "names_offered": len(offered),
        "public_api": sorted(offered & PUBLIC_API),
        "other_names": others[:MOST_NAMES],
        "names_asked_for": len(asked - offered),
        "needs_cxx_library": any(name.startswith(CXX_PREFIXES) for name in asked - offered),
        "largest_objects": [{"name": name, "size_bytes": size} for size, name in largest[:MOST_NAMES]],
    }


def inspect_onnx(path: Path) -> dict[str, Any]:
    """Return what is in an ONNX model; the opset of an operator is the one that it imports for its domain (0: none).

    Raises `ModelError` as preparing does, but takes any opset.
    """
    from ortrim.models import onnx_files, prepare  # noqa: PLC0415 - they import onnx

    model = onnx_files.read_onnx(_present(path), str(path))
    facts = onnx_files.facts_of(model, sha256_of(path), path.stat().st_size, str(path))
    opsets = dict(facts.opsets)
    nodes = ((node.domain or "ai.onnx", node.op_type) for node in onnx_files.nodes_of(model))
    return {
        "facts": facts,
        "producer": f"{model.producer_name} {model.producer_version}".strip(),
        "operators": _counted([(domain, opsets.get(domain, 0), name) for domain, name in nodes]),
        "external_files": prepare.external_files(model, str(path)),
    }


def inspect_ort(path: Path) -> dict[str, Any]:
    """Return what is in a model in ORT format.

    The opset of an operator is that since which it is as it is, as in a configuration. The format says nothing of the
    ONNX Runtime that wrote it but `format_version`: ONNX Runtime 1.16 and newer write 6 and minimal builds of them
    read 5 and 6. `misaligned_tensors` are those that a processor without unaligned access cannot read in place.
    """
    data = _present(path).read_bytes()
    try:
        return {"sha256": sha256_of(path), "size_bytes": len(data), **_session(root_of(data, str(path)), data)}
    except Damaged as error:
        hint = "convert the model again"
        raise ModelError("not-ort", "the file is damaged or cut short", where=str(path), hint=hint) from error


def _session(session: Table, data: bytes) -> dict[str, Any]:
    model = session.table(1)
    graph = model.table(7) if model else None
    if model is None or graph is None:
        raise Damaged
    nodes = [(node.text(2) or "ai.onnx", node.integer(3, "i"), node.text(5)) for node in nodes_of(graph)]
    return {
        "format_version": session.text(0),
        "ir_version": model.integer(0, "q"),
        "opsets": tuple(sorted((entry.text(0) or "ai.onnx", entry.integer(1, "q")) for entry in model.tables(1))),
        "inputs": tuple(graph.texts(5)),
        "outputs": tuple(graph.texts(6)),
        "operators": _counted(nodes),
        "runtime_optimizations": graph.table(8) is not None,
        "misaligned_tensors": misaligned(tensor_places(data, "")),
    }


def read_config(path: Path) -> RequiredOperators:
    """Read a required-operators configuration. Raises `OperatorsError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorsError("config-unreadable", "cannot be read", where=str(path), why=str(error)) from error
    return parse_config(text, str(path))


def inspect_config(path: Path) -> dict[str, Any]:
    """Return what is in a required-operators configuration. Raises `OperatorsError`."""
    required = read_config(path)
    return {"required": required, "restricted_count": len(required.types)}


def _counted(operators: list[tuple[str, int, str]]) -> tuple[tuple[OperatorId, int], ...]:
    counts = Counter(OperatorId(domain=domain, opset=opset, name=name) for domain, opset, name in operators)
    return tuple(sorted(counts.items()))


def _present(path: Path) -> Path:
    if not path.is_file():
        raise ModelError("model-missing", f"'{path}' is not a file", hint="check the path")
    return path


ELF_MAGIC: Final = b"\x7fELF"
ORT_IDENTIFIER: Final = b"ORTM"
ZIP_MAGIC: Final = b"PK\x03\x04"
APPLE_SUFFIXES: Final = (XCFRAMEWORK, FRAMEWORK)
KINDS: Final = (
    "inspect reads models (ONNX, ORT), libraries (.so, .dylib, .a) for Linux, Android and Apple's systems, AARs, "
    "xcframeworks and frameworks (folders or zip archives of them), and operator configurations"
)


def inspect_file(path: Path) -> dict[str, Any]:
    """Return what is in a model, a library, a package or an operator configuration, as JSON-ready data with its `kind`.

    The kind is recognised by content, and by name only where content says nothing; the one folder that is read is that
    of an xcframework or a framework.
    """
    if path.is_dir() and (path.suffix in APPLE_SUFFIXES or any(path.glob(f"*{XCFRAMEWORK}"))):
        return {"kind": "framework" if path.suffix == FRAMEWORK else "xcframework", **inspect_xcframework(path)}
    if path.is_dir():
        _refuse_other(path)
    if not path.is_file():
        what = "is not a file" if path.exists() else "there is no such file"
        raise ModelError("file-missing", what, where=str(path))
    with storage_errors(path), path.open("rb") as file:
        head = file.read(1024)
    if found := _by_head(path, head) or _by_name(path):
        return found
    _refuse_other(path)
    return _by_trying(path, as_text=_is_text(head))


def _by_head(path: Path, head: bytes) -> dict[str, Any] | None:
    if head.startswith(ELF_MAGIC):
        return {"kind": "library", "facts": to_data(read_library(path)), "size": to_data(library_size(path, None))}
    if is_macho(head):
        return {"kind": "apple library", **inspect_macho(path)}
    if head.startswith(AR_MAGIC):
        if any(is_macho(content) for _, content in archive_members(path)[:1]):
            return {"kind": "apple static library", **inspect_macho(path)}
        return {"kind": "static library", **inspect_archive(path)}
    if head.startswith(ZIP_MAGIC):
        return _zip(path)
    return {"kind": "ort model", **to_data(inspect_ort(path))} if head[4:8] == ORT_IDENTIFIER else None


def _zip(path: Path) -> dict[str, Any]:
    with open_zip(path, str(path), links=True) as archive:
        apple = holds_framework(archive.members)
    if apple:
        return {"kind": "xcframework", **inspect_xcframework(path)}
    _refuse_other(path)
    return {"kind": "android archive", **inspect_aar(path)}


def _refuse_other(path: Path) -> None:
    """Say what a file is that only needs to become a model first."""
    if other := other_format(path):
        raise ModelError("unknown-kind", other[0], where=str(path), hint=other[1])


def _by_name(path: Path) -> dict[str, Any] | None:
    match path.suffix:
        case ".config":
            return {"kind": "operator configuration", **to_data(inspect_config(path))}
        case ".onnx":
            return {"kind": "onnx model", **to_data(inspect_onnx(path))}
        case _:
            return None


def _by_trying(path: Path, *, as_text: bool) -> dict[str, Any]:
    """Read a file that has neither a magic number nor a name of ours."""
    kind, read = ("operator configuration", inspect_config) if as_text else ("onnx model", inspect_onnx)
    try:
        return {"kind": kind, **to_data(read(path))}
    except Diagnostic as error:
        if named := format_by_name(path):
            raise ModelError("unknown-kind", named[0], where=str(path), hint=named[1]) from error
        what, why = "is not of a known file type", f"as {kind}: {error.what}"
        raise ModelError("unknown-kind", what, where=str(path), why=why, hint=KINDS) from error


def _is_text(head: bytes) -> bool:
    try:
        text = getincrementaldecoder("utf-8")().decode(head)  # takes a character that the head cuts in two
    except UnicodeDecodeError:
        return False
    return bool(text) and all(character in "\t\n\r" or character.isprintable() for character in text)
