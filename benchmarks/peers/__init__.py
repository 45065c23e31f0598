"""Others that do the same work: each with the configuration that its users would choose."""
