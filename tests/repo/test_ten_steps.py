"""The ten steps from a clone to a cluster, run as the page of the manifests has them, as far as that goes.

git, the shell, and how kubectl builds manifests and Secrets are real. The API server is `no_cluster.py`;
podman builds and pushes nothing.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import sys
import textwrap
from pathlib import Path

import kubernetes_validate  # type: ignore[import-untyped]
import pytest

from tests.repo.manifests import K8S, OF_OPERATORS, Resource, containers, environment, of_kind, pods
from tests.repo.source import ROOT
from tests.tools import lacking, ran

DIGEST = f"sha256:{'5e771e' * 10}b00c"
PODMAN = f"""\
#!/bin/sh
set -e
case "$1 $2" in
    "build -f") test -f "$3" ;;
    "push --digestfile") printf %s {DIGEST} > "$3" ;;
    *) echo "not known here: podman $*" >&2; exit 1 ;;
esac
"""
KUBECTL = """\
#!/bin/sh
exec {python} {no_cluster} {state} {kubectl} "$@"
"""


def steps() -> list[str]:
    """The commands of each step, in order."""
    page = (K8S / "README.md").read_text("utf-8")
    section = page.partition("## From a clone to a cluster\n")[2].partition("\n## ")[0]
    numbered = re.split(r"^(\d+)\. ", section, flags=re.MULTILINE)[1:]
    assert [int(number) for number in numbered[::2]] == list(range(1, 11))
    found = [re.findall(r"^ +```\n(.*?)^ +```", text, re.DOTALL | re.MULTILINE) for text in numbered[1::2]]
    return ["\n".join(textwrap.dedent(block) for block in blocks) for blocks in found]


def taken(here: Path, commands: list[str], kubectl: str) -> str:
    """Take the steps in a directory, with this script as kubectl. Return what they say."""
    (here / "bin").mkdir()
    for name, script in {"podman": PODMAN, "kubectl": kubectl}.items():
        (here / "bin" / name).write_text(script)
        (here / "bin" / name).chmod(0o755)
    first, *others = commands
    tokens = "echo feed > feed-token.txt\necho api > api-token.txt"
    environment = os.environ | {"URL": str(ROOT), "PATH": f"{here / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    script = "\n".join(["set -euo pipefail", first, tokens, *others])
    done = ran("bash", "-c", script, cwd=here, env=environment)
    said: str = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> list[Resource]:
    """What a cluster has after all steps."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        lacking("there is no kubectl")
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    here = tmp_path_factory.mktemp("steps")
    state = here / "cluster.json"
    fake = {"python": sys.executable, "no_cluster": Path(__file__).with_name("no_cluster.py")}
    taken(here, steps(), KUBECTL.format(**fake, state=state, kubectl=kubectl))
    found: list[Resource] = json.loads(state.read_text())
    return found


def test_every_step_has_its_commands() -> None:
    assert all(steps())


def test_what_is_applied_is_valid(cluster: list[Resource]) -> None:
    for resource in cluster:
        if "apiVersion" in resource and resource["kind"] not in OF_OPERATORS:
            kubernetes_validate.validate(resource, "1.36", strict=True)


def test_the_programs_run_the_image_that_was_pushed(cluster: list[Resource]) -> None:
    images = {c["image"] for pod in pods(cluster).values() for c in containers(pod)}
    assert images == {f"registry.example/settlement-bridge@{DIGEST}"}


def test_each_program_is_waited_for_and_the_doctor_has_the_settings_of_all(cluster: list[Resource]) -> None:
    last = steps()[-1]
    waited = set(re.findall(r"rollout status deployment/(\S+)", last))
    assert waited == of_kind("Deployment", cluster).keys()
    [asked] = re.findall(r"exec deployment/(\S+) -- bridge doctor", last)
    deployments = of_kind("Deployment", cluster)
    [shell] = pods([deployments[asked]]).values()
    given = environment(shell, cluster)
    assert all(environment(pod, cluster).items() <= given.items() for pod in pods(cluster).values())
    assert deployments[asked]["spec"]["replicas"] == 0


def test_the_programs_find_their_secrets(cluster: list[Resource]) -> None:
    secrets = {n: r["data"] for n, r in of_kind("Secret", cluster).items() if "data" in r}
    for pod in pods(cluster).values():
        [container] = pod["spec"]["containers"]
        volumes = {v["name"]: v["secret"]["secretName"] for v in pod["spec"]["volumes"] if "secret" in v}
        mounts = [m for m in container["volumeMounts"] if m["name"] in volumes]
        mounted = {m["mountPath"]: secrets[volumes[m["name"]]] for m in mounts}
        files = [Path(v) for n, v in environment(pod, cluster).items() if re.search("(_FILE|_LOCATION)$", n)]
        assert files
        for file in files:
            assert base64.b64decode(mounted[str(file.parent)][file.name])
    namespaces = {secret["metadata"]["namespace"] for secret in cluster if "data" in secret}
    assert namespaces == {of_kind("Deployment", cluster)["settlement-bridge"]["metadata"]["namespace"]}


def test_kafka_has_the_topics_and_the_user(cluster: list[Resource]) -> None:
    [user] = of_kind("KafkaUser", cluster)
    assert {environment(pod, cluster)["BRIDGE_KAFKA__SASL_USERNAME"] for pod in pods(cluster).values()} == {
        user
    }
    of_kafka = [r for r in cluster if r["kind"] in ("KafkaTopic", "KafkaUser")]
    assert len(of_kafka) == 9
    assert {r["metadata"]["namespace"] for r in of_kafka} == {"kafka"}
