"""Status page, health and metrics of a running program, over HTTP."""
