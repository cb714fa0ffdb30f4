"""Invoke's entry point in a checkout: the tasks of the installed program `ortrim`, and those of the benchmarks."""

import sys
from pathlib import Path

from invoke.collection import Collection

from ortrim.cli.tasks import namespace_for

sys.path.insert(0, str(Path(__file__).parent / "benchmarks"))

import measuring

namespace = namespace_for(sys.argv[1:])
namespace.add_collection(Collection.from_module(measuring), name="measure")
