"""The provider's feed: the connection, its messages, the position in it, and the limits on connecting."""
