"""The overlays `dev` and `production`, as kustomize builds them."""

from __future__ import annotations

import re
from pathlib import Path

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from bridge import RELEASE
from tests.repo.manifests import (
    BASE,
    DEV,
    OVERLAYS,
    PRODUCTION,
    build,
    containers,
    kustomized,
    of_kind,
    pods,
)

KINDS = ("CronJob", "Deployment")
each_overlay = pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda folder: folder.name)


def images(overlay: Path) -> set[str]:
    """Those of all pods."""
    return {c["image"] for pod in pods(kustomized(overlay)).values() for c in containers(pod)}


def test_production_names_its_image_by_digest() -> None:
    [image] = images(PRODUCTION)
    assert re.fullmatch(r"registry\.example/settlement-bridge@sha256:0{64}", image)


def test_dev_takes_the_image_that_was_built_beside_it() -> None:
    assert images(DEV) == {f"settlement-bridge:{RELEASE}"}


def test_production_has_an_owner_and_a_standby_and_dev_only_an_owner() -> None:
    replicas = {
        o: of_kind("Deployment", kustomized(o))["settlement-bridge"]["spec"]["replicas"] for o in OVERLAYS
    }
    assert replicas == {DEV: 1, PRODUCTION: 2}
    [small], [large] = (pods(kustomized(o))["bridge"]["spec"]["containers"] for o in OVERLAYS)
    assert small["resources"] != large["resources"]
    for kind in ("requests", "limits"):
        for name, amount in small["resources"][kind].items():
            assert _amount(amount) <= _amount(large["resources"][kind][name])


def test_production_runs_the_jobs_as_processes_that_stay_and_dev_as_cron_jobs() -> None:
    jobs = {"settlement-bridge-currencies", "settlement-bridge-translations"}
    ways = {kind: {o: of_kind(kind, kustomized(o)).keys() & jobs for o in OVERLAYS} for kind in KINDS}
    assert ways == {"CronJob": {DEV: jobs, PRODUCTION: set()}, "Deployment": {DEV: set(), PRODUCTION: jobs}}


def _amount(text: str) -> float:
    """A Kubernetes quantity as a number."""
    match = re.fullmatch(r"(\d+)(m|Mi|Gi)?", text)
    assert match is not None
    return int(match[1]) * {None: 1, "m": 0.001, "Mi": 2**20, "Gi": 2**30}[match[2]]


@each_overlay
def test_an_overlay_is_in_a_namespace_that_allows_only_restricted_pods(overlay: Path) -> None:
    [namespace] = yaml.safe_load_all((overlay / "namespace.yaml").read_text("utf-8"))
    kubernetes_validate.validate(namespace, "1.36", strict=True)
    labels = namespace["metadata"]["labels"]
    assert labels == {
        f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")
    }
    built = kustomized(overlay)
    assert {r["metadata"]["namespace"] for r in built} == {namespace["metadata"]["name"]}
    assert of_kind("Namespace", built) == {}


@each_overlay
def test_its_pods_are_restricted(overlay: Path) -> None:
    for pod in pods(kustomized(overlay)).values():
        spec = pod["spec"]
        assert not spec.keys() & {"hostNetwork", "hostPID", "hostIPC", "ephemeralContainers"}
        kinds = {kind for volume in spec["volumes"] for kind in volume.keys() - {"name"}}
        assert kinds <= {"secret", "emptyDir"}
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] != 0
        assert spec["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
        for container in containers(pod):
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert not any("hostPort" in port for port in container.get("ports", ()))


@each_overlay
def test_an_overlay_changes_settings_that_the_base_has(overlay: Path) -> None:
    base = of_kind("ConfigMap", build(BASE).resources)
    for name, changed in of_kind("ConfigMap", build(overlay).resources).items():
        assert changed["data"].keys() == base[name]["data"].keys()
