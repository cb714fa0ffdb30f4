"""The Invoke tasks: parse, call one function, render."""

from invoke.collection import Collection

from ortrim.tasks import (
    bench,
    build,
    ci,
    compare,
    compat,
    cost,
    devices,
    fetch,
    history,
    hot,
    inspect,
    lint,
    measure,
    models,
    page,
    pins,
    prepare,
    profile,
    release,
    reports,
    runs,
    setup,
    size,
    workflows,
)

namespace = Collection()
for _module in (
    build,
    models,
    prepare,
    reports,
    page,
    inspect,
    lint,
    compat,
    compare,
    cost,
    devices,
    fetch,
    runs,
    setup,
    size,
    hot,
    bench,
    profile,
    history,
    workflows,
):
    for _task in Collection.from_module(_module).tasks.values():
        namespace.add_task(_task)
namespace.add_collection(Collection.from_module(ci), name="ci")
namespace.add_collection(Collection.from_module(measure), name="measure")
namespace.add_collection(Collection.from_module(pins), name="pins")
namespace.add_collection(Collection.from_module(release), name="release")
