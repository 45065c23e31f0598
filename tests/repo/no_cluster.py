"""Stands in for kubectl where there is no cluster: it keeps what is applied, and finds nothing else.

`python no_cluster.py STATE KUBECTL ARGUMENTS…`: STATE is the file of the resources, KUBECTL the real one,
which builds kustomizations and Secrets. The cluster begins with Strimzi's Kafka in the namespace `kafka`,
whose user operator makes a Secret for each KafkaUser.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

GIVEN: list[dict[str, Any]] = [
    {"kind": "Namespace", "metadata": {"name": "kafka"}},
    {"kind": "Secret", "metadata": {"name": "settlement-cluster-ca-cert", "namespace": "kafka"}},
]


class Cluster:
    """The resources of a file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._resources: list[dict[str, Any]] = json.loads(file.read_text()) if file.exists() else GIVEN

    def find(self, kind: str, name: str, namespace: str | None) -> dict[str, Any]:
        """Return a resource; exits as kubectl does if there is none."""
        for resource in self._resources:
            metadata = resource["metadata"]
            if (resource["kind"], metadata["name"], metadata.get("namespace")) == (kind, name, namespace):
                return resource
        sys.exit(f'Error from server (NotFound): {kind} "{name}" not found in {namespace}')

    def scale(self, name: str, namespace: str | None, replicas: int) -> None:
        """Have so many pods of a Deployment."""
        self.find("Deployment", name, namespace)["spec"]["replicas"] = replicas
        self._file.write_text(json.dumps(self._resources))

    def enter(self, name: str, namespace: str | None) -> None:
        """Exit as kubectl does if a Deployment has no pod."""
        if not self.find("Deployment", name, namespace)["spec"]["replicas"]:
            sys.exit(f"error: no pod of {name}")

    def apply(self, resource: dict[str, Any], namespace: str | None) -> None:
        """Keep a resource; exits if its namespace is missing or another than the command's."""
        kind, metadata = resource["kind"], resource["metadata"]
        if kind != "Namespace":
            if namespace and metadata.setdefault("namespace", namespace) != namespace:
                sys.exit(f"the namespace of {kind} {metadata['name']} does not match {namespace}")
            self.find("Namespace", metadata["namespace"], None)
        self._resources.append(resource)
        if kind == "KafkaUser":
            self._resources.append({"kind": "Secret", "metadata": metadata})
        self._file.write_text(json.dumps(self._resources))


def main(cluster: Cluster, kubectl: str, arguments: list[str]) -> None:
    """Do what a command asks for, in the words that the README uses."""
    namespace = dict(pairwise(arguments)).get("-n")
    match [a for a in arguments if a not in ("-n", namespace)]:
        case ["kustomize", _]:
            print(_real(kubectl, arguments))
        case ["apply", "-k" | "-f" as how, place]:
            text = _real(kubectl, ["kustomize", place]) if how == "-k" else Path(place).read_text("utf-8")
            for resource in yaml.safe_load_all(text):
                cluster.apply(resource, namespace)
        case ["create", "secret", *_]:
            made = _real(kubectl, [*arguments, "--dry-run=client", "-o", "yaml"])
            cluster.apply(yaml.safe_load(made), namespace)
        case ["get", "secret", name, "-o", _]:
            cluster.find("Secret", name, namespace)
            print(base64.b64encode(name.encode()).decode(), end="")
        case ["wait", *_, target] if target.startswith("kafkauser/"):
            cluster.find("KafkaUser", target.partition("/")[2], namespace)
        case ["rollout", "status", target]:
            cluster.find("Deployment", target.partition("/")[2], namespace)
        case ["scale", target, replicas]:
            cluster.scale(target.partition("/")[2], namespace, int(replicas.removeprefix("--replicas=")))
        case ["exec", target, "--", "bridge", "doctor"]:
            cluster.enter(target.partition("/")[2], namespace)
        case other:
            sys.exit(f"not known here: kubectl {' '.join(other)}")


def _real(kubectl: str, arguments: list[str]) -> str:
    """What the real one prints."""
    return subprocess.run([kubectl, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main(Cluster(Path(sys.argv[1])), sys.argv[2], sys.argv[3:])
