"""Session settings: what each costs and gains in load time, memory, latency and processor time.

`invoke measure.session` runs it for buildspecs that were built here for this machine.
The results are in benchmarks/results/session.md.
Each setting is changed alone (`subject`). A round runs every setting of a model and the official wheel once, each in a
process of its own; the next round begins with another one, so that whatever else the machine does falls on all alike
(`measure`). Medians and ratios to the wheel are kept in a `record`.
"""
