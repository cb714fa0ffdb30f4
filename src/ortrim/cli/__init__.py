"""The program: tasks that no feature owns, options that several share, and the one error boundary."""
