"""The simulated provider's REST side."""
