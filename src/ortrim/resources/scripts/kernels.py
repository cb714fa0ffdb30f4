"""List the CPU kernels of one operator with their opsets and types, and the domains that have the operator.

Runs inside the full runtime's own Python, so it imports only the standard library and onnxruntime. Called with
the path of a request in JSON; writes its answer beside it.
"""

import json
import sys
from pathlib import Path

from onnxruntime.capi import onnxruntime_pybind11_state as state


def main(request_path: Path) -> None:
    """Answer `{"kernels": [{"domain": ..., "opsets": [first, last], "types": {"T": [...]}}], "known": [domain]}`."""
    name = json.loads(request_path.read_text(encoding="utf-8"))["operator"]
    kernels = [
        {
            "domain": kernel.domain or "ai.onnx",
            "opsets": list(kernel.version_range),
            "types": {key: sorted(types) for key, types in kernel.type_constraints.items()},
        }
        for kernel in state.get_all_opkernel_def()
        if kernel.op_name == name and kernel.provider == "CPUExecutionProvider"
    ]
    known = sorted({schema.domain or "ai.onnx" for schema in state.get_all_operator_schema() if schema.name == name})
    request_path.with_name("answer.json").write_text(json.dumps({"kernels": kernels, "known": known}), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
