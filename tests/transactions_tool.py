"""`kafka-transactions.sh`, run as docs/operations.md says."""

from __future__ import annotations

import re
import shlex
import subprocess

from bridge_sandbox.cluster import downloads, maven
from bridge_sandbox.cluster.cluster import Cluster
from bridge_sandbox.cluster.files import lock, silent
from tests.repo.source import ROOT

OPERATIONS = (ROOT / "docs" / "operations.md").read_text("utf-8")


def kafka_tool(cluster: Cluster, main: str, *jars: object) -> list[str]:
    """Return the beginning of a command of Kafka's, with the jars of a cluster's broker and others."""
    command = next(server.command for name, server in cluster.servers.items() if name.startswith("kafka"))
    class_path = ":".join(map(str, [command[list(command).index("-cp") + 1], *jars]))
    return [command[0], "-XX:TieredStopAtLevel=1", "-cp", class_path, main]


class TransactionsTool:
    """Kafka's class behind that script, with the jars of a cluster's broker and its own."""

    def __init__(self, cluster: Cluster) -> None:
        with lock(maven.lock_file(), silent, "another download to end"):
            jar = maven.Repository(silent).file(
                "org.apache.kafka", "kafka-tools", downloads.KAFKA[0].rpartition(":")[2], "", "jar"
            )
        self._servers = cluster.bootstrap_servers
        self._command = kafka_tool(cluster, "org.apache.kafka.tools.TransactionsCommand", jar)

    def pasted(self, command: str) -> str:
        """Run a command that was printed, as its shell script would; return its output."""
        program, *arguments = shlex.split(command)
        assert program == "kafka-transactions.sh"
        done = subprocess.run(
            [*self._command, *arguments], capture_output=True, text=True, check=False, timeout=180
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def documented(self, verb: str, values: dict[str, object]) -> str:
        """Run a command of docs/operations.md, with this cluster and these values of options."""
        command: str
        [command] = re.findall(
            rf"^ *(kafka-transactions\.sh (?:.|\\\n)*? {verb}\b(?:.|\\\n)*?)(?<!\\)\n", OPERATIONS, re.M
        )
        command = command.replace("\\\n", " ").replace("--command-config admin.properties", "")
        for option, value in {"bootstrap-server": self._servers, **values}.items():
            command, found = re.subn(rf"--{option} \S+", f"--{option} {value}", command)
            assert found == 1, (command, option)
        return self.pasted(command)
