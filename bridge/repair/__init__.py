"""What an operator changes by hand, as the owner of the feed for a moment (`ownership`).

`position` moves where a feed goes on, with the gap that follows; `redrive` publishes dead letters by
`redrive_rules`; `retirement` ends a feed. Each can say first what would follow.
"""
