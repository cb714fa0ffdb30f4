"""Invoke's entry point in a checkout: the tasks of the installed program `ortrim`, and those of the benchmarks."""

import sys
from pathlib import Path

from invoke.collection import Collection
from invoke.main import program

from ortrim.cli.namespace import namespace_for
from ortrim.cli.program import OrtrimProgram

sys.path.insert(0, str(Path(__file__).parent / "benchmarks"))

import measuring

program.__class__ = OrtrimProgram  # Invoke asks a collection for no program; its own takes no words for models

namespace = namespace_for(sys.argv[1:])
namespace.add_collection(Collection.from_module(measuring), name="measure")
