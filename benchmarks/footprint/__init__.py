"""Size, memory and speed: the official wheel, upstream's recipe and ortrim's profiles, with real models.

`invoke measure.footprint` runs it. Every library runs the same models in the same runner, one process after the other;
which one begins moves on by one from round to round. What is finished is kept in `footprint.json` and not measured
again; `footprint.md` and the picture beside it are made anew each time.

`measure` is where it begins. Libraries are built for each spec by each profile (`subject`), and become `contenders`
beside the wheel; `libraries` tells what they are, and `rounds` lets them run in turn. What came of it is kept in a
`record`, which a `summary` boils down to medians and ratios for the `report` and the `plot`.
"""
