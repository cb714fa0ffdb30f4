"""All tasks, those of features among them: each parses, calls one function and renders."""

from invoke.collection import Collection

from ortrim.bench import task as bench_task
from ortrim.cli import build, ci, measure, pins, release, setup
from ortrim.compat import task as compat_task
from ortrim.cost import task as cost_task
from ortrim.engines import task as engines_task
from ortrim.fetch import task as fetch_task
from ortrim.github import task as github_task
from ortrim.history import task as history_task
from ortrim.inspect import task as inspect_task
from ortrim.lint import task as lint_task
from ortrim.page import task as page_task
from ortrim.size import task as size_task

namespace = Collection()
for _module in (
    build,
    page_task,
    inspect_task,
    lint_task,
    compat_task,
    engines_task,
    cost_task,
    setup,
    fetch_task,
    github_task,
    size_task,
    bench_task,
    history_task,
):
    for _task in Collection.from_module(_module).tasks.values():
        namespace.add_task(_task)
namespace.add_collection(Collection.from_module(ci), name="ci")
namespace.add_collection(Collection.from_module(measure), name="measure")
namespace.add_collection(Collection.from_module(pins), name="pins")
namespace.add_collection(Collection.from_module(release), name="release")
