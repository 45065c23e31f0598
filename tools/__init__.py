"""Programs that write pages of the documentation; `make docs` runs them."""
