"""How often verdicts on budgets are wrong: a library beside its copy, and one 5 % worse with a budget of 3 %."""
