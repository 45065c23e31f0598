"""Which names a request may call this server by, against DNS rebinding.

A page of another site can let its own name resolve to this server, and so have a browser read what is
answered here. The request then has the other site's name as its host. An address cannot be rebound, so probes
and scrapers that use the address of a pod or a machine need no setting.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import ip_address

_HOST = re.compile(r"(?:\[(?P<ipv6>[0-9a-f:.]+)\]|(?P<name>[^\[\]:]+))(?::\d*)?")


def is_ours(host: str | None, names: Collection[str]) -> bool:
    """Return whether a request with this `Host` header is for us: an address, or one of these names.

    `names` are in lower case. A request without the header does not come from a browser.
    """
    if host is None:
        return True
    found = _HOST.fullmatch(host.lower())
    if found is None:
        return False
    name = found["ipv6"] or found["name"].removesuffix(".")
    return name in names or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
