"""The topics that a checkpoint speaks of: which they are, and how far they reach.

A topic that was made anew, cut short or copied halfway has the right name, and lacks what the position
promises. So a checkpoint names each topic of the feed by its id, and the end of what was written to each of
its partitions, and both are compared wherever a checkpoint is relied on (decision 0045).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final, NamedTuple

from bridge.errors import TopologyError
from bridge.formatting import plural
from bridge.kafka.admin import TopicSeen
from bridge.kafka.batch import Reached
from bridge.records.avro_form import PLAIN, TIME, AvroForm, within

WHAT_TO_TYPE: Final = "`bridge doctor` says what is lost, and what to type"


class PartitionReach(NamedTuple):
    """How far a partition reaches."""

    end: int = 0
    """The offset after the last record that a bridge wrote there."""
    newest: float | None = None
    """The timestamp of that record, Unix seconds; None if unknown."""
    start: int = 0
    """The offset before which records were deleted by the time that the topic was taken as it was."""


@dataclass(frozen=True, slots=True)
class TopicReach:
    """A topic that a checkpoint speaks of, and how far it reaches."""

    name: str
    id: str
    """Kafka's; empty where the cluster has none."""
    partitions: tuple[PartitionReach, ...]

    @property
    def kind(self) -> str:
        """What it holds: its name without the prefix, which a copy may have changed."""
        return self.name.rpartition(".")[2]

    def reaching(self, reached: Reached) -> TopicReach:
        """Return it after a transaction. Raises TopologyError if it ended earlier than it had before."""
        partitions = list(self.partitions)
        for (name, number), (end, newest) in reached.items():
            if name != self.name or not 0 <= number < len(partitions):
                continue
            if end <= partitions[number].end:
                text = f"partition {number} of {name} reached offset {partitions[number].end}, and now {end}"
                raise TopologyError(
                    f"{text}: somebody has made the topic anew, or cut it short. {WHAT_TO_TYPE}"
                )
            partitions[number] = partitions[number]._replace(end=end, newest=newest / 1000)
        return replace(self, partitions=tuple(partitions))


_PARTITION: Final = AvroForm(PartitionReach, end=within(0, inf), newest=TIME, start=within(0, inf))
REACH: Final = AvroForm(TopicReach, name=PLAIN, id=PLAIN, partitions=_PARTITION.many)
"""That of a topic in a checkpoint."""


def as_seen(name: str, seen: TopicSeen) -> TopicReach:
    """Return the reach of a topic of which nothing was known before."""
    starts = seen.starts or (0,) * len(seen.ends)
    partitions = (PartitionReach(end, None, start) for end, start in zip(seen.ends, starts, strict=True))
    return TopicReach(name, seen.id, tuple(partitions))


def used_partitions(topics: Sequence[TopicReach]) -> dict[str, int]:
    """Return by topic among how many partitions keys are placed: fewer than it has, if some were added."""
    return {topic.name: len(topic.partitions) for topic in topics}


def same_kind(name: str, known: Sequence[TopicReach]) -> TopicReach | None:
    """Return what is known of a topic, also if its prefix was another; None if nothing is."""
    kind = name.rpartition(".")[2]
    return next((reach for reach in known if reach.kind == kind), None)


def difference(known: TopicReach, name: str, seen: TopicSeen | None) -> str:
    """Return why the topic of that name is not the one that is known, or lacks records; "" if all is well."""
    if seen is None:
        return f"{name} is gone"
    if known.id and seen.id and known.id != seen.id:
        return (
            f"{name} is another topic than the one that was written: its id was {known.id}, and is {seen.id}"
        )
    if len(seen.ends) < len(known.partitions):
        return f"{name} has {plural(len(seen.ends), 'partition')}, and had {len(known.partitions)}"
    short = [
        f"partition {number} ends at offset {end}, and had reached {partition.end}"
        for number, (partition, end) in enumerate(zip(known.partitions, seen.ends, strict=False))
        if end < partition.end
    ]
    short += [
        f"what partition {number} had before offset {start} was deleted"
        for number, start in deleted(known, seen).items()
    ]
    more = f"; and {len(short) - 3} more" if len(short) > 3 else ""
    return f"{name} has lost records: {'; '.join(short[:3])}{more}" if short else ""


def deleted(known: TopicReach, seen: TopicSeen) -> dict[int, int]:
    """Return where the partitions of the bets begin whose first records were deleted since they were known.

    Compaction leaves the start of a log alone. Dead letters and gaps may be deleted.
    """
    if known.kind != "bets" or known.id != seen.id:  # a copy begins where it does
        return {}
    pairs = enumerate(zip(known.partitions, seen.starts, strict=False))
    return {number: start for number, (it, start) in pairs if start > it.start}


def differences(known: Sequence[TopicReach], seen: Mapping[str, TopicSeen | None]) -> dict[str, str]:
    """Return the `difference` of each topic that was seen and has one, by its name."""
    return {
        name: text
        for name, topic in seen.items()
        if (reach := same_kind(name, known)) is not None and (text := difference(reach, name, topic))
    }
