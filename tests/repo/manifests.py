"""The Kubernetes manifests, read as kustomize reads them, as far as they make use of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import yaml

from tests.repo.source import ROOT

Resource: TypeAlias = dict[str, Any]

K8S = ROOT / "k8s"
ROOTS = (K8S, K8S / "topics", K8S / "observe")
"""What is applied: the programs, and apart from them the topics and what watches them."""


class Built(NamedTuple):
    """What a folder's `kustomization.yaml` adds up to, and the files that it took."""

    resources: list[Resource]
    files: set[Path]


def kustomization(folder: Path) -> dict[str, Any]:
    """The `kustomization.yaml` of a folder."""
    content: dict[str, Any] = yaml.safe_load((folder / "kustomization.yaml").read_text("utf-8"))
    return content


def build(folder: Path) -> Built:
    """The resources of a folder; generated ConfigMaps without the hash in their names."""
    content = kustomization(folder)
    built = Built([], {folder / "kustomization.yaml"})
    for name in content.get("resources", ()):
        path = folder / name
        if path.is_dir():
            below = build(path)
            built.resources.extend(below.resources)
            built.files.update(below.files)
        else:
            built.resources.extend(yaml.safe_load_all(path.read_text("utf-8")))
            built.files.add(path)
    for generator in content.get("configMapGenerator", ()):
        files = [folder / name for name in generator.get("envs", ())]
        data = {name: value for file in files for name, value in variables(file).items()}
        for entry in generator.get("files", ()):
            name, _, file = entry.rpartition("=")
            data[name] = (folder / file).read_text("utf-8")
            files.append(folder / file)
        metadata = {"name": generator["name"], **generator.get("options", {})}
        built.resources.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        built.files.update(files)
    return built


def variables(file: Path) -> dict[str, str]:
    """Name → value of an env file."""
    lines = [line for line in file.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


RESOURCES = build(K8S).resources
TOPICS = build(K8S / "topics").resources


def of_kind(kind: str) -> dict[str, Resource]:
    """Name → resource, of the programs'."""
    return {r["metadata"]["name"]: r for r in RESOURCES if r["kind"] == kind}


def pods() -> dict[str, Resource]:
    """Component → template of its pods: `bridge`, `translations`, `currencies`."""
    templates = [r["spec"]["template"] for r in of_kind("Deployment").values()]
    templates += [r["spec"]["jobTemplate"]["spec"]["template"] for r in of_kind("CronJob").values()]
    return {t["metadata"]["labels"]["app.kubernetes.io/component"]: t for t in templates}


def environment(pod: Resource) -> dict[str, str]:
    """The variables that the only container of a pod is given."""
    [container] = pod["spec"]["containers"]
    maps = of_kind("ConfigMap")
    given: dict[str, str] = {}
    for source in container["envFrom"]:
        given |= maps[source["configMapRef"]["name"]]["data"]
    return given
