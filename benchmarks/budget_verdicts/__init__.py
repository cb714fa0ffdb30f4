"""How often verdicts on budgets are wrong: a library beside its copy, and one 5 % worse with a budget of 3 %.

`invoke measure.verdicts` runs it. `slowed` makes the worse library, `measure` asks for verdicts again and again, and
`record` is what came of it and the table.
"""
