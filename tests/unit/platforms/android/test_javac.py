"""Java's compiler: where it is looked for, what is told when it will not do, and what it is asked."""

import platform
from pathlib import Path

import pytest

from ortrim.errors import BuildError, ExitCode, ToolError
from ortrim.platforms.android import jni
from ortrim.platforms.android.jni import Jdk, chosen_jdk, compile_java, find_jdk
from program_files import write_program
from refusing import refused


def program(folder: Path, script: str, name: str = "javac") -> Path:
    return write_program(folder / "bin" / name, script)


@pytest.mark.parametrize(
    ("answer", "version"),
    [("javac 17.0.15", "17.0.15"), ("javac 21", "21"), ("javac 9", "9"), ("javac 25-ea", "25-ea")],
)
def test_java_home_comes_before_path(tmp_path: Path, answer: str, version: str) -> None:
    """As in every tool of Java; versions with and without dots are read."""
    path = program(tmp_path / "home", f"echo '{answer}'")
    program(tmp_path / "other", "exit 1")
    jdk = find_jdk({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "other" / "bin")})
    assert jdk == Jdk(javac=path, version=version)
    assert find_jdk({"PATH": str(tmp_path / "home" / "bin")}) == jdk


@pytest.mark.parametrize(
    ("script", "reference"),
    [
        ("echo javac 1.8.0_402 >&2", "javac-too-old"),
        ("echo 'no such thing' >&2; exit 1", "javac-broken"),
        (":", "javac-broken"),
    ],
)
def test_a_compiler_that_will_not_do_is_refused(tmp_path: Path, script: str, reference: str) -> None:
    program(tmp_path, script)
    caught = refused(ToolError, find_jdk, {"JAVA_HOME": str(tmp_path)})
    assert (caught.code, caught.exit_code) == (reference, ExitCode.TOOL)
    assert "JAVA_HOME" in caught.hint


def test_an_absent_compiler_says_where_it_was_looked_for(tmp_path: Path) -> None:
    for environment, why in (
        ({"JAVA_HOME": str(tmp_path)}, str(tmp_path)),
        ({"PATH": str(tmp_path)}, "no javac on PATH"),
    ):
        caught = refused(ToolError, find_jdk, environment)
        assert caught.code == "javac-missing"
        assert why in caught.why


def test_without_a_compiler_an_aar_has_no_java_unless_it_was_asked_for(tmp_path: Path) -> None:
    """A compiler that will not do is told all the same: nobody finds out by an AAR that lacks half."""
    nothing = {"PATH": str(tmp_path / "nothing")}
    assert chosen_jdk(wanted=None, environment=nothing) is None
    with pytest.raises(ToolError, match="needed for the classes of an AAR"):
        chosen_jdk(wanted=True, environment=nothing)
    program(tmp_path, "echo javac 1.8.0_402 >&2")
    old = {"JAVA_HOME": str(tmp_path)}
    assert chosen_jdk(wanted=False, environment=old) is None
    with pytest.raises(ToolError, match="too old"):
        chosen_jdk(wanted=None, environment=old)


@pytest.mark.parametrize("installed", [True, False])
def test_the_stand_in_that_every_mac_has_is_no_jdk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, installed: bool
) -> None:
    """Where one is installed its own compiler is taken, which has the headers beside it; else there is none."""
    home = program(tmp_path / "a jdk" / "Home", "echo javac 21.0.2")
    answer = f"echo '{home.parents[1]}'" if installed else "echo 'Unable to locate a Java Runtime.' >&2; exit 1"
    stand_in = program(tmp_path / "usr", "echo 'Unable to locate a Java Runtime.' >&2; exit 1")
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(jni, "MAC_STAND_IN", str(stand_in))
    monkeypatch.setattr(jni, "MAC_HOME", program(tmp_path / "libexec", answer, "java_home"))
    found = chosen_jdk(wanted=None, environment={"PATH": str(stand_in.parent)})
    assert found == (Jdk(javac=home, version="21.0.2") if installed else None)


def test_headers_of_jni_lie_beside_the_compiler(tmp_path: Path) -> None:
    """Through a link, as Debian's `/usr/bin/javac` is one; a kit may be without them."""
    path = program(tmp_path / "home", "")
    link = tmp_path / "javac"
    link.symlink_to(path)
    jdk = Jdk(javac=link, version="17")
    assert not jdk.includes
    (tmp_path / "home" / "include" / "linux").mkdir(parents=True)
    (tmp_path / "home" / "include" / "linux" / "jni_md.h").touch()
    assert jdk.includes == (tmp_path / "home" / "include", tmp_path / "home" / "include" / "linux")


def test_the_compiler_is_asked_for_old_classes_and_told_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Release 8; no class path and no options of the user's."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dx=y")
    monkeypatch.setenv("CLASSPATH", "/elsewhere")
    log = tmp_path / "log"
    javac = program(tmp_path / "home", f'echo "$@" > {log}; env >> {log}')
    compile_java(Jdk(javac=javac, version="17"), [Path("A.java")], tmp_path / "classes", tmp_path / "headers")
    said = log.read_text()
    assert "--release 8" in said
    assert f"-d {tmp_path}/classes -h {tmp_path}/headers A.java" in said
    assert "JAVA_TOOL_OPTIONS" not in said
    assert "/elsewhere" not in said


def test_an_error_of_the_compiler_is_reported_in_its_words(tmp_path: Path) -> None:
    javac = program(tmp_path, 'for n in 1 2 3 4 5 6 7 8; do echo "A.java:$n: error" >&2; done; exit 1')
    caught = refused(BuildError, compile_java, Jdk(javac=javac, version="17"), [Path("A.java")], tmp_path, tmp_path)
    assert (caught.code, caught.exit_code) == ("java-not-compiled", ExitCode.BUILD)
    assert caught.why.splitlines() == [f"A.java:{number}: error" for number in range(1, 6)]
