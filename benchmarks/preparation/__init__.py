"""What the steps of a buildspec's models bring: size, memory and speed before and after, with real models.

`invoke measure.preparation` runs it. A spec is built twice, without the steps of its models and with them (`subject`);
the two libraries, each with its own models, run in turn as those of `footprint` do. What is finished is kept in
`preparation.json` (`record`) and not measured again; `preparation.md` (`report`) is made anew each time.
"""
