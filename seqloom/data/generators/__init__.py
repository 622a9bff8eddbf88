"""Generated data: one module per task, each with a function of its own name."""
