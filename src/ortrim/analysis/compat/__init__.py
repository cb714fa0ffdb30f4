"""`invoke check-compat`: would a model run on the runtime that users have."""
