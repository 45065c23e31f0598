"""The provider, simulated as the interface describes it: feed, translations and currencies.

It shares no code with the bridge, so each checks the other. `world` and `bets` are pure functions of a
seed, and `stream` of a slot number, so nothing that was published is stored. `feed` and `rest.app` decide:
they take a request and a moment and have no sockets. `server` drives both; `control` injects faults and
returns the truth.
"""
