"""Does for the toy what upstream's build.py does for ONNX Runtime, with the same options."""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CORE = Path("core", "providers")
OPERATOR = re.compile(r'(\w+)(?:\{"inputs": \{"0": \["(\w*)"\]\}\})?(?:,|$)', re.MULTILINE)


def reduce_operators(config: str, generated: Path) -> None:
    """Write the registrations and the types of the operators in a config, anew as upstream does."""
    shutil.rmtree(generated, ignore_errors=True)
    (generated / CORE / "cpu").mkdir(parents=True)
    wanted = dict(OPERATOR.findall(config))
    unwanted = () if "no_ops_specified" in config else tuple(name for name in ("Add", "Gemm") if name not in wanted)
    lines = (ROOT / "onnxruntime" / CORE / "cpu" / "cpu_execution_provider.cc").read_text().splitlines(keepends=True)
    kept = (line for line in lines if not any(f"_{name}_" in line for name in unwanted))
    (generated / CORE / "cpu" / "cpu_execution_provider.cc").write_text("".join(kept))
    control = (ROOT / "onnxruntime" / CORE / "op_kernel_type_control_overrides.inc").read_text()
    allowed = ((name, types) for name, types in wanted.items() if types)
    macro = "ORT_SPECIFY_OP_KERNEL_ARG_ALLOWED_TYPES"
    added = "".join(f"{macro}(kOnnxDomain, {name}, Input, 0, {types});\n" for name, types in allowed)
    mark = "// @@insertion_point_end"
    (generated / CORE / "op_kernel_type_control_overrides.inc").write_text(control.replace(mark, added + mark))


def main() -> int:
    parser = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
    for option in ("--build_dir", "--config", "--cmake_path", "--include_ops_by_config", "--parallel", "--target"):
        parser.add_argument(option)
    parser.add_argument("--cmake_extra_defines", action="append", nargs="*", default=[])
    parser.add_argument("--update", action="store_true")
    chosen, _ = parser.parse_known_args()
    folder = Path(chosen.build_dir, chosen.config)
    if chosen.update:
        reduce_operators(
            Path(chosen.include_ops_by_config).read_text(), folder / "op_reduction.generated" / "onnxruntime"
        )
        definitions = ["-DCMAKE_BUILD_TYPE=MinSizeRel"]
        definitions += [f"-D{each}" for group in chosen.cmake_extra_defines for each in group]
        options: list[str | Path] = ["-S", ROOT / "cmake", "-B", folder, "-G", "Ninja", *definitions]
    else:
        options = ["--build", folder, "--target", chosen.target, "--", f"-j{chosen.parallel}"]
    return subprocess.run([chosen.cmake_path, *options], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
