"""The Kubernetes manifests, read as kustomize reads them, as far as they make use of it."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import yaml

from tests.repo.source import ROOT
from tests.tools import lacking, ran

Resource: TypeAlias = dict[str, Any]

K8S = ROOT / "k8s"
BASE = K8S / "base"
DEV, PRODUCTION = K8S / "overlays" / "dev", K8S / "overlays" / "production"
OVERLAYS = (DEV, PRODUCTION)
SERVING_JOBS = K8S / "components" / "serving-jobs"
ROOTS = (BASE, *OVERLAYS, K8S / "topics", K8S / "user", K8S / "user" / "admin", K8S / "observe")
"""What is applied: the programs, and apart from them the topics, Kafka's users and what watches them."""

OF_OPERATORS = {"KafkaTopic", "KafkaUser", "PodMonitor", "PrometheusRule"}
"""Kinds that Kubernetes itself does not know."""


class Built(NamedTuple):
    """What a folder's `kustomization.yaml` adds up to, and the files that it took."""

    resources: list[Resource]
    files: set[Path]


def kustomization(folder: Path) -> dict[str, Any]:
    """The `kustomization.yaml` of a folder."""
    content: dict[str, Any] = yaml.safe_load((folder / "kustomization.yaml").read_text("utf-8"))
    return content


def build(folder: Path) -> Built:
    """The resources of a folder, without hashes in names of ConfigMaps; of patches only those that delete."""
    content = kustomization(folder)
    built = Built([], {folder / "kustomization.yaml"})
    for name in content.get("resources", ()):
        path = (folder / name).resolve()
        if path.is_dir():
            below = build(path)
            built.resources.extend(below.resources)
            built.files.update(below.files)
        else:
            built.resources.extend(yaml.safe_load_all(path.read_text("utf-8")))
            built.files.add(path)
    for name in content.get("components", ()):
        component = build((folder / name).resolve())
        deleted = _deleted(kustomization(folder / name))
        built.resources[:] = [r for r in built.resources if _id(r) not in deleted] + component.resources
        built.files.update(component.files)
    for generator in content.get("configMapGenerator", ()):
        files = [folder / name for name in generator.get("envs", ())]
        data = {name: value for file in files for name, value in variables(file).items()}
        data |= {name: value for name, _, value in (s.partition("=") for s in generator.get("literals", ()))}
        for entry in generator.get("files", ()):
            name, _, file = entry.rpartition("=")
            data[name] = (folder / file).read_text("utf-8")
            files.append(folder / file)
        built.files.update(files)
        if generator.get("behavior") == "merge":
            [merged] = [r for r in built.resources if _id(r) == ("ConfigMap", generator["name"])]
            merged["data"] |= data
            continue
        metadata = {"name": generator["name"], **generator.get("options", {})}
        built.resources.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    return built


@cache
def kustomized(folder: Path) -> list[Resource]:
    """The resources of a folder as kustomize itself builds them. Skips the test where it is not installed."""
    found = shutil.which("kustomize"), shutil.which("kubectl")
    command = [found[0], "build"] if found[0] else [found[1], "kustomize"] if found[1] else None
    if command is None:
        lacking("neither kustomize nor kubectl is here")
    done = ran(*command, folder)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def _deleted(component: dict[str, Any]) -> list[tuple[str, str]]:
    """Kind and name of what a component takes away from its overlay."""
    patches = [yaml.safe_load(entry["patch"]) for entry in component.get("patches", ())]
    return [_id(patch) for patch in patches if isinstance(patch, dict) and patch["$patch"] == "delete"]


def _id(resource: Resource) -> tuple[str, str]:
    """What kustomize tells resources apart by."""
    return resource["kind"], resource["metadata"]["name"]


def variables(file: Path) -> dict[str, str]:
    """Name → value of an env file."""
    lines = [line for line in file.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


RESOURCES = build(BASE).resources
SERVING = build(SERVING_JOBS).resources
"""The snapshot jobs as processes that stay and serve."""
TOPICS = build(K8S / "topics").resources


def of_kind(kind: str, resources: list[Resource] = RESOURCES) -> dict[str, Resource]:
    """Name → resource, of the programs'."""
    return {r["metadata"]["name"]: r for r in resources if r["kind"] == kind}


def pods(resources: list[Resource] = RESOURCES) -> dict[str, Resource]:
    """Component → template of its pods: `bridge`, `translations`, `currencies`, `shell`."""
    templates = [r["spec"]["template"] for r in of_kind("Deployment", resources).values()]
    templates += [
        r["spec"]["jobTemplate"]["spec"]["template"] for r in of_kind("CronJob", resources).values()
    ]
    return {t["metadata"]["labels"]["app.kubernetes.io/component"]: t for t in templates}


def selects(selector: Resource, labels: Resource) -> bool:
    """Whether a selector meets what has these labels."""
    assert selector.keys() <= {"matchLabels", "matchExpressions"}
    for expression in selector.get("matchExpressions", ()):
        assert expression["operator"] == "In", "an operator that is not known here"
        if labels.get(expression["key"]) not in expression["values"]:
            return False
    return bool(selector.get("matchLabels", {}).items() <= labels.items())


def containers(pod: Resource) -> list[Resource]:
    """The containers of a pod, and those that run before them."""
    return [*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())]


def environment(pod: Resource, resources: list[Resource] = RESOURCES) -> dict[str, str]:
    """The variables that the only container of a pod is given."""
    [container] = pod["spec"]["containers"]
    maps = of_kind("ConfigMap", resources)
    given: dict[str, str] = {}
    for source in container["envFrom"]:
        given |= maps[source["configMapRef"]["name"]]["data"]
    return given
