"""`invoke inspect`: what is in a file."""
