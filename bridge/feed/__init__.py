"""From the provider: the connection, what it sends, where it stands and when it may be dialled."""
