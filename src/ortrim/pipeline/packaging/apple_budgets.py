"""What the slices of an xcframework may take, by the budgets of the targets that they are made of."""

from ortrim.package.apple.inputs import AppleInputs


def slice_budgets(inputs: AppleInputs) -> tuple[tuple[str, int], ...]:
    """Return the most bytes of each slice by its identifier: what its targets may take together, if each has a budget.

    A static library has none: its own bytes are relocations and names as well, which do not come into an app.
    """
    planned = {target.job.target.identifier: target.budgets for target in inputs.first.plan.targets}
    found = []
    for each in () if inputs.static else inputs.slices:
        limits = [planned[part.inputs.job.target.identifier].library_bytes for part in each.parts]
        known = [limit for limit in limits if limit is not None]
        if len(known) == len(limits):
            found.append((each.slice.identifier, sum(known)))
    return tuple(found)
