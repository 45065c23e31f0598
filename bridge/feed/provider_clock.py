"""Asks the provider for its time, without connecting to the feed, and compares it with ours."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import httpx2

from bridge import clock
from bridge.clock_skew import Skew, from_dates, must_be_near
from bridge.config import FeedSettings, http_scheme, proxy_of, tls
from bridge.errors import FeedLost
from bridge.formatting import format_duration, plain_error


async def ask(settings: FeedSettings) -> Skew | None:
    """Ask the provider for the time, at the root of its base address and without the credential.

    Returns its clock minus our monotonic clock; None without a `Date`, or with a cached one. Any status is an
    answer. No connection to the feed is attempted, so none of its limits apply (interface, "Limits").

    Raises FeedLost if the provider does not answer, or redirects to TLS, SettingsError if the proxy or the
    certificate authority cannot be used.
    """
    headers = {"User-Agent": "settlement-bridge", "Cache-Control": "no-cache"}
    root = _root(settings)
    client = httpx2.AsyncClient(
        verify=tls.context("feed", settings),
        proxy=proxy_of("feed", root, settings.proxy),
        trust_env=False,
        timeout=None,  # one limit for all of it, below
    )
    try:
        async with asyncio.timeout(settings.connect_timeout_seconds), client:
            asked = clock.now().monotonic
            async with client.stream("GET", root, headers=headers) as answer:
                received = clock.now().monotonic
    except TimeoutError:
        limit = format_duration(settings.connect_timeout_seconds)
        raise FeedLost(f"the provider did not answer in {limit}") from None
    except httpx2.HTTPError as error:
        raise FeedLost(f"the provider at {root} cannot be reached: {plain_error(error)}") from None
    except Exception as error:  # noqa: BLE001  # an odd header, such as a Location, ends this request only
        what = f"{type(error).__name__}: {plain_error(error)}"
        raise FeedLost(f"the answer of {root} cannot be read: {what}") from None
    to = answer.next_request and answer.next_request.url
    if to and (answer.url.scheme, to.scheme, to.host) == ("http", "https", answer.url.host):
        raise FeedLost(
            f"the provider redirects {root} to {to}: no redirect of the feed is followed. Give "
            "feed.base_url (BRIDGE_FEED__BASE_URL) with https://."
        )
    if "age" in answer.headers:
        return None
    return from_dates(answer.headers.get_list("date"), asked, received)


def check_skew(settings: FeedSettings, seconds: float) -> None:
    """Raise ClockError if the provider's clock is too far ahead of ours, or behind it."""
    must_be_near(
        seconds,
        settings.max_clock_skew_seconds,
        "feed.max_clock_skew_seconds (BRIDGE_FEED__MAX_CLOCK_SKEW_SECONDS)",
        "a revision would not mean what it says",
        also=" and feed.safety_margin_seconds",
    )


def _root(settings: FeedSettings) -> str:
    assert settings.base_url is not None
    url = urlsplit(settings.base_url)
    host = url.netloc.rpartition("@")[2]  # a part before the @ would be sent as a credential
    return f"{http_scheme(url.scheme)}://{host}{url.path.rstrip('/')}/"
