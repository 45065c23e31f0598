"""Every error the bridge raises on purpose, as one tree, and what each asks of whoever catches it.

    BridgeError                 exit 1   something a caller may report and give up on
    ├── SettingsError           exit 2   a setting is wrong: names the setting and the fix
    ├── AuthError               exit 3   the provider does not know us: a person has to act
    ├── ApiError                exit 10  the provider's REST side failed, or answered what it must not
    │   ├── Unanswered          exit 10  it was in trouble, however often it was tried
    │   ├── Rejected            exit 10  it refused the question itself
    │   ├── Forbidden           exit 10  it gives no right to one of its endpoints: the rest goes on
    │   └── LeftOut             exit 4   some of it was not told: all else is published
    ├── GapError                exit 5   the feed can no longer give back what is missing
    ├── ClockError              exit 9   our clock and the provider's are too far apart
    ├── TopologyError           exit 6   a topic, a schema or a right in Kafka is not as it must be
    │   └── SchemaError         exit 6   a schema does not parse, breaks compatibility, or fits no record
    │       └── NotOurs         exit 6   a record that no bridge has written: most readers pass it over
    ├── DevError                exit 7   the embedded Kafka or registry did not start
    ├── ConversionError         —        the provider sent what is not a settled bet: dead letter
    ├── FeedError               —        the connection is of no more use: ask the limiter, dial again
    │   ├── FeedRefused         —        the provider answered, with a refusal
    │   └── FeedLost            —        closed, reset, silent, or the protocol was broken
    └── SinkError               —        Kafka did not take a batch
        ├── NotOwner            —        someone else owns the feed now: close the socket, stand by
        ├── NotCommitted        —        the process ended first: a replay brings the batch back
        └── SinkBroken          exit 8   Kafka refuses for good (rights, a wrong clock)

Exit 0 is success, exit 1 anything unforeseen or a check that failed. Exit codes are part of what
people script against; docs/exit-codes.md lists them.
"""

from __future__ import annotations

from typing import ClassVar


class BridgeError(Exception):
    """Root of all errors raised on purpose. Its text is meant for an operator to read."""

    exit_code: ClassVar[int] = 1


class SettingsError(BridgeError):
    """A setting is missing, misspelt or out of range. The text names the setting and the fix."""

    exit_code = 2


class AuthError(BridgeError):
    """The provider refuses our credentials. Retrying would only spend the connection limit."""

    exit_code = 3


class ApiError(BridgeError):
    """The provider's REST side failed or answered what it must not; the text names the endpoint and the ids.

    Nothing of the snapshot is published: its readers keep the last whole one.
    """

    exit_code = 10


class Unanswered(ApiError):
    """However often it was tried, there was no answer, or one that speaks of the provider's trouble."""


class Rejected(ApiError):
    """The provider refuses the question itself: `status` 400, or 404 where the interface has none."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class Forbidden(ApiError):
    """The provider gives no right to an endpoint (403). What it would have told is left as it was."""


class LeftOut(ApiError):
    """A snapshot is published, and the provider did not tell some of it: that is left as it was."""

    exit_code = 4


class GapError(BridgeError):
    """The feed cannot give back what was published after the position: messages may be lost for good."""

    exit_code = 5


class ClockError(BridgeError):
    """A clock is wrong, ours or the provider's: what the position promises would not hold."""

    exit_code = 9


class TopologyError(BridgeError):
    """A topic is missing or misconfigured, or the bridge lacks a right. The text says how to fix it."""

    exit_code = 6


class SchemaError(TopologyError):
    """A schema does not parse, misses a field, or is not compatible with an earlier version."""


class NotOurs(SchemaError):
    """A record that no bridge can have written, by its key, its format or the name of its schema."""


class DevError(BridgeError):
    """The embedded Kafka or registry could not be fetched, started or stopped."""

    exit_code = 7


class ConversionError(BridgeError):
    """A message is not a settled bet. `reason` names the path of the field, for the dead letter."""

    def __init__(self, reason: str, *, ping_id: str | None = None, extras: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.extras = extras
        """The fields that the interface does not know, where they are what is wrong."""
        self.ping_id = ping_id
        """The ping id that the same message carried, where it could be read: it is still answered."""


class FeedError(BridgeError):
    """The connection to the provider ended or never began."""


class FeedRefused(FeedError):
    """The handshake was answered with an HTTP status other than 101, or the connection closed for a limit.

    `answer` says how, such as `HTTP 429` or `close code 1013`; `status` is the HTTP status, if it was one.
    """

    def __init__(self, answer: str, detail: str = "", status: int | None = None) -> None:
        super().__init__(f"the provider refused the connection: {answer}{detail and ': ' + detail}")
        self.status = status


class FeedLost(FeedError):
    """The connection was closed, reset, fell silent, or spoke something that is not WebSocket."""


class SinkError(BridgeError):
    """Kafka did not take a batch, in a way that a retry of the call cannot mend."""


class NotOwner(SinkError):
    """Another process owns the feed: whatever was not committed is its business now."""


class NotCommitted(SinkError):
    """The process was told to end, and Kafka did not take the last batch in time. Nothing is lost."""


class SinkBroken(SinkError):
    """Kafka refuses for good: a missing right, records of a wrong clock. A person has to act."""

    exit_code = 8
