from dataclasses import replace
from typing import Any

import pytest

from ortrim.binaries.elf import LibraryFacts
from ortrim.buildspec.targets import Architecture
from ortrim.parity.measurements import Gate, Verdict
from ortrim.verify.gates import HINTS, PAGE_BYTES, check_archive, check_library, check_tensors, gate_hint

CROOKED = ("w (8-byte elements at offset 4)",)
GOOD = LibraryFacts(
    soname="libonnxruntime.so.1",
    machine="x64",
    needed=("libm.so.6", "libc.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0", "libdl.so.2", "librt.so.1"),
    symbol_versions=("GLIBC_2.2.5", "GLIBC_2.3.4", "GLIBC_2.17"),
    exported=("OrtGetApiBase", "OrtSessionOptionsAppendExecutionProvider_CPU"),
    executable_stack=False,
    text_relocations=False,
    stripped=True,
    load_alignment=4096,
)


def gates(architecture: str = "x64", glibc: str = "2.17", *, compiler: bool = False, **facts: Any) -> dict[str, Gate]:
    changed = replace(GOOD, **facts)
    found = check_library(changed, architecture=architecture, minimum_glibc=glibc, compiler_libraries=compiler)
    return {gate.name: gate for gate in found}


def test_a_good_library_passes_all() -> None:
    assert {gate.verdict for gate in gates().values()} == {Verdict.PASS}


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("machine", {"machine": "arm64"}),
        ("no executable stack", {"executable_stack": True}),
        ("no text relocations", {"text_relocations": True}),
        ("stripped", {"stripped": False}),
        ("public API only", {"exported": ("OrtGetApiBase", "_ZN11onnxruntime3fooEv")}),
        ("public API only", {"exported": ()}),
        ("needed libraries", {"needed": ("libc.so.6", "libstdc++.so.6")}),
        ("needed libraries", {"needed": ("libevil.so.6",)}),
        ("needed libraries", {"needed": ("libc.so.6.evil",)}),
        ("oldest glibc", {"symbol_versions": ("GLIBC_2.18",)}),
        ("oldest glibc", {"symbol_versions": ("GLIBC_ABI_DT_RELR",)}),
        ("load alignment", {"load_alignment": 0}),
        ("load alignment", {"load_alignment": 2048}),
        ("load alignment", {"load_alignment": 4097}),
    ],
)
def test_each_property_can_be_missing(name: str, facts: dict[str, Any]) -> None:
    """One wrong fact fails its own gate and no other, and the detail says what it is."""
    found = gates(**facts)
    assert [gate.name for gate in found.values() if gate.verdict is Verdict.FAIL] == [name]
    assert found[name].detail


def test_versions_are_compared_as_numbers() -> None:
    assert gates(symbol_versions=("GLIBC_2.9",))["oldest glibc"].verdict is Verdict.PASS
    assert gates(glibc="2.9", symbol_versions=("GLIBC_2.17",))["oldest glibc"].verdict is Verdict.FAIL


def test_other_version_names_say_nothing_of_glibc() -> None:
    """Private and foreign versions are left out."""
    found = gates(symbol_versions=("GCC_3.0", "GLIBC_PRIVATE", "CXXABI_1.3"))
    assert found["oldest glibc"].detail.startswith("needs no version")


def test_without_a_promise_glibc_is_not_judged() -> None:
    """The system's compiler promises nothing; what is needed is still said."""
    gate = gates(glibc="", symbol_versions=("GLIBC_2.34",))["oldest glibc"]
    assert gate.verdict is Verdict.NOT_JUDGED
    assert "2.34" in gate.detail


def test_compiler_libraries_are_a_matter_of_the_compiler() -> None:
    """What gcc builds may need libstdc++."""
    needed = ("libstdc++.so.6", "libgcc_s.so.1", "libc.so.6")
    assert gates(compiler=True, needed=needed)["needed libraries"].verdict is Verdict.PASS


def test_arm64_pages_are_larger() -> None:
    """A library aligned to 4096 bytes does not load on a kernel with 64 KiB pages."""
    small = gates("arm64", machine="arm64")["load alignment"]
    large = gates("arm64", machine="arm64", load_alignment=65536)["load alignment"]
    assert (small.verdict, large.verdict) == (Verdict.FAIL, Verdict.PASS)


def test_many_exports_are_cut_short() -> None:
    detail = gates(exported=tuple(f"symbol{n}" for n in range(3000)))["public API only"].detail
    assert detail.startswith("exports 3,000 other symbols: ")
    assert len(detail) < 120
    assert gates(exported=("symbol",))["public API only"].detail == "exports 1 other symbol: symbol"


EXPORTED = frozenset(GOOD.exported)


def test_an_archive_offers_what_the_shared_library_does() -> None:
    """Nothing more, so that it clashes with no application, and nothing less."""
    gate = check_archive(EXPORTED, frozenset({"memcpy", "pthread_create"}), GOOD)
    assert (gate.verdict, gate.detail) == (Verdict.PASS, "offers 2 names, asks for 2")


@pytest.mark.parametrize("offered", [EXPORTED | {"_ZN4absl3fooEv"}, EXPORTED - {"OrtGetApiBase"}, frozenset()])
def test_an_archive_that_offers_other_names_fails(offered: frozenset[str]) -> None:
    gate = check_archive(offered, frozenset(), GOOD)
    assert gate.verdict is Verdict.FAIL
    assert min(offered ^ EXPORTED) in gate.detail


@pytest.mark.parametrize(
    "name", ["_Znwm", "_ZNSt3__112basic_stringIcE4growEm", "__gxx_personality_v0", "_ZSt9terminatev"]
)
def test_an_archive_that_needs_a_cxx_library_fails(name: str) -> None:
    """A C program could not link it."""
    gate = check_archive(EXPORTED, frozenset({"memcpy", name}), GOOD)
    assert (gate.verdict, gate.detail) == (Verdict.FAIL, f"asks for C++ names: {name}")


def test_crooked_tensors_fail_and_are_named() -> None:
    """The model's name is the gate's, so that several models are told apart."""
    assert check_tensors("vad", (), in_place=True).verdict is Verdict.PASS
    gate = check_tensors("vad", CROOKED, in_place=True)
    assert (gate.name, gate.verdict) == ("tensors of vad", Verdict.FAIL)
    assert CROOKED[0] in gate.detail


def test_crooked_tensors_that_are_copied_are_reported_and_not_judged() -> None:
    """An application that does not ask for reading in place may have them; the report says what not to do."""
    gate = check_tensors("vad", CROOKED, in_place=False)
    assert (gate.name, gate.verdict) == ("tensors of vad", Verdict.NOT_JUDGED)
    assert CROOKED[0] in gate.detail
    assert "session.use_ort_model_bytes_for_initializers" in gate.detail


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("oldest glibc", "minimum glibc"),
        ("needed libraries", 'compiler = "zig"'),
        ("tensors of vad", "session.use_ort_model_bytes_for_initializers"),
        ("stripped", "report this"),
    ],
)
def test_a_failed_gate_says_what_to_do(name: str, said: str) -> None:
    """What the buildspec can mend, or that nothing of one's own is at fault."""
    assert said in gate_hint(Gate(name=name, verdict=Verdict.FAIL, detail="d"))


def test_gates_with_a_hint_of_their_own_exist() -> None:
    assert HINTS.keys() <= gates().keys()


@pytest.mark.parametrize("architecture", [*Architecture])
def test_every_architecture_has_a_page_size(architecture: Architecture) -> None:
    """A new one is not judged by another's."""
    assert architecture.value in PAGE_BYTES


def test_musls_one_library_is_on_every_musl_system() -> None:
    """Programs ask for it as `libc.so`; one of that name with a suffix is something else."""
    assert gates(needed=("libc.so",), symbol_versions=())["needed libraries"].verdict is Verdict.PASS
    assert gates(needed=("libc.so.musl",))["needed libraries"].verdict is Verdict.FAIL
