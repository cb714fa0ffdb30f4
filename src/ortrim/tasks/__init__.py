"""The Invoke tasks: parse, call one function, render."""

from invoke.collection import Collection

from ortrim.tasks import build, inspect, models, reports, setup

namespace = Collection()
for _module in (build, models, reports, inspect, setup):
    for _task in Collection.from_module(_module).tasks.values():
        namespace.add_task(_task)
