"""Faults in the position, the limits and the gaps."""

from __future__ import annotations

from tests.broken.fault import Fault, Patch
from tests.judge import Anomaly

_COMMIT_ATTEMPT = (
    "            await self.checkpointer.commit(check_generation=True)  # a replaced owner must not connect\n"
)

FAULTS = (
    Fault(
        "reconnection from now",
        "a reconnection asks for what is published from then on",
        "reconnections",
        (Anomaly.LOST_WRITE, Anomaly.GAP_IN_VAIN),
        (
            Patch(
                "service/connector.py",
                "        return max(min(self.pipeline.position.revision, present),",
                "        return max(present,",
            ),
        ),
    ),
    Fault(
        "revision 0 each time",
        "each connection asks for revision 0, as the very first one",
        "reconnections",
        (Anomaly.LOST_WRITE, Anomaly.LIMIT_BREACHED),
        (
            Patch(
                "service/connector.py",
                "        if self.checkpointer.starting:\n            return None\n",
                "        if True:\n            return None\n",
            ),
        ),
    ),
    Fault(
        "revision by the wall clock",
        "the position follows the clock while the feed is catching up",
        "slow replay",
        (Anomaly.CHECKPOINT_AHEAD, Anomaly.LOST_WRITE),
        (
            Patch(
                "feed/position.py",
                "        if not self.live:\n            lowest = self._window.lowest()",
                "        if True:\n            reached = at - self._max_out_of_orderness\n"
                "        elif not self.live:\n            lowest = self._window.lowest()",
            ),
        ),
    ),
    Fault(
        "revision moved by pings",
        "pings move the position in the middle of a replay",
        "slow replay",
        (Anomaly.CHECKPOINT_AHEAD, Anomaly.LOST_WRITE),
        (Patch("feed/position.py", "        if at - self._pings_since >= patience:", "        if True:"),),
    ),
    Fault(
        "revision from the newest settlementTime",
        "one settlementTime that is too late moves the position of a replay",
        "slow replay",
        (Anomaly.CHECKPOINT_AHEAD, Anomaly.LOST_WRITE),
        (
            Patch(
                "feed/position.py",
                "            reached = lowest\n",
                "            reached = lowest if self.newest is None else self.newest\n",
            ),
        ),
    ),
    Fault(
        "live after one bet",
        "one bet whose settlementTime is near now ends the catching up",
        "slow replay",
        (Anomaly.CHECKPOINT_AHEAD, Anomaly.LOST_WRITE),
        (Patch("feed/position.py", "NEAR = 3", "NEAR = 1"),),
    ),
    Fault(
        "overlap 0",
        "while live the position is the time of receipt, without a margin",
        "slow feed",
        (Anomaly.CHECKPOINT_AHEAD, Anomaly.LOST_WRITE),
        (
            Patch(
                "feed/position.py",
                "            reached = at - self._max_out_of_orderness",
                "            reached = at",
            ),
            Patch("feed/position.py", "        return self._safety_margin + self.skew", "        return 0.0"),
        ),
    ),
    Fault(
        "position taken back",
        "each connection begins five seconds before the last position, and commits that",
        "reconnections",
        (Anomaly.CHECKPOINT_BACK,),
        (
            Patch(
                "feed/position.py",
                "        self.catch_up()\n        self.clocks_compared(skew)",
                "        self._revision -= 5\n        self.catch_up()\n        self.clocks_compared(skew)",
            ),
            Patch("state/checkpoint.py", "        return goes_on and all(", "        return True or all("),
        ),
    ),
    Fault(
        "limiter off",
        "no connection attempt waits for a limit",
        "drops",
        (Anomaly.LIMIT_BREACHED,),
        (
            Patch(
                "feed/rate_limits.py",
                "        while (later := self._forbidden(decision.until, revision)) is not None:\n"
                "            decision = later\n",
                "",
            ),
        ),
    ),
    Fault(
        "bucket ignored",
        "small recoveries do not wait for room in the bucket",
        "drops",
        (Anomaly.LIMIT_BREACHED,),
        (Patch("feed/rate_limits.py", "            if excess > 0:", "            if False:"),),
    ),
    Fault(
        "refused attempts not in the bucket",
        "the recovery of a refused attempt is not counted",
        "refusals",
        (Anomaly.LIMIT_BREACHED,),
        (
            Patch(
                "feed/rate_limits.py",
                "        for attempt in sorted(self.ledger, key=self._seen_at):",
                "        for attempt in sorted((a for a in self.ledger if not"
                " a.refused), key=self._seen_at):",
            ),
        ),
    ),
    Fault(
        "windows ignored",
        "large recoveries do not wait for their window",
        "large recoveries",
        (Anomaly.LIMIT_BREACHED,),
        (Patch("feed/rate_limits.py", "                if free_at > at:", "                if False:"),),
        records=0.0,  # the provider refuses it to the end
    ),
    Fault(
        "windows halved",
        "the windows of the limits are half as long",
        "large recoveries",
        (Anomaly.LIMIT_BREACHED,),
        (
            Patch(
                "feed/rate_limits.py",
                "        return seen[-window.connections] + window.seconds if",
                "        return seen[-window.connections] + window.seconds / 2 if",
            ),
        ),
    ),
    Fault(
        "attempt committed after the handshake",
        "a crash during the handshake hides the attempt from the next process",
        "crash at the handshake",
        (Anomaly.LIMIT_BREACHED,),
        (
            Patch("service/connector.py", _COMMIT_ATTEMPT, ""),
            Patch(
                "service/connector.py",
                "            connection = await self._open(asked, decided=now)\n",
                "            connection = await self._open(asked, decided=now)\n"
                "            await self.checkpointer.commit(check_generation=True)\n",
            ),
        ),
    ),
    Fault(
        "attempt committed with the next transaction",
        "an attempt is committed with what it has brought",
        "reconnections",
        (Anomaly.ATTEMPT_NOT_COMMITTED,),
        (Patch("service/connector.py", _COMMIT_ATTEMPT, ""),),
        {Anomaly.ATTEMPT_NOT_COMMITTED: "was made before"},
    ),
    Fault(
        "position stands still",
        "the position never moves: a reconnection asks for everything since the start",
        "reconnections",
        (Anomaly.POSITION_BEHIND,),
        (
            Patch(
                "feed/position.py",
                "            self._revision = max(self._revision, revision)",
                "            pass",
            ),
        ),
        {Anomaly.POSITION_BEHIND: "the stream ended"},
    ),
    Fault(
        "position not used",
        "a reconnection asks for thirty seconds more than the position",
        "reconnections",
        (Anomaly.POSITION_BEHIND,),
        (
            Patch(
                "service/connector.py",
                "        return max(min(self.pipeline.position.revision, present),",
                "        return max(min(self.pipeline.position.revision - 30, present),",
            ),
        ),
        {Anomaly.POSITION_BEHIND: "the position was"},
    ),
    Fault(
        "attempts forgotten",
        "a new owner does not read the attempts in the checkpoint",
        "crash at the handshake",
        (Anomaly.LIMIT_BREACHED,),
        (
            Patch(
                "service/owner.py",
                "feed.max_clock_skew_seconds, start.ledger\n",
                "feed.max_clock_skew_seconds, ()\n",
            ),
        ),
    ),
    Fault(
        "gap not declared",
        "the position skips what is too old without a record",
        "outage",
        (Anomaly.UNDECLARED_GAP,),
        (Patch("service/pipeline.py", "        self.gaps += 1\n", "        return\n"),),
        records=0.25,  # most was published while it was down
    ),
    Fault(
        "gap begins too late",
        "the gap begins where the feed goes on",
        "outage",
        (Anomaly.UNDECLARED_GAP,),
        (
            Patch(
                "service/connector.py",
                "        start = position.revision\n        position.skip(revision)\n",
                "        position.skip(revision)\n        start = position.revision\n",
            ),
        ),
        records=0.25,  # most was published while it was down
    ),
    Fault(
        "gap declared always",
        "each connection declares a gap",
        "reconnections",
        (Anomaly.GAP_IN_VAIN,),
        (
            Patch(
                "service/connector.py",
                "        if revision is not None and revision > self.pipeline.position.revision:",
                "        if revision is not None:",
            ),
        ),
    ),
    Fault(
        "silent forgetting not noticed",
        "a replay that repeats nothing known is taken for whole",
        "forgotten",
        (Anomaly.UNDECLARED_GAP,),
        (
            Patch(
                "service/pipeline.py",
                "        self._awaiting = revision if known else None",
                "        self._awaiting = None",
            ),
        ),
    ),
    Fault(
        "gap ends too early",
        "the gap of a silent forgetting covers its first second only",
        "forgotten",
        (Anomaly.UNDECLARED_GAP,),
        (
            Patch(
                "service/pipeline.py",
                "Gap(settings.name, revision, resumed, Cause.MISSING_IN_REPLAY, now)",
                "Gap(settings.name, revision, revision + 1, Cause.MISSING_IN_REPLAY, now)",
            ),
        ),
    ),
    Fault(
        "repetitions not recognised",
        "a replay counts as incomplete although known bets come again",
        "reconnections",
        (Anomaly.GAP_IN_VAIN,),
        (
            Patch(
                "service/pipeline.py",
                "            if self.deduplicator.knew(key):",
                "            if False:",
            ),
        ),
    ),
    Fault(
        "gap declared twice",
        "each gap is written twice",
        "outage",
        (Anomaly.GAP_IN_VAIN,),
        (
            Patch(
                "service/pipeline.py",
                "        self.gaps += 1\n        self.batch.add(",
                "        self.gaps += 1\n        for _ in range(2): self.batch.add(",
            ),
        ),
        {Anomaly.GAP_IN_VAIN: "it was declared before"},
    ),
    Fault(
        "gap begins too early",
        "a gap begins a minute before the position",
        "outage",
        (Anomaly.GAP_IN_VAIN,),
        (
            Patch(
                "state/gap.py",
                "codec.encode(gap.to_avro())",
                'codec.encode({**gap.to_avro(), "from": round((gap.start - 60) * 1e6)})',
            ),
        ),
        {Anomaly.GAP_IN_VAIN: "it begins before the position"},
    ),
    Fault(
        "gap ends too late",
        "a gap ends an hour later than it should",
        "outage",
        (Anomaly.GAP_IN_VAIN,),
        (
            Patch(
                "state/gap.py",
                "codec.encode(gap.to_avro())",
                'codec.encode({**gap.to_avro(), "to": round((gap.end + 3600) * 1e6)})',
            ),
        ),
        {Anomaly.GAP_IN_VAIN: "it goes on in the future"},
    ),
    Fault(
        "gap ends ten seconds too late",
        "a gap ends ten seconds later than it should",
        "outage",
        (Anomaly.GAP_IN_VAIN,),
        (
            Patch(
                "state/gap.py",
                "codec.encode(gap.to_avro())",
                'codec.encode({**gap.to_avro(), "to": round((gap.end + 10) * 1e6)})',
            ),
        ),
        {Anomaly.GAP_IN_VAIN: "it ends too late"},
    ),
    Fault(
        "last attempt not committed",
        "a checkpoint has all attempts but the last one",
        "reconnections",
        (Anomaly.ATTEMPT_NOT_COMMITTED,),
        (
            Patch(
                "service/checkpointer.py",
                "            ledger=self.limiter.ledger,",
                "            ledger=self.limiter.ledger[:-1],",
            ),
        ),
    ),
)
