"""`invoke bench`, `profile`, `hot`: how long models take, with which settings, and in which operators."""
