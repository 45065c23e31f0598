"""Stands in for kubectl where there is no cluster: it refuses what an API server would refuse, and keeps the rest.

`python -m tests.repo.no_cluster STATE KUBECTL ARGUMENTS…`: STATE is the file of the resources that there are, KUBECTL
the real one, which builds kustomizations and Secrets. It begins as a cluster with Strimzi's Kafka in the namespace
`kafka`, whose user operator makes a Secret for each KafkaUser.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path

import kubernetes_validate  # type: ignore[import-untyped]
import typer
import yaml

from bridge.cli import app
from tests.repo.manifests import OF_OPERATORS, Resource

VERSION = "1.36"
GIVEN: list[Resource] = [
    {"kind": "Namespace", "metadata": {"name": "kafka"}},
    {"kind": "Secret", "metadata": {"name": "settlement-cluster-ca-cert", "namespace": "kafka"}},
]


class Cluster:
    """The resources of a file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.resources: list[Resource] = json.loads(file.read_text()) if file.exists() else GIVEN

    def find(self, kind: str, name: str, namespace: str | None) -> Resource:
        """Return a resource; exits as kubectl does if there is none."""
        for resource in self.resources:
            metadata = resource["metadata"]
            if (resource["kind"], metadata["name"], metadata.get("namespace")) == (kind, name, namespace):
                return resource
        sys.exit(f'Error from server (NotFound): {kind} "{name}" not found in {namespace}')

    def apply(self, resource: Resource, namespace: str | None) -> None:
        """Keep a valid resource; exits if it is none or if its namespace is missing."""
        kind, metadata = resource["kind"], resource["metadata"]
        if kind not in OF_OPERATORS:
            kubernetes_validate.validate(resource, VERSION, strict=True)
        if kind != "Namespace":
            if namespace and metadata.setdefault("namespace", namespace) != namespace:
                sys.exit(f"the namespace of {kind} {metadata['name']} does not match {namespace}")
            self.find("Namespace", metadata["namespace"], None)
        self.resources.append(resource)
        if kind == "KafkaUser":
            self.resources.append({"kind": "Secret", "metadata": dict(metadata)})
        self._file.write_text(json.dumps(self.resources))


def main(cluster: Cluster, kubectl: str, arguments: list[str]) -> None:
    """Do what a command asks for, in the words that the README uses."""
    options = dict(zip(arguments, arguments[1:], strict=False))
    namespace = options.get("-n")
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
            print(base64.b64encode(f"content of {name}".encode()).decode(), end="")
        case ["wait", *_, target] if target.startswith("kafkauser/"):
            cluster.find("KafkaUser", target.partition("/")[2], namespace)
        case ["rollout", "status", target]:
            cluster.find("Deployment", target.partition("/")[2], namespace)
        case ["exec", target, "--", "bridge", command, *options_of_command]:
            cluster.find("Deployment", target.partition("/")[2], namespace)
            typer.main.get_command(app).commands[command].make_context(command, options_of_command)  # type: ignore[attr-defined]
        case other:
            sys.exit(f"not known here: kubectl {' '.join(other)}")


def _real(kubectl: str, arguments: list[str]) -> str:
    """What the real one prints."""
    return subprocess.run([kubectl, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main(Cluster(Path(sys.argv[1])), sys.argv[2], sys.argv[3:])
