"""Names and currencies, from the provider's REST API to topics of their own, in five steps:

1. `usage`: what settled bets use, with the hour of the last bet. One scan of the bets, for both jobs.
2. `wanted`: in use, less what the topic has; all of it when a refresh is due.
3. `asking`: at the pace allowed; what is refused is left out and owed.
4. `texts`, `published`, `publisher`: what came and differs, in one transaction with the state.
5. `forgotten`: what no bet uses any more, and what the provider knows no more.

An id is *wanted* (computed, never stored), then written or *refused* (asked and not answered; the state says
until which run); a snapshot without a refusal is *whole*, `Complete`.
"""
