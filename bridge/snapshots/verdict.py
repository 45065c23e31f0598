"""Whether two ids are the same thing: what the interface only suggests, and the provider's answers tell."""

from __future__ import annotations


class IdComparison:
    """Whether two ids are the same thing, by as many cases as there were."""

    def __init__(self, ours: str, theirs: str) -> None:
        self.ours, self.theirs = ours, theirs
        self.same = self.other = 0
        self.example = ""

    @property
    def seen(self) -> int:
        """How many cases there were."""
        return self.same + self.other

    def see(self, event: int, ours: int, theirs: int) -> None:
        """A bet on the event says `ours` (0: nothing), the event itself `theirs`."""
        if not ours:
            return
        if ours == theirs:
            self.same += 1
        else:
            self.other += 1
            self.example = self.example or f"event {event}: {self.ours} {ours}, {self.theirs} {theirs}"

    def __str__(self) -> str:
        if not self.other:
            return f"{self.ours} is the {self.theirs}: so it is in all {self.same:,} events of this run"
        return (
            f"{self.ours} is NOT the {self.theirs} in {self.other:,} of {self.seen:,} events ({self.example})"
        )
