"""The provider's feed: the connection, its messages, the position in it, and the limits on connecting.

What decides has no IO (`position`, `rate_limits`, `backoff`, `framing`); `client` and `provider_clock` have
nothing else.
"""
