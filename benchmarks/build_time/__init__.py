"""Build times: upstream's own recipe beside ortrim's, and what a warm compiler cache and a kept build tree save.

`invoke measure.build` runs it. Every case builds the same version with the same operators, compiler, flags and cores,
sources and tools already there, from an empty build folder to the stripped library, unless the case says otherwise.
What is finished is kept in `build-time.json` and not measured again.

`measure` is where it begins. It plans each spec (`subject`), and a `session` goes through the cases (`cases`) of a
`bench`, which prepares the cache that a case starts from (`scratch`) and lets a process of its own do the work
(`worker`) while it is measured (`meter`). What came of it is kept in a `record`, and shown as a `table` and a `graph`.
"""
