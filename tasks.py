"""Invoke's entry point in a checkout; the installed program `ortrim` has the same tasks."""

import sys

from ortrim.cli.tasks import namespace_for

namespace = namespace_for(sys.argv[1:])
