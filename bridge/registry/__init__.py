"""The schema registry: registers our schemas, and finds those of what we read.

`Registry` is a client of Confluent's API. Its errors say whether waiting may help (`RegistryUnavailable`).
"""

from bridge.errors import RegistryUnavailable as RegistryUnavailable
from bridge.registry.client import OF_OWNER as OF_OWNER
from bridge.registry.client import TO_TELL_APART as TO_TELL_APART
from bridge.registry.client import TO_UPGRADE as TO_UPGRADE
from bridge.registry.client import Compatibility as Compatibility
from bridge.registry.client import Registry as Registry
from bridge.registry.client import confirm_ids as confirm_ids
