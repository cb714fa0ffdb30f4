"""The Invoke tasks: parse, call one function, render."""

from invoke.collection import Collection

from ortrim.tasks import build, inspect, models, pins, reports, setup

namespace = Collection()
for _module in (build, models, reports, inspect, setup):
    for _task in Collection.from_module(_module).tasks.values():
        namespace.add_task(_task)
namespace.add_collection(Collection.from_module(pins), name="pins")
