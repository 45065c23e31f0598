"""Everything that stands in for the real world: a cluster, a provider, a demo."""
