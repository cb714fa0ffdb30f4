from dataclasses import replace
from typing import Literal

from aar_samples import android_plan
from ortrim.platforms.android.jni import jni_compiling, jni_linking
from sample_plans import sample_plan


def test_a_library_for_linux_is_linked_stripped_and_named() -> None:
    """Only JNI's own symbols are visible; paths are symbolic."""
    job = sample_plan("linux-x64").targets[0].job
    arguments, linking = jni_compiling(), jni_linking(job)
    assert linking[0] == "cc"
    assert {"-shared", "-s", "-Wl,--build-id=sha1", "-Wl,-soname,libonnxruntime4j_jni.so"} <= set(linking)
    assert {"-fPIC", "-fvisibility=hidden"} <= set(arguments)
    assert arguments[arguments.index("-I${build}/headers") + 1] == "-I${sources}/onnxruntime/include"


def test_a_library_for_android_is_linked_as_the_runtime_is() -> None:
    """Pages of 16 KB, relocations packed by API level, and by zig past its driver, which refuses that; not stripped."""
    planned = android_plan(("arm64-v8a",), api=28).targets[0].job
    linkers: dict[Literal["ndk", "zig"], str] = {"ndk": "cc", "zig": "c++"}
    for kind, linker in linkers.items():
        found, *words = jni_linking(replace(planned, toolchain=replace(planned.toolchain, kind=kind)))
        assert found == linker
        assert {"-Wl,-z,max-page-size=16384", "-Wl,--pack-dyn-relocs=android+relr", "-Wl,--no-rosegment"} <= set(words)
        assert "-s" not in words
        assert ("-DORTRIM_PAST_DRIVER" in words) == (kind == "zig")
