"""Names in backticks that read like ours are ours: what a sentence names is still there under that name."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = ROOT / "src" / "ortrim"
BACKTICKED: Final = re.compile(r"`([A-Za-z_](?=\w*[A-Z_./])[\w./]*)`")
"""Words of more than one part, as modules, files, functions and types have them."""
OTHERS_FILES: Final = re.compile(
    r"\.(?:bp|c|cc|cpp|h|inc|cmake|txt|json|lock|md|plist|xcprivacy|yml|fbs|pb|a|so(?:\.1)?|gz)$|^(?:actions|core|onnxruntime|tools/ci_build)/"
)
"""Files of upstream and of Apple, and those that ortrim writes."""
OTHERS: Final = frozenset({
    "__DATE__", "__FILE__",
    "Conv_3", "CreateGnuDebugdataMemory", "EM_MIPS", "FbsTypeInfo.tensordatatype_to_string", "GLIBC_2.17", "GLIBC_2.4",
    "IsOrtModelVersionSupported", "JarInputStream", "NS_3foo3barE", "ORTRIM_WHOLE", "ORT_ENABLE_LAYOUT",
    "TensorDataType",
    "TypeInfoValue", "VerificationError", "VerifyVersion", "VersionMap", "__ANDROID__", "___dso_handle", "__eh_frame",
    "__mh_dylib_header", "col_buffer_size", "export_off", "gen_def.py", "http.sslCAInfo", "iOSMac_macOS",
    "kws.hot.toml",
    "libgcc_s", "map_ort_constant_to_domain", "reduce_op_kernels.py", "systemUptime", "weak_bind_off", "x_scale",
})  # fmt: skip
"""Names of upstream, compilers, formats and other programs, and of examples."""


@cache
def our_names() -> frozenset[str]:
    """Return what our Python, C and data call anything, and the names of our files."""
    found = set()
    for file in (*SOURCE.rglob("*"), *(ROOT / "runner").glob("*"), *(ROOT / "tests").rglob("*.py")):
        if file == Path(__file__):
            continue
        found |= {file.name, file.stem}
        if file.suffix == ".py":
            found |= set(_names(ast.parse(file.read_bytes())))
        elif file.suffix in {".c", ".h", ".toml", ".cmake", ".j2"}:
            found |= set(re.findall(r"\w+", file.read_text(encoding="utf-8")))
    return frozenset(found)


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name) | ast.arg(arg=name):
                yield name
            case ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.alias(name=name):
                yield from name.split(".")
            case ast.Constant(value=str(text)) if re.fullmatch(r"[\w.]{1,60}", text):
                yield text


@cache
def names_by_module() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for file in SOURCE.rglob("*.py"):
        stem = file.parent.name if file.stem == "__init__" else file.stem
        siblings = {each.stem for each in file.parent.iterdir()} if file.stem == "__init__" else set()
        found[stem] = found.get(stem, frozenset()) | frozenset(_names(ast.parse(file.read_bytes()))) | siblings
    return found


def unknown(text: str) -> Iterator[str]:
    """Yield the names in backticks that are neither ours nor known to be another's."""
    for word in BACKTICKED.findall(text):
        parts = word.rstrip("./").replace("/", ".").removesuffix(".py").split(".")
        if word in OTHERS or OTHERS_FILES.search(word) or any((top / word).exists() for top in (ROOT, SOURCE)):
            continue
        if not our_names() >= set(parts) or any(
            name not in names_by_module().get(module, {name}) for module, name in pairwise(parts)
        ):
            yield word


def test_every_name_in_backticks_is_one() -> None:
    found = {
        f"{file.relative_to(ROOT)}: {word}"
        for file in SOURCE.rglob("*.py")
        for word in unknown(file.read_text(encoding="utf-8"))
    }
    assert sorted(found) == []


def test_a_dead_name_is_found() -> None:
    """A module, a function and a file that never were are found, and what is there is not."""
    text = "See `planner.py`, `base.command.run`, `no_such_rules.py`, `verify.no_such_module` and `NoSuchType`."
    assert list(unknown(text)) == ["no_such_rules.py", "verify.no_such_module", "NoSuchType"]


OWN_FOLDER: Final = re.compile(r"`((?:resources|runner|benchmarks|docker|(?=[a-z_/]+/`)[a-z_]+)/[\w./]*)`")
"""Paths of ours in sentences, and the folders that the map of the house names."""


def test_a_folder_that_is_named_is_there() -> None:
    found = [
        (file.name, name)
        for file in (*SOURCE.rglob("*.py"), ROOT / "docs/dev/architecture.md")
        for name in OWN_FOLDER.findall(file.read_text(encoding="utf-8"))
        if not any((top / name).exists() for top in (ROOT, SOURCE)) and not OTHERS_FILES.search(name)
    ]
    assert found == []


def test_no_two_files_of_tests_have_one_name() -> None:
    """Pytest imports them by their bare names: two of one name stop a run of both (`pytest --all`) before it begins."""
    names = Counter(file.name for file in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []
