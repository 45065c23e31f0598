"""All errors that the bridge raises on purpose, as one tree, with exit codes and handling.

    BridgeError                 exit 1   root; callers may report it and give up
    ├── SettingsError           exit 2   a setting is wrong: names the setting and the fix
    ├── AuthError               exit 3   the provider refuses the credential: a person has to act
    ├── ApiError                exit 10  the provider's REST API failed, or its answer is invalid
    │   ├── Unanswered          exit 10  no usable answer after all attempts
    │   ├── Rejected            exit 10  the provider refused the request itself
    │   ├── Forbidden           exit 10  no right to one endpoint: the others are still fetched
    │   └── LeftOut             exit 4   the provider left some entries out: all others are published
    ├── ProviderPause           exit 10  the provider's REST API asks for a pause of more than an hour
    ├── GapError                exit 5   the provider can no longer replay missing messages
    ├── ClockError              exit 9   our clock and the provider's are too far apart
    ├── TopologyError           exit 6   a topic, a schema or a right in Kafka is missing or wrong
    │   ├── RegistryUnavailable exit 1   no registry answers, or no issuer of its tokens: a retry may help
    │   └── SchemaError         exit 6   a schema does not parse, is incompatible, or does not fit a record
    │       ├── SchemaNotFound  exit 6   the registry does not know the schema of a record
    │       └── ForeignRecord   exit 6   a record that no bridge has written: most readers skip it
    ├── IdsChanged              —        the registry gives other ids by now: register the schemas again
    ├── Unconvertible           exit 11  nothing that the provider sends can be converted
    ├── DevError                exit 7   the embedded Kafka or registry did not start
    ├── ConversionError         —        a message is not a settled bet: dead letter
    ├── FeedError               —        the connection has ended: ask the limiter, reconnect
    │   ├── FeedRefused         —        the provider refused the connection
    │   └── FeedLost            —        closed, reset, silent, or a protocol error
    │       └── FeedUnreached   —        the attempt never reached the provider's host: it does not count
    └── SinkError               —        Kafka did not accept a batch
        ├── NotOwner            —        another process owns the feed: close the socket, stand by
        ├── NotCommitted        —        a snapshot job was stopped first: the next run publishes
        └── SinkBroken          exit 8   Kafka refuses permanently (rights, a wrong clock)

Exit 0 is success, exit 1 an unforeseen error or a failed check. Scripts rely on exit codes;
docs/exit-codes.md lists them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar


class BridgeError(Exception):
    """Root of all errors raised on purpose. The text is meant for operators."""

    exit_code: ClassVar[int] = 1


class SettingsError(BridgeError):
    """A setting is missing, misspelt or out of range. The text names the setting and the fix."""

    exit_code = 2


@contextmanager
def naming_option(name: str) -> Iterator[None]:
    """Begin the text of a SettingsError with the option whose value is wrong."""
    try:
        yield
    except SettingsError as error:
        raise SettingsError(f"{name}: {error}") from None


class AuthError(BridgeError):
    """The provider refuses our credential. Retries would only use up the connection limit."""

    exit_code = 3


class ApiError(BridgeError):
    """The provider's REST API failed or gave an invalid answer; the text names the endpoint and the ids.

    What is published stays. `endpoint` is the path of the request of a snapshot job, as the interface writes
    it.
    """

    exit_code = 10

    def __init__(self, text: str, endpoint: str = "") -> None:
        super().__init__(text)
        self.endpoint = endpoint


class Unanswered(ApiError):
    """After all attempts there was no answer, or only errors of the provider's server."""


class Rejected(ApiError):
    """The provider refuses the request itself: `status` 400, or 404 if the interface does not define it."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class Forbidden(ApiError):
    """The provider denies access to an endpoint (403). Published entries of it stay as they are."""


class ProviderPause(BridgeError):
    """The provider asks for a longer pause, of so many `seconds`, than a run waits. Nothing is published."""

    exit_code = 10

    def __init__(self, text: str, seconds: float) -> None:
        super().__init__(text)
        self.seconds = seconds


class LeftOut(ApiError):
    """A snapshot is published, but the provider left entries out: these stay as they were."""

    exit_code = 4


class GapError(BridgeError):
    """The provider cannot replay everything since the position: messages may be lost for good."""

    exit_code = 5


class ClockError(BridgeError):
    """A clock is wrong, ours or the provider's, so the position could skip messages."""

    exit_code = 9


class TopologyError(BridgeError):
    """A topic is missing or misconfigured, or the bridge lacks a right. The text says how to fix it."""

    exit_code = 6


class RegistryUnavailable(TopologyError):
    """The registry, or the issuer of its tokens, cannot be reached or fails; a retry may help."""

    exit_code = 1


class SchemaError(TopologyError):
    """A schema does not parse, lacks a field, or is not compatible with an earlier version."""


class SchemaNotFound(SchemaError):
    """The registry does not know the schema of a record: it may lag, have lost it, or be the wrong one."""


class ForeignRecord(SchemaError):
    """A record that no bridge can have written, by its key, its format or the name of its schema."""


class IdsChanged(BridgeError):
    """The registry gives other ids than when the schemas were registered: it is another one by now."""


class Unconvertible(BridgeError):
    """Nothing that the provider has sent for long can be converted, and `feed.on_unconverted` is stop."""

    exit_code = 11


class DevError(BridgeError):
    """The embedded Kafka or registry could not be fetched, started or stopped."""

    exit_code = 7


class ConversionError(BridgeError):
    """A message is not a settled bet. `reason` names the path of the field, for the dead letter."""

    def __init__(self, reason: str, *, ping_id: str | None = None, extras: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.extras = extras
        """Paths of undocumented fields in the message; they are counted."""
        self.ping_id = ping_id
        """The ping id of the same message, if readable: it is still answered."""


class FeedError(BridgeError):
    """The connection to the provider ended or never began."""


class FeedRefused(FeedError):
    """The handshake was answered with an HTTP status other than 101, or the connection closed for a limit.

    `answer` is the reason, such as `HTTP 429` or `close code 1013`; `status` is the HTTP status, if any,
    `skew` bounds the provider's clock minus our monotonic clock, if the answer shows it, and `retry_after` is
    the pause that it asks for, in seconds.
    """

    def __init__(
        self,
        answer: str,
        detail: str = "",
        status: int | None = None,
        skew: tuple[float, float] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"the provider refused the connection: {answer}{detail and ': ' + detail}")
        self.status = status
        self.skew = skew
        self.retry_after = retry_after


class FeedLost(FeedError):
    """The connection was closed, reset, silent, or broke the WebSocket protocol."""


class FeedUnreached(FeedLost):
    """An attempt ended before a connection to the provider's host was open: nothing was sent to it."""


class SinkError(BridgeError):
    """Kafka did not accept a batch, and retrying the call does not help."""


class NotOwner(SinkError):
    """Another process owns the feed and will publish what this one has not committed."""


class NotCommitted(SinkError):
    """A snapshot job was stopped before Kafka had accepted its snapshot. The next run publishes one."""


class SinkBroken(SinkError):
    """Kafka refuses permanently: a missing right, records of a wrong clock. A person has to act."""

    exit_code = 8
