"""The provider's REST side: a client that is never too fast, and what may be asked."""
