"""From builds to an AAR: made when it passes every gate, gone when it does not."""

import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from aar_samples import ABIS, aar_inputs, fake_jdk
from android_samples import BINDING, RUNTIME, sample
from ortrim.errors import BinaryError, DiagnosticGroup, PackageError
from ortrim.package.aar_contents import AarFacts, read_aar
from ortrim.parity.measurements import Verdict
from ortrim.platforms.android.aar import AarPart, deliver_aar
from ortrim.platforms.android.gates import check_aar, own_promise
from ortrim.platforms.android.jni import JAVA
from refusing import refused


@pytest.fixture(name="sources")
def fixture_sources(tmp_path: Path) -> Path:
    for name in ("java", "android"):
        (tmp_path / "sources" / JAVA / name).mkdir(parents=True)
    (tmp_path / "sources" / JAVA / "java" / "OnnxRuntime.java").touch()
    return tmp_path / "sources"


def parts_of(folder: Path) -> tuple[AarPart, ...]:
    return aar_inputs(folder).parts


def test_a_sound_aar_is_delivered(tmp_path: Path, sources: Path) -> None:
    jdk = fake_jdk(tmp_path / "jdk")
    package, facts, gates = deliver_aar(
        parts_of(tmp_path / "in"), sources, jdk, tmp_path / "out", models_as_assets=True
    )
    assert package.aar.is_file()
    assert package.manifest.ndk == "27.2.12479018"
    assert "assets/models/vad.ort" in {entry.path for entry in package.manifest.files}
    assert facts.abis == tuple(sorted(ABIS))
    assert len(gates) > 20
    assert not [gate for gate in gates if gate.verdict is Verdict.FAIL]


def test_without_a_jdk_an_aar_is_for_c_and_cxx(tmp_path: Path, sources: Path) -> None:
    """It has libraries, headers and Prefab, no trace of the Java API, and says so; what needs Java is not judged."""
    parts = [replace(part, binding=None) for part in parts_of(tmp_path / "in")]
    package, facts, gates = deliver_aar(parts, sources, None, tmp_path / "out")
    assert {library.name for library in facts.libraries} == {RUNTIME}
    assert facts.classes is not None  # older Android Gradle Plugins want the jar in every AAR
    assert facts.classes.count == 0
    assert (facts.keep_rules, package.manifest.java) == ((), False)
    assert "javac" not in dict(package.manifest.tools)
    open_questions = {gate.name for gate in gates if gate.verdict is Verdict.NOT_JUDGED}
    assert open_questions == {"JNI library", "native methods are bound", "rules for R8"}
    read = read_aar(package.aar)
    assert {gate.verdict for gate in check_aar(read, own_promise(read))} == {Verdict.PASS, Verdict.NOT_JUDGED}
    with zipfile.ZipFile(package.folder / f"{package.folder.name}-jniLibs.zip") as plain:
        names = {name.rpartition("/")[2] for name in plain.namelist()}
    assert names.isdisjoint({"onnxruntime.jar", "proguard.txt", BINDING})
    with_java, _, _ = deliver_aar(
        parts_of(tmp_path / "java"), sources, fake_jdk(tmp_path / "jdk"), tmp_path / "out-java"
    )
    assert with_java.manifest.coordinates != package.manifest.coordinates


def test_an_unsound_aar_is_not_delivered(tmp_path: Path, sources: Path) -> None:
    """Everything that is wrong is told at once, and nobody finds the package."""
    parts = parts_of(tmp_path / "in")
    parts[0].inputs.result.library.write_bytes(sample("small-pages.so"))
    assert parts[1].binding
    parts[1].binding.write_bytes(sample("no-build-id.so"))
    caught = refused(DiagnosticGroup, deliver_aar, parts, sources, fake_jdk(tmp_path / "jdk"), tmp_path / "out")
    found = {error.code for error in caught.diagnostics}
    assert {"segments-not-page-aligned", "abi-mismatch", "build-id-missing", "jni-exports-missing"} <= found
    assert all(isinstance(error, BinaryError) for error in caught.diagnostics)
    assert [path for path in (tmp_path / "out").iterdir() if not path.name.startswith(".")] == []


def test_an_aar_that_was_not_judged_does_not_stay(
    tmp_path: Path, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever finds one may take it to have passed: one whose gates Ctrl-C has ended is gone too."""

    def interrupted(_path: Path) -> AarFacts:
        raise KeyboardInterrupt

    monkeypatch.setattr("ortrim.platforms.android.aar.read_aar", interrupted)
    with pytest.raises(KeyboardInterrupt):
        deliver_aar(parts_of(tmp_path / "in"), sources, fake_jdk(tmp_path / "jdk"), tmp_path / "out")
    assert [path for path in (tmp_path / "out").iterdir() if not path.name.startswith(".")] == []


def test_no_parts_make_no_aar(tmp_path: Path, sources: Path) -> None:
    caught = refused(PackageError, deliver_aar, (), sources, fake_jdk(tmp_path / "jdk"), tmp_path / "out")
    assert caught.code == "no-abi"


def test_a_part_has_the_symbols_that_builds_left(tmp_path: Path) -> None:
    inputs = aar_inputs(tmp_path, ABIS[:1]).parts[0].inputs
    binding = tmp_path / BINDING
    assert AarPart(inputs=inputs, binding=binding).symbols == ()
    symbols = inputs.result.folder / f"{RUNTIME}.sym"
    symbols.touch()
    (tmp_path / f"{BINDING}.sym").touch()
    part = AarPart(inputs=replace(inputs, result=replace(inputs.result, symbols=symbols)), binding=binding)
    assert [path.name for path in part.symbols] == [f"{RUNTIME}.sym", f"{BINDING}.sym"]
