"""`bridge doctor`: checks everything that a bridge depends on, and changes nothing."""
