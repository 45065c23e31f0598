"""One reading of `feed.proxy`, `api.proxy` and of the variables that name a proxy.

httpx2's, which the client of the registry uses as well: `NO_PROXY` holds names, of which one that begins with
a dot means what is below it, addresses and ranges of them; an address without a scheme is one of http.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit
from urllib.request import getproxies

from bridge.config.fields import check_proxy, proxy_error

_HTTP = {"ws": "http", "wss": "https"}


def http_scheme(scheme: str) -> str:
    """Return the scheme of HTTP of the host that a websocket connects to; another one as it is."""
    return _HTTP.get(scheme, scheme)


def proxy_of(section: str, url: str, given: str = "env") -> str | None:
    """Return the proxy that connects to `url`, by the setting `proxy` of this section; None without one.

    Raises SettingsError for one that cannot be used.
    """
    if given != "env":
        return None if given == "none" else given
    target, found = urlsplit(url), getproxies()
    proxy = found.get(http_scheme(target.scheme)) or found.get("all")
    if not proxy or _is_direct((target.hostname or "").rstrip("."), target.port, found):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    try:
        return check_proxy(proxy)
    except ValueError:
        raise proxy_error(section) from None


def _is_direct(host: str, port: int | None, variables: Mapping[str, str]) -> bool:
    entries = [entry.strip().lower() for entry in variables.get("no", "").split(",")]
    return any(_covers(entry.removesuffix(f":{port}"), host) for entry in entries)


def _covers(entry: str, host: str) -> bool:
    """Return whether an entry of `NO_PROXY` means this host."""
    if entry == "*":
        return True
    try:
        return ip_address(host) in ip_network(entry.replace("[", "").replace("]", ""), strict=False)
    except ValueError:
        name = entry.removeprefix("*")
        return bool(entry) and (host == entry or host.endswith(name if name[:1] == "." else f".{name}"))
