"""What is compiled into a runtime, read from all that may be left of it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from aar_samples import aar_inputs, fake_jdk, members
from ortrim.analysis.compat_runtime import read_runtime
from ortrim.base.json import to_json
from ortrim.compiling.plan import Package, PlannedModel
from ortrim.errors import Diagnostic, ExitCode
from ortrim.models.convert import Conversion
from ortrim.models.operators import OperatorId
from ortrim.package.package import make_package
from ortrim.platforms.android.aar import AndroidPackage, make_android_package
from refusing import refused
from sample_package import LIBRARY, make_inputs
from zips import zipped

GEMM = OperatorId(domain="ai.onnx", opset=13, name="Gemm")
RECORDED = Path(__file__).parents[1] / "models" / "data" / "branching_first.ort"


@pytest.fixture
def package(tmp_path: Path) -> Package:
    return make_package(make_inputs(tmp_path / "in"), tmp_path / "out")


@pytest.fixture
def android(tmp_path: Path) -> AndroidPackage:
    return make_android_package(aar_inputs(tmp_path / "in", ("x86",)), fake_jdk(tmp_path / "jdk"), tmp_path / "out")


def test_a_package_tells_all(package: Package) -> None:
    found = [read_runtime(path) for path in (package.archive, package.folder, package.folder / "manifest.json")]
    assert found[0] == found[1] == found[2]
    assert found[0].label == "ortrim-demo-linux-x64-1.21.0"
    assert (found[0].ort_version, found[0].targets) == ("1.21.0", ("linux-x64",))
    assert found[0].operators.operators == (GEMM,)
    assert found[0].conversions == (Conversion(),)
    assert (found[0].extended, found[0].without) == (False, ())


def test_an_android_package_tells_the_same(android: AndroidPackage) -> None:
    """As its AAR, its folder and its manifest; 8-bit floats are never compiled in there."""
    found = [read_runtime(path) for path in (android.aar, android.folder, android.folder / "manifest.json")]
    assert found[0] == found[1] == found[2]
    assert found[0].targets == ("android-x86",)
    assert (found[0].extended, found[0].without) == (False, ("float8",))
    assert found[0].operators == android.manifest.operators


@pytest.mark.parametrize("second", ["extended", "custom_ops"])
def test_an_app_has_what_every_abi_has(tmp_path: Path, android: AndroidPackage, second: str) -> None:
    (abi,) = android.manifest.abis
    kinds = ("extended", second)
    abis = tuple(replace(abi, arguments=("--minimal_build", kind, "--disable_types", kind)) for kind in kinds)
    path = tmp_path / "manifest.json"
    path.write_text(to_json(replace(android.manifest, abis=abis)))
    assert read_runtime(path).extended is (second == "extended")


@pytest.mark.parametrize(
    ("arguments", "extended", "without"),
    [
        (("--minimal_build", "extended", "--disable_rtti"), True, ()),
        (("--minimal_build", "--build_dir", "extended"), False, ()),
        (("--minimal_build", "custom_ops", "extended"), True, ()),
        (("--disable_types", "sparsetensor", "float8", "--x"), False, ("float8", "sparsetensor")),
        (("ORTRIM_WITHOUT_FLOAT16=ON",), False, ("float16",)),
    ],
)
def test_the_kind_of_build_is_read_from_the_arguments(
    tmp_path: Path,
    arguments: tuple[str, ...],
    extended: bool,  # noqa: FBT001 - a parameter of the test
    without: tuple[str, ...],
) -> None:
    inputs = make_inputs(tmp_path / "in")
    job = replace(inputs.job, arguments=arguments)
    runtime = read_runtime(make_package(replace(inputs, job=job), tmp_path / "out").archive)
    assert (runtime.extended, runtime.without) == (extended, without)


@pytest.mark.parametrize(("sources", "block"), [("unreached.c", 8), ("unreached.c;avx512_nchwc.cc", 16)])
def test_the_width_of_blocks_is_read_from_the_arguments(tmp_path: Path, sources: str, block: int) -> None:
    inputs = make_inputs(tmp_path / "in")
    job = replace(inputs.job, arguments=("--cmake_extra_defines", f"ORTRIM_SURROGATES={sources}"))
    package = make_package(replace(inputs, job=job), tmp_path / "out")
    assert read_runtime(package.archive).channel_block == block
    path = package.folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "target": "linux-arm64"}))
    assert read_runtime(path).channel_block is None


def test_each_way_of_converting_is_there_once(package: Package) -> None:
    path = package.folder / "manifest.json"
    document = json.loads(path.read_text())
    (model,) = document["models"]
    runtime, blocks = {**model, "style": "runtime"}, {**model, "level": "all", "layout": "nchwc8"}
    document["models"] = [runtime, model, {**runtime, "name": "other"}, blocks]
    path.write_text(json.dumps(document))
    in_blocks = Conversion(level="all", layout="nchwc8")
    assert read_runtime(path).conversions == (Conversion(style="runtime"), Conversion(), in_blocks)
    assert PlannedModel(**model).level == "extended"


def test_a_configuration_is_of_the_usual_version(tmp_path: Path) -> None:
    """Unless another is named; nothing else is known of such a runtime."""
    path = tmp_path / "required_operators.config"
    path.write_text("# ours\nai.onnx;13;Gemm\n")
    runtime = read_runtime(path)
    assert (runtime.label, runtime.ort_version, runtime.extended) == ("required_operators.config", "1.21.0", None)
    assert runtime.operators.operators == (GEMM,)
    assert read_runtime(path, "1.22.0").ort_version == "1.22.0"


@pytest.mark.parametrize("version", ["1.22.0", "banana"])
def test_a_package_has_a_version_of_its_own(package: Package, version: str) -> None:
    """It is not to be said; a version that nobody knows is refused for a configuration too."""
    error = refused(Diagnostic, read_runtime, package.archive, version)
    assert (error.code, error.where) == ("bad-option", "--ort-version")
    assert error.exit_code == ExitCode.USAGE
    assert read_runtime(package.archive, "1.21.0").ort_version == "1.21.0"


@pytest.mark.parametrize(
    ("name", "content", "reference", "code"),
    [
        ("libonnxruntime.so", LIBRARY.read_bytes(), "runtime-unknown", ExitCode.PACKAGE),
        ("model.ort", RECORDED.read_bytes(), "runtime-unknown", ExitCode.PACKAGE),
        ("theirs.aar", zipped(members()), "runtime-unknown", ExitCode.PACKAGE),
        ("cut.aar", zipped(members())[:3000], "corrupt-archive", ExitCode.STORAGE),
        ("document.odt", zipped({"mimetype": b"x"}), "not-an-aar", ExitCode.BINARY),
        ("cut.tar.gz", b"\x1f\x8b\x08\0\0", "package-damaged", ExitCode.PACKAGE),
        ("manifest.json", b"", "manifest-damaged", ExitCode.PACKAGE),
        ("manifest.json", b"[]", "manifest-damaged", ExitCode.PACKAGE),
        ("manifest.json", b'{"schema": "ortrim-aar/1"}', "manifest-damaged", ExitCode.PACKAGE),
        ("manifest.json", b"[" * 100_000, "manifest-damaged", ExitCode.PACKAGE),
        ("theirs.config", b"ai.onnx;13\n", "config-syntax", ExitCode.OPERATORS),
        ("theirs.config", b"ai.onnx;13;\xff\n", "config-unreadable", ExitCode.OPERATORS),
    ],
)
def test_what_does_not_say_its_operators_is_refused(
    tmp_path: Path, name: str, content: bytes, reference: str, code: ExitCode
) -> None:
    """A library, a model, an AAR of other make, what is damaged, what is something else."""
    (tmp_path / name).write_bytes(content)
    error = refused(Diagnostic, read_runtime, tmp_path / name)
    assert (error.code, error.exit_code) == (reference, code)


def test_a_folder_of_something_else_and_nothing_are_refused(tmp_path: Path) -> None:
    error = refused(Diagnostic, read_runtime, tmp_path)
    assert (error.code, error.exit_code) == ("manifest-missing", ExitCode.PACKAGE)
    error = refused(Diagnostic, read_runtime, tmp_path / "absent")
    assert error.code == "package-missing"
    assert "operator configuration" in error.hint
