"""bridge.reader."""

import json

from bridge.reader import BETS, Removed, changes

for bet in changes(BETS, follow=True):
    print(json.dumps({"key": bet.key, "value": None if isinstance(bet, Removed) else bet.value}), flush=True)
