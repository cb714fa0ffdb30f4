"""`invoke cost`: what one inference of a model takes, by its shapes alone."""
