"""A package with a library that runs: the installed wheel's, and a program that is built against it."""

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Final

import onnxruntime

from ortrim.compiling.plan import Package
from ortrim.package.manifest import PackageInputs
from ortrim.package.package import make_package
from sample_package import make_inputs

HEADER: Final = """
#pragma once
typedef struct OrtApi OrtApi;
typedef struct OrtApiBase {
  const OrtApi* (*GetApi)(unsigned version);
  const char* (*GetVersionString)(void);
} OrtApiBase;
const OrtApiBase* OrtGetApiBase(void);
"""
"""The beginning of ONNX Runtime's C API, which has stayed the same since its first release."""
PROGRAM: Final = """
#include <onnxruntime_c_api.h>
#include <stdio.h>
int main(void) { return printf("version %s\\n", OrtGetApiBase()->GetVersionString()) < 0; }
"""


def wheel_inputs(folder: Path) -> PackageInputs:
    inputs = make_inputs(folder)
    spec = importlib.util.find_spec("onnxruntime")
    assert spec is not None
    assert spec.origin is not None
    (library,) = (Path(spec.origin).parent / "capi").glob("libonnxruntime.so.*")
    (inputs.result.headers / "onnxruntime_c_api.h").write_text(HEADER)
    result = replace(inputs.result, library=library)
    job = replace(inputs.job, ort_version=onnxruntime.__version__)
    (target,) = inputs.plan.targets
    plan = replace(inputs.plan, ort_version=job.ort_version, targets=(replace(target, job=job),))
    return replace(inputs, plan=plan, result=result, job=job)


def make_wheel_package(folder: Path) -> Package:
    return make_package(wheel_inputs(folder / "built"), folder / "out")
