"""An embedded Kafka and schema registry: real servers, for trying things out and for tests.

    with start(Path(directory)) as cluster:      # belongs to this process and ends with it
        cluster.bootstrap_servers, cluster.registry_url

    up(Path(".bridge-dev"))                      # runs until down(Path(".bridge-dev"))

Each directory holds one cluster: its data, its logs (`kafka-1.log`, `registry.log`) and, while it runs,
`state.json`. A start in the same directory finds the records and the schemas of the last one.
"""

from bridge.sandbox.cluster import extra  # noqa: F401  # first: the other modules import what it checks for
from bridge.sandbox.cluster.cluster import Cluster, Wanted, down, start, up
from bridge.sandbox.cluster.files import Progress
from bridge.sandbox.cluster.state import State, load

__all__ = ["Cluster", "Progress", "State", "Wanted", "down", "load", "start", "up"]
