"""The provider's REST API: its endpoints, and a client that keeps to a rate."""
