"""Names and currencies, from the provider's REST API to topics of their own, in five steps:

1. `usage`, `state`: what settled bets use, with the hour of the last bet. One scan, for both jobs.
2. `wanted`: in use, less what the topic has; all of it when a refresh is due.
3. `asking`: at the pace allowed; what is refused is left out and owed.
4. `texts`, `published`, `publisher`: what came and differs, in one transaction with the state.
5. `forgotten`: what no bet uses any more, and what the provider knows no more.

An id is *wanted* (computed, never stored), then written or *refused* (asked and not answered; the state says
until which run); a snapshot without a refusal is *whole*, `Complete`. `translations` and `currencies` say
what is asked in which order, `job` is one run.

If the provider cannot answer for event 77 for a day, the first run asks `api.attempts` times at most, leaves
the event out and publishes the rest: its record, if there is one, stays, `leftOut` has the reason, the
snapshot is `Partial`, and the command ends with exit 4. The state has `event:77` under `owed`. So each run of
that day asks again: last of all events, twice at most, and without counting it as a failure of the run; not
at all once the endpoint has left five requests in a row unanswered. The first answer is written, and
`event:77` is owed no more. If none ever comes, a full run drops it once no bet of `api.keep_days` uses it.

If more than ten new events fail, and more than `api.max_left_out_share` of all, the run ends with exit 10.
But for the portions that it has published it leaves nothing, owed things included: the next run begins as it
did. A list that fails ends a run at once.
"""
