from dataclasses import replace

from aar_samples import android_plan
from ortrim.build.plan import AndroidBuild
from ortrim.platforms.android.jni import config_header, jni_arguments
from sample_plans import sample_plan


def test_a_library_for_linux_is_linked_stripped_and_named() -> None:
    """Only JNI's own symbols are visible; paths are symbolic."""
    arguments = jni_arguments(sample_plan("linux-x64").targets[0].job)
    assert {"-shared", "-fPIC", "-fvisibility=hidden", "-s", "-Wl,--build-id=sha1"} <= set(arguments)
    assert "-Wl,-soname,libonnxruntime4j_jni.so" in arguments
    assert arguments[arguments.index("-I${build}/headers") + 1] == "-I${sources}/onnxruntime/include"
    assert not any(argument.startswith("-DUSE_") for argument in arguments)


def test_a_library_for_android_is_linked_as_the_runtime_is() -> None:
    """Pages of 16 KB and packed relocations by API level; symbols stay for `finishing`."""
    job = android_plan(("arm64-v8a",), api=28).targets[0].job
    arguments = jni_arguments(job)
    assert "-Wl,-z,max-page-size=16384" in arguments
    assert "-Wl,--pack-dyn-relocs=android+relr" in arguments
    assert "-s" not in arguments


def test_providers_that_the_files_ask_for_are_defined() -> None:
    """NNAPI is one; XNNPACK is added by its name and needs nothing."""
    planned = android_plan(("arm64-v8a",)).targets[0].job
    job = replace(planned, android=AndroidBuild(api=24, stl="c++_static", providers=("nnapi", "xnnpack")))
    assert [argument for argument in jni_arguments(job) if argument.startswith("-D")] == ["-DUSE_NNAPI=1"]


def test_the_header_says_the_version() -> None:
    """It is all that the C files want of CMake's."""
    assert '#define ORT_VERSION "1.21.0"' in config_header("1.21.0")
