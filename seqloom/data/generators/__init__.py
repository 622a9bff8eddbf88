"""Data made on the spot: a module a task, each with a function of its own name."""
