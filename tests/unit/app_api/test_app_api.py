"""`api`: the C functions that an app's sources call, by headers that are as small as they can be."""

import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from ortrim.analysis import api as app_api
from ortrim.errors import ExitCode
from program_runs import Run

DATA: Final = Path(__file__).parent / "data"
"""Headers, and a tree with the sources of the bindings for Objective-C and Java."""


Called = Callable[..., dict[str, Any]]


@pytest.fixture
def headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(app_api, "fetch_sources", lambda *_, **__: SimpleNamespace(folder=DATA / "tree"))
    return str(shutil.copytree(DATA / "headers", tmp_path / "headers"))


@pytest.fixture
def called(ortrim: Run, headers: str, tmp_path: Path) -> Called:

    def find(**files: str) -> dict[str, Any]:
        app = tmp_path / "app"
        for name, text in files.items():
            (app / name.replace("_", ".")).parent.mkdir(exist_ok=True)
            (app / name.replace("_", ".")).write_text(text)
        ended = ortrim("api", str(app), "--headers", headers, "--json")
        assert ended.code == 0
        document: dict[str, Any] = ended.document()
        return document

    return find


def test_c_calls_what_it_names(called: Called) -> None:
    found = called(
        a_c="const OrtApi *g; void f(void) { g->CreateEnv(0, 0); RUN(Run); }", b_h="#define END(api) api->ReleaseEnv"
    )
    assert found["api"] == ["CreateEnv", "ReleaseEnv", "Run"]
    assert found["files"] == 2
    assert found["called_by"]["CreateEnv"].endswith("a.c")


@pytest.mark.parametrize(
    "text",
    [
        "// api->Run()",
        "// goes on \\\n api->Run()",
        "/* api->Run()\n api->Run() */",
        '"api->Run()"',
        '"\\"api->Run()"',
        'R"(" api->Run())"',
        'u8R"x( )" api->Run() )x"',
        '\'"\' + "api->Run()"',
        "1'000'000; // api->Run()",
        "x = 1'000; y = \"it's api->Run()\";",
    ],
)
def test_comments_and_literals_call_nothing(called: Called, text: str) -> None:
    assert called(a_cc=f"OrtApi* api; api->CreateEnv(); {text}\n")["api"] == ["CreateEnv"]


@pytest.mark.parametrize("text", ["'\"'; api->Run(); '\"'", "1'000; api->Run(); 1'000", 'R"(\\)"; api->Run(); "'])
def test_code_between_literals_counts(called: Called, text: str) -> None:
    """A quote in quotes opens nothing, digits are grouped with quotes, and raw strings have no escapes."""
    assert called(a_cc=f"OrtApi* api; {text}\n")["api"] == ["Run"]


def test_cxx_calls_by_way_of_the_wrapper(called: Called) -> None:
    """Constructors and destructors of the classes that it names, and the methods."""
    found = called(a_cc="Ort::Env env{name}; Ort::Session session{env}; session.Run();")
    assert found["api"] == ["CreateEnv", "CreateSession", "ReleaseEnv", "ReleaseSession", "Run"]
    assert found["called_by"]["CreateSession"] == "Session::Session"


def test_an_overload_needs_what_it_takes(called: Called) -> None:
    found = called(a_cc="Ort::Session s{e}; Ort::Binding b{s}; s.Run(b);")
    assert {"CreateBinding", "ReleaseBinding", "RunWithBinding"} <= set(found["api"])
    assert set(found["beyond_inference"]) == {"CreateBinding", "ReleaseBinding", "RunWithBinding"}


def test_a_method_without_overloads_counts(called: Called) -> None:
    assert "RunWithBinding" in called(a_cc="Ort::Session s{e}; s.Attach(other());")["api"]


def test_an_alias_may_release_nothing(called: Called) -> None:
    assert called(a_cc="void f(Ort::UnownedSession s) { s.GetInputCount(); }")["api"] == ["SessionGetInputCount"]


def test_a_method_is_one_of_the_classes_at_hand(called: Called) -> None:
    assert "KernelInfo_GetInputCount" not in called(a_cc="Ort::Session s{e}; s.GetInputCount();")["api"]
    both = called(a_cc="Ort::Session s{e}; s.GetInputCount(); Ort::KernelInfo info{i};")["api"]
    assert {"KernelInfo_GetInputCount", "SessionGetInputCount"} <= set(both)


@pytest.mark.parametrize(
    "text",
    ["using namespace Ort; KernelInfo i{x};", "namespace o = Ort; o::KernelInfo i{x};", "Ort :: KernelInfo i{x};"],
)
def test_classes_are_named_in_all_ways(called: Called, text: str) -> None:
    """What they call may be of a namespace of the wrapper's, in blocks that only a preprocessor would balance."""
    assert "KernelInfoGetAttribute_float" in called(a_cc=f"{text} i.GetAttribute<float>(n);")["api"]


def test_a_class_of_the_app_is_not_the_wrappers(called: Called) -> None:
    assert "CreateBinding" not in called(a_cc="Binding b; Ort::Session s{e}; s.GetUnowned();")["api"]


def test_functions_of_the_wrapper_count(called: Called) -> None:
    assert called(a_cc="auto s = Ort::GetBuildInfoString();")["api"] == ["GetBuildInfoString"]


def test_swift_calls_by_way_of_objective_c(called: Called) -> None:
    """Its names lack what became labels; training is not in a trimmed library."""
    found = called(a_swift="let session = try ORTSession(env: env)\ntry session.run(withInputs: inputs)")
    assert found["api"] == ["CreateEnv", "CreateSession", "ReleaseEnv", "ReleaseSession", "Run"]
    assert "EnableProfiling" in called(a_swift="ORTSession(env: env).enableProfiling(withPath: path)")["api"]


def test_objective_c_calls_by_selectors(called: Called) -> None:
    found = called(a_m="ORTSession *s = [[ORTSession alloc] initWithEnv:env]; [s runWithInputs:inputs error:&error];")
    assert "Run" in found["api"]


def test_java_calls_by_native_methods(called: Called) -> None:
    """By way of the public ones that it names, and of those that nobody names."""
    found = called(A_java="import ai.onnxruntime.*; class A { void f(OrtSession s) { s.run(x); } }")
    assert found["api"] == ["CreateSession", "GetBuildInfoString", "ReleaseSession", "Run"]
    assert "EnableProfiling" in called(A_java="import ai.onnxruntime.*; class A { { s.startProfiling(p); } }")["api"]


def test_kotlin_calls_properties(called: Called) -> None:
    found = called(
        A_kt="import ai.onnxruntime.OrtSession", B_kt="fun count(holder: Holder) = holder.session.inputCount"
    )
    assert "SessionGetInputCount" in found["api"]


def test_rare_classes_of_java_count_where_they_are_named(called: Called) -> None:
    app = "import ai.onnxruntime.*; class A { { s.run(x); Files.create(p); %s a; } }"
    assert {"CreateLoraAdapter", "GetSparseTensorFormat"}.isdisjoint(called(A_java=app % "int")["api"])
    assert "CreateLoraAdapter" in called(A_java=app % "OrtLoraAdapter")["api"]
    assert "GetSparseTensorFormat" in called(A_java=app % "OnnxSparseTensor")["api"]


def test_headers_of_onnx_runtime_in_an_app_are_none_of_its_code(called: Called) -> None:
    found = called(a_c="const OrtApi *api; api->Run();")
    app = Path(found["called_by"]["Run"]).parent
    (app / ".old").mkdir()
    for other in (app / "onnxruntime_c_api.h", app / ".old" / "b.c"):
        other.write_text("api->CreateEnv();")
    assert called()["api"] == ["Run"]


def test_the_list_is_for_a_buildspec(ortrim: Run, headers: str, tmp_path: Path) -> None:
    """As TOML, however long; beside it what `inference` lacks."""
    app = tmp_path / "a.c"
    app.write_text("OrtApi a; CreateEnv CreateSession Run RunWithBinding KernelInfo_GetInputCount SessionGetInputCount")
    ended = ortrim("api", str(app), "--headers", headers)
    start, end = ended.out.index("build_options"), ended.out.index("] }") + 3
    options = tomllib.loads(ended.out[start:end])["build_options"]
    assert options == {"api": sorted(app.read_text().split()[2:])}
    assert 'api = ["inference", "KernelInfo_GetInputCount", "RunWithBinding"] has all of them' in ended.out


def test_inference_may_be_enough(ortrim: Run, headers: str, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("OrtApi a; CreateEnv Run")
    ended = ortrim("api", str(tmp_path / "a.c"), "--headers", headers)
    assert 'api = "inference" has all of them, and keeps 5 more' in ended.out
    document = ortrim("api", str(tmp_path / "a.c"), "--headers", headers, "--json").document()
    spare = ["CreateSession", "GetBuildInfoString", "ReleaseEnv", "ReleaseSession", "SessionGetInputCount"]
    assert (document["spare_of_inference"], document["beyond_inference"]) == (spare, [])


def refused(ortrim: Run, *words: str) -> dict[str, Any]:
    ended = ortrim("api", *words, "--json")
    assert ended.code == ExitCode.USAGE
    (error,) = ended.document()["errors"]
    return dict(error)


@pytest.mark.parametrize("name", ["", "missing.c", "library.so", "folder"])
def test_an_app_without_sources_is_refused(ortrim: Run, headers: str, tmp_path: Path, name: str) -> None:
    (tmp_path / "library.so").write_bytes(b"\x7fELF")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "app.apk").write_bytes(b"PK")
    error = refused(ortrim, *([str(tmp_path / name)] if name else []), "--headers", headers)
    assert error["code"] == "no-app-sources"
    assert not name or (".swift" in error["hint"] and "ELF, Mach-O, APK" in error["hint"])


def test_an_app_that_uses_nothing_is_refused(ortrim: Run, headers: str, tmp_path: Path) -> None:
    (tmp_path / "a.cc").write_text("// Ort::Session\nvoid Run() {} OrtographyOrt x;")
    (tmp_path / "a.kt").write_text("fun run() {}")
    error = refused(ortrim, str(tmp_path / "a.cc"), str(tmp_path / "a.kt"), "--headers", headers)
    assert (error["code"], "2 source files" in error["what"]) == ("no-api-use", True)


def test_a_file_that_cannot_be_read_is_named(ortrim: Run, headers: str, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "gone.c").symlink_to(tmp_path / "nowhere.c")
    error = refused(ortrim, str(tmp_path / "app"), "--headers", headers)
    assert (error["code"], error["where"]) == ("app-unreadable", str(tmp_path / "app" / "gone.c"))


def test_other_headers_are_refused(ortrim: Run, headers: str, tmp_path: Path) -> None:
    (tmp_path / "a.cc").write_text("Ort::Env e;")
    (tmp_path / "none").mkdir()
    assert refused(ortrim, str(tmp_path / "a.cc"), "--headers", str(tmp_path / "none"))["code"] == "no-api-headers"
    Path(headers, "onnxruntime_cxx_inline.h").unlink()
    assert refused(ortrim, str(tmp_path / "a.cc"), "--headers", headers)["where"].endswith("cxx_inline.h")
    Path(headers, "onnxruntime_c_api.h").write_text("struct OrtApi;")
    assert "struct OrtApi" in refused(ortrim, str(tmp_path / "a.cc"), "--headers", headers)["what"]
