"""`invoke fetch`: what was built, for an app that uses it."""
