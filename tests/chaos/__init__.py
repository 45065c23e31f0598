"""The campaigns of `tests/virtual`, longer and with more seeds than a test run has time for."""
