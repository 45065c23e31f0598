"""The container image, built and run."""
