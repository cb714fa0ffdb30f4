"""The steps of a model's preparation before conversion, and the proof that each changed nothing."""
