"""The manifests on a real API server: what it admits, and what its controllers make of them.

Run by `make cluster`. Strimzi's operators and podman are stood in for; there is no node that runs a pod.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.kubernetes.control_plane import Kubectl, control_plane
from tests.repo.manifests import K8S, OF_OPERATORS, PRODUCTION, ROOTS, Resource, of_kind
from tests.repo.source import ROOT
from tests.repo.test_ten_steps import steps, taken

PROGRAM = ROOT / ".kubernetes" / "kubernetes"
PATIENCE_SECONDS = 60.0
BRIDGE = "app.kubernetes.io/component=bridge"
SHELL = "app.kubernetes.io/component=shell"
JOBS = ("currencies", "translations")
KUBECTL = """\
#!/bin/sh
set -e
kubectl() {{ {command} "$@"; }}
case "$*" in wait*kafkauser/*)
    # What Strimzi's user operator does.
    kubectl -n kafka patch kafkauser settlement-bridge --subresource=status --type=merge \\
        -p '{{"status":{{"conditions":[{{"type":"Ready","status":"True"}}]}}}}'
    kubectl -n kafka create secret generic settlement-bridge --from-literal=password=secret
esac
kubectl "$@"
"""


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """A cluster with the kinds of Strimzi and of the Prometheus operator, and a Kafka of Strimzi's."""
    with control_plane(PROGRAM, tmp_path_factory.mktemp("control-plane")) as running:
        resources = [resource for folder in ROOTS for resource in built(folder)]
        kinds = {(r["apiVersion"], r["kind"]) for r in resources if r["kind"] in OF_OPERATORS}
        assert {kind for _, kind in kinds} == OF_OPERATORS
        running("apply", "-f", "-", given=yaml.safe_dump_all(definition(*of) for of in sorted(kinds)))
        running("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
        running("create", "namespace", "kafka")
        running(
            *("-n", "kafka", "create", "secret", "generic", "settlement-cluster-ca-cert"),
            "--from-literal=ca.crt=certificate",
        )
        yield running


def built(folder: Path) -> list[Resource]:
    """The resources of a kustomization, as kubectl builds them."""
    ran = subprocess.run(
        [PROGRAM, "kubectl", "kustomize", folder], capture_output=True, text=True, check=True
    )
    return [*yaml.safe_load_all(ran.stdout)]


def definition(version: str, kind: str) -> Resource:
    """The definition of a kind that takes anything: what is in it is for its operator to refuse."""
    group, _, version = version.partition("/")
    plural = f"{kind.lower()}s"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": anything},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


@pytest.fixture(scope="module")
def steps_at(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The clone that the steps make."""
    return tmp_path_factory.mktemp("steps") / "settlement-bridge"


@pytest.fixture(scope="module")
def applied(kubectl: Kubectl, steps_at: Path) -> str:
    """What the commands of the first nine of the ten steps say; the tenth waits for pods that run."""
    return taken(steps_at.parent, steps()[:9], KUBECTL.format(command=" ".join(kubectl.command)))


def items(kubectl: Kubectl, namespace: str, kind: str, *selection: str) -> list[Resource]:
    found: list[Resource] = json.loads(kubectl("-n", namespace, "get", kind, "-o", "json", *selection))[
        "items"
    ]
    return found


def names(kubectl: Kubectl, namespace: str, kind: str) -> set[str]:
    return {item["metadata"]["name"] for item in items(kubectl, namespace, kind)}


def until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.5)


def until_a_pod(kubectl: Kubectl, namespace: str, label: str) -> None:
    until(lambda: len(items(kubectl, namespace, "pods", "-l", label)) == 1, f"a pod with {label}")


def test_the_ten_steps_end_in_pods(kubectl: Kubectl, applied: str) -> None:
    assert "Warning" not in applied
    until(lambda: len(items(kubectl, "settlement", "pods", "-l", BRIDGE)) == 2, "owner and standby")
    for job in JOBS:
        until_a_pod(kubectl, "settlement", f"app.kubernetes.io/component={job}")
    assert names(kubectl, "settlement", "cronjobs") == set()
    assert items(kubectl, "settlement", "pods", "-l", SHELL) == []
    kubectl("-n", "settlement", "scale", "deployment/settlement-bridge-shell", "--replicas=1")
    until_a_pod(kubectl, "settlement", SHELL)
    kubectl("-n", "settlement", "scale", "deployment/settlement-bridge-shell", "--replicas=0")
    assert items(kubectl, "settlement", "events", "--field-selector=reason=FailedCreate") == []
    assert len(items(kubectl, "kafka", "kafkatopics")) == 8


def test_a_second_apply_changes_nothing(kubectl: Kubectl, applied: str, steps_at: Path) -> None:
    kinds = ("deployments", "cronjobs", "poddisruptionbudgets", "networkpolicies", "services")
    before = {kind: generations(kubectl, kind) for kind in kinds}
    again = kubectl("apply", "-k", str(steps_at / "k8s" / "overlays" / "production")).splitlines()
    assert len(again) > 10
    # kubectl replaces the selector of a disruption budget each time, by the same.
    changed = [line for line in again if not line.endswith(" unchanged")]
    assert changed == ["poddisruptionbudget.policy/settlement-bridge configured"]
    assert {kind: generations(kubectl, kind) for kind in kinds} == before


def generations(kubectl: Kubectl, kind: str) -> dict[str, int]:
    """Name → how often what is wanted of it has changed."""
    return {
        item["metadata"]["name"]: item["metadata"].get("generation", 0)
        for item in items(kubectl, "settlement", kind)
    }


@pytest.mark.parametrize("folder", ROOTS, ids=lambda folder: folder.name)
def test_no_field_is_unknown(kubectl: Kubectl, applied: str, folder: Path) -> None:
    resources = built(folder)
    said = kubectl(
        "create",
        "--dry-run=server",
        "--validate=strict",
        "-n",
        "default",
        "-o",
        "name",
        "-f",
        "-",
        given=yaml.safe_dump_all(local(resources)),
    )
    assert len(said.splitlines()) == len(resources)


def local(resources: list[Resource]) -> list[Resource]:
    """The resources without their namespaces, which may not be there."""
    return [r | {"metadata": {k: v for k, v in r["metadata"].items() if k != "namespace"}} for r in resources]


def test_the_other_overlay_has_a_namespace_of_its_own(kubectl: Kubectl, applied: str) -> None:
    kubectl("apply", "-f", str(K8S / "overlays" / "dev" / "namespace.yaml"))
    kubectl("apply", "-k", str(K8S / "overlays" / "dev"))
    until_a_pod(kubectl, "settlement-dev", BRIDGE)
    for job in JOBS:
        cron = f"--from=cronjob/settlement-bridge-{job}"
        kubectl("-n", "settlement-dev", "create", "job", cron, f"{job}-now")
        until_a_pod(kubectl, "settlement-dev", f"job-name={job}-now")
    assert items(kubectl, "settlement-dev", "events", "--field-selector=reason=FailedCreate") == []
    programs = {"settlement-bridge", "settlement-bridge-shell"}
    assert names(kubectl, "settlement-dev", "deployments") == programs
    jobs = {f"settlement-bridge-{job}" for job in JOBS}
    assert names(kubectl, "settlement", "deployments") == programs | jobs


def test_a_pod_that_is_not_restricted_is_refused(kubectl: Kubectl, applied: str) -> None:
    template = of_kind("Deployment", built(PRODUCTION))["settlement-bridge"]["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", **template}
    pod["metadata"] = {"name": "as-it-is", "namespace": "settlement"}
    dry = ("create", "--dry-run=server", "-f", "-")
    kubectl(*dry, given=yaml.safe_dump(pod))
    [container] = pod["spec"]["containers"]
    del container["securityContext"]
    with pytest.raises(subprocess.CalledProcessError) as refused:
        kubectl(*dry, given=yaml.safe_dump(pod))
    assert "violates PodSecurity" in refused.value.stderr


def test_deleting_the_programs_leaves_the_rest(kubectl: Kubectl, applied: str) -> None:
    secrets = names(kubectl, "settlement", "secrets")
    kubectl("delete", "-k", str(PRODUCTION))
    until(lambda: not items(kubectl, "settlement", "pods", "-l", BRIDGE), "no pod")
    assert len(secrets) == 3
    assert names(kubectl, "settlement", "secrets") == secrets
    assert '"phase": "Active"' in kubectl("get", "namespace", "settlement", "-o", "json")
    assert not items(kubectl, "settlement", "deployments")
    assert len(items(kubectl, "kafka", "kafkatopics")) == 8
