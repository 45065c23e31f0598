"""The resources of operators: each has the keys of its kind, and no other.

Kubernetes itself has no schema of them, and where their operator is installed, it drops a key that it does
not know and keeps the rest. The topics are in `test_k8s.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from tests.alerts import ALERTS
from tests.repo.manifests import K8S, OF_OPERATORS, Resource, build, kustomization, of_kind

NAMESPACE = kustomization(K8S / "overlays" / "production")["namespace"]
"""In which the README has them applied; any other would do."""
RESOURCES = [r for folder in ("user", "user/admin", "observe") for r in build(K8S / folder).resources]
CUSTOM = [resource for resource in RESOURCES if resource["kind"] in OF_OPERATORS]
LABELS = {"app.kubernetes.io/name": str}
ALERT = {
    "alert": str,
    "expr": str,
    "for?": str,
    "labels": {"severity": str},
    "annotations": {"summary": str},
}
SPECS: Mapping[str, Any] = {
    "KafkaUser": {
        "authentication": {"type": str},
        "authorization": {
            "type": str,
            "acls": [{"resource": {"type": str, "name?": str, "patternType?": str}, "operations": [str]}],
        },
    },
    "PodMonitor": {
        "selector": {
            "matchLabels": LABELS,
            "matchExpressions": [{"key": str, "operator": str, "values": [str]}],
        },
        "podMetricsEndpoints": [{"port": str, "path": str, "interval": str}],
    },
    "PrometheusRule": {"groups": [{"name": str, "interval?": str, "rules": [ALERT]}]},
}
"""Kind → the keys of its spec at each level; one with `?` may be missing."""
VERSIONS = {
    "KafkaUser": "kafka.strimzi.io/v1",
    "PodMonitor": "monitoring.coreos.com/v1",
    "PrometheusRule": "monitoring.coreos.com/v1",
}


def unfit(value: Any, form: Any, at: str = "") -> list[str]:
    """The places in which a value has another form: a key too many or too few, another type."""
    if isinstance(form, type):
        return [] if type(value) is form else [f"{at}: {value!r}"]
    if isinstance(form, list):
        if not isinstance(value, list) or not value:
            return [f"{at}: {value!r}"]
        return [
            place for number, each in enumerate(value) for place in unfit(each, form[0], f"{at}/{number}")
        ]
    if not isinstance(value, dict):
        return [f"{at}: {value!r}"]
    known = {key.removesuffix("?"): below for key, below in form.items()}
    needed = {key for key in form if not key.endswith("?")}
    places = [f"{at}/{key}" for key in sorted((value.keys() - known.keys()) | (needed - value.keys()))]
    for key in value.keys() & known.keys():
        places += unfit(value[key], known[key], f"{at}/{key}")
    return places


@pytest.mark.parametrize("resource", CUSTOM, ids=lambda r: r["metadata"]["name"])
def test_a_resource_of_an_operator_has_the_keys_of_its_kind(resource: Resource) -> None:
    kind = resource["kind"]
    assert resource["apiVersion"] == VERSIONS[kind]
    labels = {} if kind == "KafkaUser" else {"labels": LABELS}
    form = {"apiVersion": str, "kind": str, "metadata": {"name": str, **labels}, "spec": SPECS[kind]}
    assert unfit(resource, form) == []


def test_each_kind_of_an_operator_is_there() -> None:
    assert {resource["kind"] for resource in CUSTOM} == SPECS.keys()
    assert SPECS.keys() == OF_OPERATORS - {"KafkaTopic"}


def test_the_alert_of_what_is_not_scraped_knows_the_job_of_the_monitor() -> None:
    [monitor] = of_kind("PodMonitor", RESOURCES)
    [down] = [alert["expr"] for alert in ALERTS if alert["alert"] == "SettlementTargetDown"]
    [pattern] = re.findall(r'up\{job=~"([^"]*)"\}', down)
    assert re.fullmatch(pattern, f"{NAMESPACE}/{monitor}")
