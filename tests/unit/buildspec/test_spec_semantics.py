"""What does not fit together in a buildspec of the right structure, in the exact words the user reads."""

from collections.abc import Callable

import pytest

from ortrim.buildspec.buildspec import LoadedSpec

MODEL = """
[[models]]
name = "m"
path = "m.onnx"
"""
CASE = MODEL + '[[models.cases]]\nname = "c"\n'
REMOTE = f'[[models]]\nname = "m"\nsha256 = "{"0" * 64}"\n'
SOURCE_HINT = "\n  hint: give exactly one of 'path', 'url' and 'wheel'"
URL_HINT = "\n  hint: use an https:// address without a user name; http:// is possible only on loopback"
FOLDER_HINT = "\n  hint: paths are relative to the buildspec's folder"

BAD = {
    "no source": ('[[models]]\nname = "m"', "error: model-source\n  kws.toml: 'models[0]' has no source" + SOURCE_HINT),
    "two sources": (
        MODEL + f'url = "https://example.org/m.onnx"\nsha256 = "{"0" * 64}"',
        "error: model-source\n  kws.toml: 'models[0]' has 2 sources: 'path' and 'url'" + SOURCE_HINT,
    ),
    "address without digest": (
        '[[models]]\nname = "m"\nurl = "https://example.org/m.onnx"',
        """error: missing-key
  kws.toml: 'models[0].sha256' is missing
  hint: a model from 'url' is used only if it has this digest: sha256sum FILE shows it""",
    ),
    "wheel without digest": (
        '[[models]]\nname = "m"\nwheel = "silero-vad==6.2.3"\nmember = "m.onnx"',
        """error: missing-key
  kws.toml: 'models[0].sha256' is missing
  hint: a model from 'wheel' is used only if it has this digest: sha256sum FILE shows it""",
    ),
    "wheel without member": (
        REMOTE + 'wheel = "silero-vad==6.2.3"',
        """error: missing-key
  kws.toml: 'models[0].member' is missing
  hint: give the model's path inside the wheel of 'silero-vad==6.2.3'""",
    ),
    "member without wheel": (
        MODEL + 'member = "m.onnx"',
        "error: stray-key\n  kws.toml: 'models[0].member' has a meaning only with 'wheel'",
    ),
    "links of a model that is downloaded": (
        REMOTE + 'wheel = "x==1"\nmember = "m.onnx"\nallow_links = true',
        "error: stray-key\n  kws.toml: 'models[0].allow_links' has a meaning only with 'path'",
    ),
    "member that climbs out": (
        REMOTE + 'wheel = "x==1"\nmember = "data/../../etc/passwd"',
        """error: unsafe-member
  kws.toml: 'models[0].member' must be a relative path with '/' between its parts and no '..', \
not 'data/../../etc/passwd'""",
    ),
    "absolute member": (
        REMOTE + 'wheel = "x==1"\nmember = "/etc/passwd"',
        """error: unsafe-member
  kws.toml: 'models[0].member' must be a relative path with '/' between its parts and no '..', not '/etc/passwd'""",
    ),
    "member of another system": (
        REMOTE + "wheel = 'x==1'\nmember = 'data\\m.onnx'",
        """error: unsafe-member
  kws.toml: 'models[0].member' must be a relative path with '/' between its parts and no '..', not 'data\\\\m.onnx'""",
    ),
    "address in the clear": (
        REMOTE + 'url = "http://example.org/m.onnx"',
        "error: unsafe-url\n  kws.toml: 'models[0].url' is not encrypted" + URL_HINT,
    ),
    "address that looks like loopback": (
        REMOTE + 'url = "http://localhost.example.org/m.onnx"',
        "error: unsafe-url\n  kws.toml: 'models[0].url' is not encrypted" + URL_HINT,
    ),
    "address of a file": (
        REMOTE + 'url = "file:///etc/passwd"',
        "error: unsafe-url\n  kws.toml: 'models[0].url' is not an https:// address" + URL_HINT,
    ),
    "address with a password": (
        REMOTE + 'url = "https://me:secret@example.org/m.onnx"',
        "error: unsafe-url\n  kws.toml: 'models[0].url' holds a user name or a password, which would show in logs and "
        "reports" + URL_HINT,
    ),
    "address with a broken host": (
        REMOTE + 'url = "https://[::1/m.onnx"',
        "error: unsafe-url\n  kws.toml: 'models[0].url' is not an address" + URL_HINT,
    ),
    "address with a line break": (
        REMOTE + 'url = "https://example.org/m.onnx\\nHost: x"',
        "error: unsafe-url\n  kws.toml: 'models[0].url' holds blanks or characters outside ASCII" + URL_HINT,
    ),
    "missing model": (
        '[[models]]\nname = "m"\npath = "other.onnx"',
        "error: model-missing\n  kws.toml: 'models[0].path' names 'other.onnx', which is not a file" + FOLDER_HINT,
    ),
    "folder as model": (
        '[[models]]\nname = "m"\npath = "checkout"',
        "error: model-missing\n  kws.toml: 'models[0].path' names 'checkout', which is not a file" + FOLDER_HINT,
    ),
    "path that no system has": (
        '[[models]]\nname = "m"\npath = "\\u0000"',
        "error: model-missing\n  kws.toml: 'models[0].path' names '\\x00', which is not a file" + FOLDER_HINT,
    ),
    "path that is too long": (
        f'[[models]]\nname = "m"\npath = "{"x" * 300}"',
        f"error: model-missing\n  kws.toml: 'models[0].path' names '{'x' * 71}..., which is not a file" + FOLDER_HINT,
    ),
    "missing recorded inputs": (
        CASE + 'data = "other.npz"',
        """error: data-missing
  kws.toml: 'models[0].cases[0].data' names 'other.npz', which is not a file
  hint: an .npz file or a test_data_set_* folder, relative to the buildspec's folder""",
    ),
    "recorded inputs of no known kind": (
        CASE + 'data = "m.onnx"',
        """error: data-missing
  kws.toml: 'models[0].cases[0].data' names 'm.onnx', which is not a folder
  hint: an .npz file or a test_data_set_* folder, relative to the buildspec's folder""",
    ),
    "recorded inputs with a seed": (
        CASE + 'data = "inputs.npz"\nseed = 1',
        """error: stray-key
  kws.toml: 'models[0].cases[0].seed' has no meaning with 'data', whose recorded inputs are used unchanged""",
    ),
    "layout at the wrong level": (
        MODEL + 'layout = "nchwc8"',
        """error: bad-value
  kws.toml: 'models[0].layout' needs level = 'all', not 'extended'
  why: a lower level leaves the operators as they are""",
    ),
    "wide layout at the wrong level": (
        MODEL + 'layout = "nchwc16"',
        """error: bad-value
  kws.toml: 'models[0].layout' needs level = 'all', not 'extended'
  why: a lower level leaves the operators as they are""",
    ),
    "signed operators at the wrong level": (
        MODEL + 'level = "basic"\nlayout = "s8s8"',
        """error: bad-value
  kws.toml: 'models[0].layout' needs level = 'extended' or 'all', not 'basic'
  why: a lower level leaves the operators as they are""",
    ),
    "weights in place of a file that the runtime reads": (
        'session = { load = "file", in_place = true }\n' + MODEL,
        """error: stray-key
  kws.toml: 'session.in_place' cannot be used with load = 'file': the runtime then reads the model into its own memory
  hint: leave 'load' out, or use 'map' or 'bytes'""",
    ),
    "the same in one model": (
        MODEL + 'session = { load = "file", in_place = true }',
        """error: stray-key
  kws.toml: 'models[0].session.in_place' cannot be used with load = 'file': the runtime then reads the \
model into its own memory
  hint: leave 'load' out, or use 'map' or 'bytes'""",
    ),
    "one value and a range": (
        CASE + "inputs = { x = { value = 1, low = 0, high = 2 } }",
        """error: stray-key
  kws.toml: 'models[0].cases[0].inputs.x.low' has no meaning with 'value', which fills the whole tensor
error: stray-key
  kws.toml: 'models[0].cases[0].inputs.x.high' has no meaning with 'value', which fills the whole tensor""",
    ),
    "choices with bounds": (
        CASE + "inputs = { x = { choices = [1, 2], low = 0 } }",
        """error: stray-key
  kws.toml: 'models[0].cases[0].inputs.x.low' has no meaning with 'choices', which says what is drawn""",
    ),
    "no choices": (
        CASE + "inputs = { x = { choices = [] }, y = { choices = [[1], []] } }",
        """error: bad-value
  kws.toml: 'models[0].cases[0].inputs.x.choices' must not be empty
error: bad-value
  kws.toml: 'models[0].cases[0].inputs.y.choices' must not be empty""",
    ),
    "choices of two kinds": (
        CASE + 'inputs = { x = { choices = ["a", ["b"]] } }',
        """error: bad-value
  kws.toml: 'models[0].cases[0].inputs.x.choices' must be values, or an array of values for each position of the last\
 axis""",
    ),
    "range upside down": (
        CASE + "inputs = { x = { low = 2, high = 1.5 } }",
        """error: bad-value
  kws.toml: 'models[0].cases[0].inputs.x.low' must be less than 'high', 1.5, not 2
  hint: to fill the tensor with one value, use 'value'""",
    ),
    "range above its default end": (
        CASE + "inputs = { x = { low = 20 } }",
        """error: bad-value
  kws.toml: 'models[0].cases[0].inputs.x.low' must be less than the default of 'high', 9, not 20
  hint: give 'high' as well""",
    ),
    "range below its default start": (
        CASE + "inputs = { x = { high = -2 } }",
        """error: bad-value
  kws.toml: 'models[0].cases[0].inputs.x.high' must be greater than the default of 'low', -1, not -2
  hint: give 'low' as well""",
    ),
    "a device of Windows": (
        MODEL.replace('"m"', '"aux"'),
        """error: bad-value
  kws.toml: 'models[0].name' is 'aux', which is a reserved device name on Windows
  hint: choose another name: a package has a file of it""",
    ),
    "two models of one name": (
        MODEL + MODEL,
        "error: duplicate-name\n  kws.toml: 'models[1].name' is 'm' for the second time",
    ),
    "two references": (
        MODEL + "reference = true\n" + MODEL.replace("'m'", "'n'").replace('"m"', '"n"') + "reference = true",
        "error: second-reference\n  kws.toml: 'models[1].reference' is true for the second time",
    ),
    "two cases of one name": (
        CASE + '[[models.cases]]\nname = "c"',
        "error: duplicate-name\n  kws.toml: 'models[0].cases[1].name' is 'c' for the second time",
    ),
    "numbers that are also drawn": (
        CASE + "inputs = { x = { count_from = 0, high = 3 } }",
        """error: stray-key
  kws.toml: 'models[0].cases[0].inputs.x.high' has no meaning with 'count_from', which says what the numbers are""",
    ),
    "states of no case": (
        CASE + 'states = { past = "present" }',
        """error: stray-key
  kws.toml: 'models[0].cases[0].states' has no meaning without 'after'
  hint: name the case that runs before: after = '...'""",
    ),
    "a state that the case itself gives": (
        CASE + 'after = "b"\nstates = { x = "y" }\ninputs = { x = { value = 0 } }\n[[models.cases]]\nname = "b"',
        """error: stray-key
  kws.toml: 'models[0].cases[0].states.x' feeds 'x', which 'inputs' gives
  hint: leave one of them out""",
    ),
    "a case after one that is not there": (
        CASE + 'after = "d"\n[[models.cases]]\nname = "then"\nafter = "them"',
        """error: unknown-case
  kws.toml: 'models[0].cases[0].after' is 'd', which is no case of this model
  hint: the cases are c and then
error: unknown-case
  kws.toml: 'models[0].cases[1].after' is 'them', which is no case of this model
  hint: did you mean 'then'?""",
    ),
    "a case after itself": (
        CASE + 'after = "c"',
        """error: case-circle
  kws.toml: 'models[0].cases[0].after' leads back to the case itself: 'c' after 'c'
  hint: leave 'after' out of the case that runs first""",
    ),
    "cases in a circle, and one that leads into it": (
        MODEL + 'cases = [{ name = "a", after = "b" }, { name = "b", after = "c" }, { name = "c", after = "b" }]',
        """error: case-circle
  kws.toml: 'models[0].cases[1].after' leads back to the case itself: 'b' after 'c' after 'b'
  hint: leave 'after' out of the case that runs first""",
    ),
    "recorded inputs after a case": (
        CASE + 'data = "inputs.npz"\nafter = "c"',
        """error: stray-key
  kws.toml: 'models[0].cases[0].after' has no meaning with 'data', whose recorded inputs are used unchanged
error: case-circle
  kws.toml: 'models[0].cases[0].after' leads back to the case itself: 'c' after 'c'
  hint: leave 'after' out of the case that runs first""",
    ),
    "one target twice": (
        MODEL + '[[targets]]\nid = "linux-x64"\n' * 2,
        "error: duplicate-name\n  kws.toml: 'targets[1].id' is 'linux-x64' for the second time",
    ),
    "one target by two names": (
        MODEL + '[[targets]]\nid = "linux-x64"\n[[targets]]\nid = "linux-amd64"',
        "error: duplicate-name\n  kws.toml: 'targets[1].id' is 'linux-x64' for the second time",
    ),
    "a processor without a system": (
        MODEL + '[[targets]]\nid = "armv7"',
        """error: unknown-target
  kws.toml: 'targets[0].id' is 'armv7', which is not a target
  hint: choose linux-armhf or android-armeabi-v7a""",
    ),
    "misspelt target": (
        MODEL + '[[targets]]\nid = "linux-x86"',
        """error: unknown-target
  kws.toml: 'targets[0].id' is 'linux-x86', which is not a target
  hint: did you mean 'linux-x64'?""",
    ),
    "glibc for a system compiler": (
        MODEL + '[[targets]]\nid = "linux-x64"\ncompiler = "gcc"\nglibc = "2.28"',
        """error: stray-key
  kws.toml: 'targets[0].glibc' has a meaning only with compiler = 'zig'
  why: gcc links against the glibc of the system that it runs on""",
    ),
    "glibc for musl": (
        MODEL + '[[targets]]\nid = "linux-arm64-musl"\nglibc = "2.28"',
        """error: stray-key
  kws.toml: 'targets[0].glibc' has no meaning for this target
  why: linux-arm64-musl is built against musl""",
    ),
    "processor of another architecture": (
        MODEL + '[[targets]]\nid = "linux-riscv64"\ncpu = "cortex-a53"',
        """error: unknown-cpu
  kws.toml: 'targets[0].cpu' is 'cortex-a53', which is not a processor that linux-riscv64 can be built for
  hint: choose among sifive-u74 and spacemit-x60, or leave 'cpu' out for any processor of the architecture""",
    ),
    "baseline for a system compiler": (
        MODEL + '[[targets]]\nid = "linux-x64"\ncompiler = "gcc"\ncpu = "x86-64-v3"',
        """error: stray-key
  kws.toml: 'targets[0].cpu' has a meaning only with compiler = 'zig'
  why: gcc compiles only for the architecture that it finds on this machine""",
    ),
    "static library of a system compiler": (
        MODEL + '[[targets]]\nid = "linux-x64"\ncompiler = "gcc"\nlinkage = "static"',
        """error: stray-key
  kws.toml: 'targets[0].linkage' has a meaning only with compiler = 'zig'
  why: the archive is joined with zig's linker; gcc's C++ library would be missing from it
  hint: use compiler = 'zig', or linkage = 'shared' for this target""",
    ),
    "static libraries with a system compiler": (
        'linkage = "static"' + MODEL + '[[targets]]\nid = "linux-x64"\ncompiler = "clang"',
        """error: stray-key
  kws.toml: 'targets[0].compiler' cannot make a static library
  why: the archive is joined with zig's linker; clang's C++ library would be missing from it
  hint: use compiler = 'zig', or linkage = 'shared' for this target""",
    ),
    "choices for Android on Linux": (
        MODEL + '[[targets]]\nid = "linux-x64"\nandroid = { api = 28 }',
        """error: stray-key
  kws.toml: 'targets[0].android' has a meaning only for Android, and the target is linux-x64""",
    ),
    "what the NDK decides": (
        MODEL + '[[targets]]\nid = "android-x86"\ncompiler = "clang"\nglibc = "2.28"\ncpu = "x86-64-v3"',
        """error: stray-key
  kws.toml: 'targets[0].compiler' has no meaning for Android
  why: libraries for Android are compiled by the NDK, or by zig
  hint: leave it out; 'android.toolchain' is what there is to choose
error: stray-key
  kws.toml: 'targets[0].glibc' has no meaning for Android
  why: Android's C library is bionic
  hint: leave it out; 'android.api' is what there is to choose
error: stray-key
  kws.toml: 'targets[0].cpu' has no meaning for Android
  why: the ABI defines the baseline CPU; better ones are detected at run time
  hint: leave it out""",
    ),
    "static library for Android": (
        MODEL + '[[targets]]\nid = "android-arm64-v8a"\nlinkage = "static"',
        """error: stray-key
  kws.toml: 'targets[0].linkage' has no meaning for Android
  why: an AAR holds shared libraries, which Java loads
  hint: use linkage = 'shared' for this target""",
    ),
    "static libraries with Android among the targets": (
        'linkage = "static"' + MODEL + '[[targets]]\nid = "android-arm64-v8a"',
        """error: stray-key
  kws.toml: 'targets[0].id' cannot be a static library, as 'linkage' says
  why: an AAR holds shared libraries, which Java loads
  hint: use linkage = 'shared' for this target""",
    ),
    "choices for Apple elsewhere": (
        MODEL + '[[targets]]\nid = "linux-x64"\napple = {}\n[[targets]]\nid = "android-x86"\napple = {}',
        """error: stray-key
  kws.toml: 'targets[0].apple' has a meaning only for Apple's systems, and the target is linux-x64
error: stray-key
  kws.toml: 'targets[1].apple' has a meaning only for Apple's systems, and the target is android-x86""",
    ),
    "what Xcode decides": (
        MODEL + '[[targets]]\nid = "ios-arm64"\ncompiler = "clang"\nglibc = "2.28"\ncpu = "cortex-a53"\n'
        'linkage = "static"\nandroid = {}',
        """error: stray-key
  kws.toml: 'targets[0].compiler' has no meaning for Apple's systems
  why: its libraries are compiled by Xcode, or by zig
  hint: leave it out; 'apple.xcode' is what there is to choose
error: stray-key
  kws.toml: 'targets[0].glibc' has no meaning for Apple's systems
  why: its C library is the system's
  hint: leave it out; 'apple.ios_deployment_target' is what there is to choose
error: stray-key
  kws.toml: 'targets[0].cpu' has no meaning for Apple's systems
  why: it has few processors; better ones are detected at run time
  hint: leave it out
error: stray-key
  kws.toml: 'targets[0].linkage' has no meaning for Apple's systems
  why: an xcframework holds frameworks
  hint: leave it out; 'apple.framework' is what there is to choose
error: stray-key
  kws.toml: 'targets[0].android' has a meaning only for Android, and the target is ios-arm64""",
    ),
    "the oldest system of another": (
        MODEL + '[[targets]]\nid = "macos-arm64"\napple.ios_deployment_target = "16.0"\n'
        '[[targets]]\nid = "maccatalyst-arm64"\napple.macos_deployment_target = "14.0"',
        """error: stray-key
  kws.toml: 'targets[0].apple.ios_deployment_target' has no meaning for macos-arm64, which goes by \
'macos_deployment_target'
error: stray-key
  kws.toml: 'targets[1].apple.macos_deployment_target' has no meaning for maccatalyst-arm64, which goes by \
'ios_deployment_target'""",
    ),
    "source without its path": (
        'onnxruntime.source = "path"' + MODEL,
        """error: missing-key
  kws.toml: 'onnxruntime.path' is missing
  hint: give the folder of an ONNX Runtime checkout""",
    ),
    "path without its source": (
        'onnxruntime.path = "checkout"' + MODEL,
        """error: stray-key
  kws.toml: 'onnxruntime.path' has a meaning only with source = 'path'
  hint: add source = 'path', or leave 'path' out""",
    ),
    "build options beside upstream's own": (
        'profile = "upstream"\nbuild_options = { hot = "-O3", icf = false }' + MODEL,
        """error: stray-key
  kws.toml: 'build_options' has no meaning with profile = 'upstream'
  why: that profile is exactly upstream's own flags
  hint: leave 'hot' and 'icf' out, or use another profile""",
    ),
    "missing checkout": (
        'onnxruntime = { source = "path", path = "m.onnx" }' + MODEL,
        "error: source-missing\n  kws.toml: 'onnxruntime.path' names 'm.onnx', which is not a folder" + FOLDER_HINT,
    ),
    "budgets that contradict each other": (
        "budgets = { p50_ms = 10, p99_ms = 5 }" + MODEL,
        """error: bad-value
  kws.toml: 'budgets' allow 5 ms at the 99th percentile, less than the 10 ms of the median""",
    ),
    "budgets of a target against the common ones": (
        "budgets = { p50_ms = 10 }" + MODEL + '[[targets]]\nid = "linux-x64"\nbudgets = { p99_ms = 5 }',
        """error: bad-value
  kws.toml: 'targets[0].budgets' allow 5 ms at the 99th percentile, less than the 10 ms of the median""",
    ),
}


@pytest.mark.parametrize(("text", "words"), BAD.values(), ids=BAD)
def test_contradictions_are_refused_in_exact_words(refused: Callable[[str], str], text: str, words: str) -> None:
    assert refused(text) == words


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3:8080", "[::1]:80", "LOCALHOST"])
def test_plain_http_goes_on_loopback(load: Callable[[str], LoadedSpec], host: str) -> None:
    assert load(REMOTE + f'url = "http://{host}/m.onnx"').models[0].url == f"http://{host}/m.onnx"


@pytest.mark.parametrize("data", ["inputs.npz", "test_data_set_0"])
def test_both_kinds_of_recorded_inputs_are_found(load: Callable[[str], LoadedSpec], data: str) -> None:
    loaded = load(CASE + f'data = "{data}"')
    recorded = loaded.models[0].cases[0].data
    assert recorded is not None
    assert loaded.resolve(recorded).exists()


@pytest.mark.parametrize("text", ['profile = "upstream"\nbuild_options = {}', 'build_options = { hot = "-O3" }'])
def test_build_options_and_upstreams_profile_are_fine_alone(load: Callable[[str], LoadedSpec], text: str) -> None:
    """A table that chooses nothing changes nothing."""
    assert load(text + MODEL).profile in {"upstream", "balanced"}


def test_the_same_case_name_in_two_models_is_fine(load: Callable[[str], LoadedSpec]) -> None:
    loaded = load(CASE + CASE.replace('"m"', '"n"'))
    assert [model.cases[0].name for model in loaded.models] == ["c", "c"]


def test_choices_for_android_go_at_the_top_whatever_the_targets(load: Callable[[str], LoadedSpec]) -> None:
    text = 'linkage = "static"\nandroid = { api = 30, providers = ["nnapi"] }' + MODEL
    targets = '[[targets]]\nid = "linux-x64"\n[[targets]]\nid = "android-x86"\nlinkage = "shared"\nandroid.api = 28'
    loaded = load(text + targets)
    assert loaded.android.api == 30
    assert loaded.targets[1].android is not None
    assert loaded.targets[1].android.api == 28
