"""Snapshots of the provider's translations and currencies: from its REST side to topics of their own."""
