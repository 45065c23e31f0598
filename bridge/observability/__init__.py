"""Health and metrics of a running program, over HTTP."""
