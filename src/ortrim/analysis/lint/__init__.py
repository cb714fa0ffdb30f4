"""`invoke lint`: what is wrong with a model before anything is built for it."""
