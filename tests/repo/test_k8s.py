"""The Kubernetes manifests: valid, hardened, and in agreement with what they run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import typer

from bridge import RELEASE
from bridge.cli import app
from bridge.config import Settings, age_seconds, load
from bridge.errors import AuthError, ClockError, LeftOut, SettingsError, SinkBroken, TopologyError
from bridge.observability import health
from bridge.observability.endpoints import make_app
from bridge.records import topics
from tests.repo.manifests import (
    BASE,
    K8S,
    OF_OPERATORS,
    OVERLAYS,
    RESOURCES,
    ROOTS,
    SERVING,
    SERVING_JOBS,
    TOPICS,
    Resource,
    build,
    containers,
    environment,
    kustomization,
    kustomized,
    of_kind,
    pods,
    selects,
)
from tests.wsgi import ask

README = (K8S / "README.md").read_text("utf-8")
VERSIONS = ["1.31", "1.36"]
"""Of Kubernetes: the oldest that has all that is used, and a recent one."""
FINAL = (SettingsError, AuthError, LeftOut, TopologyError, SinkBroken, ClockError)
"""What a second try at once does not mend."""
JOBS = ("translations", "currencies")
STAYING = tuple(f"serving-{job}" for job in JOBS)
OF_JOBS = ("api.base_url", "kafka.bootstrap_servers", "registry.url")
NEEDS = {
    "bridge": ("feed.base_url", "kafka.bootstrap_servers", "registry.url"),
    "shell": ("feed.base_url", "api.base_url", "kafka.bootstrap_servers", "registry.url"),
    **dict.fromkeys((*JOBS, *STAYING), OF_JOBS),
}
"""Component → settings without which its command does not start."""
PODS = pods() | {f"serving-{job}": pod for job, pod in pods(SERVING).items()}
each_pod = pytest.mark.parametrize("component", NEEDS)
each_job = pytest.mark.parametrize("job", JOBS)


def spec(component: str) -> Resource:
    """Of the pods of a component."""
    found: Resource = PODS[component]["spec"]
    return found


def container(component: str) -> Resource:
    """The one that stays."""
    [only] = spec(component)["containers"]
    found: Resource = only
    return found


@pytest.fixture
def settings(component: str, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """What a component reads from the environment that its pods give it."""
    for name in [name for name in os.environ if name.startswith("BRIDGE_")]:
        monkeypatch.delenv(name)
    for name, value in environment(PODS[component]).items():
        monkeypatch.setenv(name, value)
    return load()


# As Kubernetes sees them.


def test_no_manifest_is_forgotten() -> None:
    used = {file for root in ROOTS for file in build(root).files}
    alone = {K8S / "README.md", *(overlay / "namespace.yaml" for overlay in OVERLAYS)}
    assert {file for file in K8S.rglob("*") if file.is_file()} - used == alone


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "resource", [*RESOURCES, *SERVING], ids=lambda r: f"{r['kind']}-{r['metadata']['name']}"
)
def test_a_resource_is_what_its_kind_allows(resource: Resource, version: str) -> None:
    kubernetes_validate.validate(resource, version, strict=True)


@pytest.mark.parametrize("folder", ROOTS, ids=lambda folder: folder.name)
def test_kustomize_builds_what_is_tested_here(folder: Path) -> None:
    built = kustomized(folder)
    names = {(r["kind"], _unhashed(r)) for r in built}
    assert names == {(r["kind"], r["metadata"]["name"]) for r in build(folder).resources}
    for resource in built:
        if resource["kind"] not in OF_OPERATORS:
            kubernetes_validate.validate(resource, VERSIONS[-1], strict=True)
    referred = {s["configMapRef"]["name"] for r in built for s in _sources(r)}
    assert referred == {r["metadata"]["name"] for r in built if r["kind"] == "ConfigMap" and _is_hashed(r)}


def _unhashed(resource: Resource) -> str:
    """The name without the hash that kustomize adds to those of the ConfigMaps."""
    name: str = resource["metadata"]["name"]
    return name.rpartition("-")[0] if resource["kind"] == "ConfigMap" and _is_hashed(resource) else name


def _is_hashed(resource: Resource) -> bool:
    """Grafana finds its dashboard by a label, and replaces the one of that name."""
    return "grafana_dashboard" not in resource["metadata"].get("labels", {})


def _sources(node: Any) -> Iterator[Resource]:
    """Whatever containers take variables from, anywhere in a resource."""
    if isinstance(node, dict):
        yield from node.get("envFrom", ())
        node = list(node.values())
    if isinstance(node, list):
        for part in node:
            yield from _sources(part)


def met(selector: Resource) -> set[str]:
    """The pods that a selector meets."""
    return {name for name, pod in PODS.items() if selects(selector, pod["metadata"]["labels"])}


def test_selectors_meet_the_pods_of_the_bridge_and_no_other() -> None:
    deployment = of_kind("Deployment")["settlement-bridge"]
    [service] = of_kind("Service").values()
    [budget] = of_kind("PodDisruptionBudget").values()
    spread = [c["labelSelector"] for c in spec("bridge")["topologySpreadConstraints"]]
    for selector in (
        deployment["spec"]["selector"],
        budget["spec"]["selector"],
        *spread,
        {"matchLabels": service["spec"]["selector"]},
    ):
        assert met(selector) == {"bridge"}


def test_a_node_that_takes_no_pods_of_ours_does_not_keep_the_standby_waiting() -> None:
    for constraint in spec("bridge")["topologySpreadConstraints"]:
        assert constraint["nodeTaintsPolicy"] == "Honor"


def test_the_monitor_meets_what_can_serve() -> None:
    [monitor] = of_kind("PodMonitor", build(K8S / "observe").resources).values()
    assert met(monitor["spec"]["selector"]) == {"bridge", *JOBS, *STAYING}


# What they run, and how it is set up.


@each_pod
def test_the_image_is_the_placeholder_in_this_version(component: str) -> None:
    assert {each["image"] for each in containers(PODS[component])} == {"settlement-bridge"}
    for folder in (BASE, SERVING_JOBS):
        assert kustomization(folder)["images"] == [{"name": "settlement-bridge", "newTag": RELEASE}]


@each_pod
def test_the_arguments_are_a_command(component: str) -> None:
    for each in containers(PODS[component]):
        if "command" in each:
            continue  # the shell's
        name, *options = each["args"]
        group: Any = typer.main.get_command(app)
        group.commands[name].make_context(name, options)


@each_pod
def test_the_settings_are_settings(component: str, settings: Settings) -> None:
    assert settings.missing(*NEEDS[component]) == []


@each_pod
def test_secrets_are_files_of_mounted_secrets(component: str) -> None:
    volumes = {v["name"]: v["secret"]["secretName"] for v in spec(component)["volumes"] if "secret" in v}
    mounts = [m for m in container(component)["volumeMounts"] if m["name"] in volumes]
    mounted = {m["mountPath"]: volumes.pop(m["name"]) for m in mounts}
    assert not volumes
    given = environment(PODS[component])
    assert not [name for name in given if re.search(r"(PASSWORD|TOKEN|SECRET|AUTH_VALUE)$", name)]
    files = [Path(value) for name, value in given.items() if re.search(r"(_FILE|_LOCATION)$", name)]
    assert {str(file.parent) for file in files} == mounted.keys()
    for file in files:
        assert file.name in made_by_hand()[mounted[str(file.parent)]]


def made_by_hand() -> dict[str, set[str]]:
    """Secret → its files, by the commands in the README."""
    commands = re.findall(r"create secret generic (\S+)((?:[^\n]*\\\n)*[^\n]*)", README)
    return {name: set(re.findall(r"--from-file=([\w.-]+)=", files)) for name, files in commands}


def test_no_secret_is_committed() -> None:
    """They are made by hand, or by what a cluster has for it."""
    assert of_kind("Secret") == {}


@each_pod
def test_a_pod_may_do_nothing_that_it_need_not(component: str) -> None:
    """No root, no capability, no token, nothing in its environment that nobody asked for, and no writing.

    But the shell's exports.
    """
    pod = spec(component)
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 10001,
        "runAsGroup": 10001,
        "fsGroup": 10001,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    for each in containers(PODS[component]):
        assert each["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        written = [m["mountPath"] for m in each["volumeMounts"] if not m.get("readOnly")]
        assert written == ([each.get("workingDir")] if component == "shell" else [])
        asked, allowed = (each["resources"][key] for key in ("requests", "limits"))
        assert asked.keys() == allowed.keys() == {"cpu", "memory", "ephemeral-storage"}


def test_an_export_has_room_in_the_shell() -> None:
    [room] = [v["emptyDir"]["sizeLimit"] for v in spec("shell")["volumes"] if "emptyDir" in v]
    limit = container("shell")["resources"]["limits"]["ephemeral-storage"]
    assert int(room.removesuffix("Gi")) < int(limit.removesuffix("Gi"))
    runbook = (K8S.parent / "docs" / "runbook.md").read_text("utf-8")
    assert f"`{container('shell')['workingDir']}`" in runbook.partition("\n## SettlementTargetDown")[0]


def test_the_doctor_looks_at_what_the_bridge_is_given() -> None:
    """The same settings and secrets. What a bridge waits for must not keep it from starting.

    Not so a job, whose run finds out by itself and is repeated.
    """
    [doctor] = spec("bridge")["initContainers"]
    assert doctor["args"] == ["doctor", "--startup"]
    for key in ("envFrom", "volumeMounts"):
        assert doctor[key] == container("bridge")[key]
    assert {name for name in PODS if "initContainers" in spec(name)} == {"bridge"}


@pytest.mark.parametrize("component", ["bridge", *STAYING])
def test_probes_and_scrapers_find_what_is_served(component: str, settings: Settings) -> None:
    [port] = container(component)["ports"]
    [scraped] = of_kind("Service")["settlement-bridge"]["spec"]["ports"]
    assert settings.web.host == "::"
    assert settings.web.port == port["containerPort"] == scraped["port"]
    live, ready = (container(component)[f"{kind}Probe"] for kind in ("liveness", "readiness"))
    assert {live["httpGet"]["port"], ready["httpGet"]["port"], scraped["targetPort"]} == {port["name"]}
    assert (live["httpGet"]["path"], ready["httpGet"]["path"]) == ("/healthz", "/readyz")
    unused: Any = None
    assert {"/healthz", "/readyz"} <= {
        *ask(make_app({}, unused, unused, settings.web), "/").body.decode().split()
    }
    # A pause of the event loop that the bridge itself forgives must not end in a restart.
    assert live["periodSeconds"] * (live["failureThreshold"] - 1) > health.LOOP_SECONDS


@each_job
def test_a_snapshot_is_not_tried_again_where_a_person_has_to_act(job: str) -> None:
    cron = of_kind("CronJob")[f"settlement-bridge-{job}"]["spec"]
    assert cron["concurrencyPolicy"] == "Forbid"
    inner = cron["jobTemplate"]["spec"]
    assert inner["activeDeadlineSeconds"] > 0
    [given_up] = [rule for rule in inner["podFailurePolicy"]["rules"] if rule["action"] == "FailJob"]
    assert given_up["onExitCodes"] == {
        "containerName": container(job)["name"],
        "operator": "In",
        "values": [error.exit_code for error in FINAL],
    }


@each_job
def test_a_job_that_serves_is_the_same_pod(job: str) -> None:
    once, staying = deepcopy(PODS[job]), deepcopy(PODS[f"serving-{job}"])
    assert once["spec"].pop("restartPolicy") == "Never"
    [once_run], [runs] = (pod["spec"]["containers"] for pod in (once, staying))
    assert runs.pop("args")[:-1] == [*once_run.pop("args"), "--every"]
    for added in ("ports", "livenessProbe", "readinessProbe"):
        del runs[added]
    assert staying == once


@each_job
def test_a_job_that_serves_runs_as_often(job: str) -> None:
    minute, *others = of_kind("CronJob")[f"settlement-bridge-{job}"]["spec"]["schedule"].split()
    assert others == ["*"] * 4
    minutes = int(minute.removeprefix("*/")) if minute.startswith("*/") else 60
    assert age_seconds(container(f"serving-{job}")["args"][-1]) == minutes * 60


@each_job
def test_a_job_that_serves_is_one_process_until_the_next_one_has_published(job: str) -> None:
    name = f"settlement-bridge-{job}"
    asked = of_kind("Deployment", SERVING)[name]["spec"]
    assert asked["replicas"] == 1
    assert asked["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    longest = of_kind("CronJob")[name]["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"]
    assert asked["progressDeadlineSeconds"] == longest
    assert met(asked["selector"]) == {job, f"serving-{job}"}


# Topics.


@pytest.mark.parametrize("component", ["bridge"])
def test_the_topics_are_the_declared_ones(component: str, settings: Settings) -> None:
    for declared in (topics.declare(settings), topics.declare(Settings())):
        assert [shape(resource) for resource in TOPICS] == [
            (topic.name, topic.partitions, topics.as_created(topic, 3)) for topic in declared.all()
        ]


def shape(resource: Resource) -> tuple[str, int, dict[str, str]]:
    """Name, partitions and settings of a KafkaTopic of three copies; it says nothing else."""
    assert (resource["apiVersion"], resource["kind"]) == ("kafka.strimzi.io/v1", "KafkaTopic")
    assert resource.keys() == {"apiVersion", "kind", "metadata", "spec"}
    asked = resource["spec"]
    assert asked.keys() == {"partitions", "replicas", "config"}
    assert asked["replicas"] == 3
    config = {name: str(value) for name, value in asked["config"].items()}
    return resource["metadata"]["name"], asked["partitions"], config


def test_topics_and_programs_name_the_same_cluster() -> None:
    [labels] = kustomization(K8S / "topics")["labels"]
    brokers = environment(PODS["bridge"])["BRIDGE_KAFKA__BOOTSTRAP_SERVERS"]
    assert brokers == f"{labels['pairs']['strimzi.io/cluster']}-kafka-bootstrap:9093"
