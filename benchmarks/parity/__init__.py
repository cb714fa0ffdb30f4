"""Parity: how far outputs of untouched models differ, and which damage the comparison notices.

`invoke measure.parity` runs both; the tables are in benchmarks/results/parity.md. `distribution`
runs the models of `models.toml`, and
16-bit and 8-bit variants of them (`subjects`), in the official runtime under other conditions than the reference's:
optimization levels, threads, instruction sets. The tolerances rest on what these differ by. `mutations` damages
libraries that were built here and their models; `proof` says for each mutant whether it matters and whether the
comparison notices it. `record` is what both leave behind, and the tables of it.
"""
