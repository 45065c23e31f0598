"""Snapshots of the provider's translations and currencies: from its REST API to topics of their own."""
