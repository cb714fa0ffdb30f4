"""GitHub's workflows: rendered, given their matrix, and read what they were asked for."""
