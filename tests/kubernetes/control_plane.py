"""The control plane of a Kubernetes cluster, from its own sources: etcd, API server and controllers.

It has no nodes, so pods are admitted and made, and never run.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bridge_sandbox.cluster.ports import HOST, free_port
from bridge_sandbox.cluster.process import Server

START_SECONDS: Final = 120.0
CALL_SECONDS: Final = 60.0
READY: Final = {
    "kube-apiserver": ("get", "--raw=/readyz"),
    "kube-controller-manager": ("get", "serviceaccount", "default"),
}
"""What succeeds once a program does its work."""
CONTROLLERS: Final = (
    "namespace-controller",
    "serviceaccount-controller",
    "deployment-controller",
    "replicaset-controller",
    "cronjob-controller",
    "job-controller",
    "disruption-controller",
    "garbage-collector-controller",
)


class Kubectl(NamedTuple):
    """kubectl as an administrator of the cluster."""

    command: tuple[str, ...]

    def __call__(self, *arguments: str, given: str | None = None) -> str:
        """Run it and return what it prints. Raises CalledProcessError, with its stderr as a note."""
        ran = subprocess.run(
            [*self.command, *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=CALL_SECONDS,
            check=False,
        )
        if ran.returncode:
            error = subprocess.CalledProcessError(ran.returncode, arguments, ran.stdout, ran.stderr)
            error.add_note(ran.stderr)
            raise error
        return ran.stdout


@contextmanager
def control_plane(program: Path, directory: Path) -> Iterator[Kubectl]:
    """Run one inside the block. `program` is what `main.go` builds."""
    ports = list[int]()
    for _ in range(3):
        ports.append(free_port(ports))
    client, peer, secure = ports
    etcd, api = f"http://{HOST}:{client}", f"https://{HOST}:{secure}"
    (key := directory / "accounts.pem").write_bytes(_private_key())
    (tokens := directory / "tokens.csv").write_text("administrator,administrator,1,system:masters\n")
    (settings := directory / "kubeconfig").write_text(_kubeconfig(api, directory / "apiserver.crt"))
    options = f"--kubeconfig={settings}", f"--cache-dir={directory / 'cache'}"
    kubectl = Kubectl((str(program), "kubectl", *options))
    commands = {
        "etcd": [
            f"--data-dir={directory / 'etcd'}",
            f"--listen-client-urls={etcd}",
            f"--advertise-client-urls={etcd}",
            f"--listen-peer-urls=http://{HOST}:{peer}",
            f"--initial-advertise-peer-urls=http://{HOST}:{peer}",
            f"--initial-cluster=default=http://{HOST}:{peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ],
        "kube-apiserver": [
            f"--etcd-servers={etcd}",
            f"--bind-address={HOST}",
            f"--advertise-address={HOST}",
            f"--secure-port={secure}",
            f"--cert-dir={directory}",
            f"--token-auth-file={tokens}",
            "--authorization-mode=RBAC",
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
        ],
        "kube-controller-manager": [
            f"--kubeconfig={settings}",
            f"--service-account-private-key-file={key}",
            f"--controllers={','.join(CONTROLLERS)}",
            "--leader-elect=false",
            "--secure-port=0",
        ],
    }
    with ExitStack() as running:
        for name, arguments in commands.items():
            server = Server(name, [str(program), name, *arguments], directory, directory / f"{name}.log")
            server.start()
            running.callback(server.stop)
            if name in READY:
                _wait(server, kubectl, *READY[name])
        yield kubectl


def _wait(server: Server, kubectl: Kubectl, *question: str) -> None:
    """Ask until there is an answer."""
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            kubectl(*question)
        except subprocess.SubprocessError as error:
            if not server.is_alive() or time.monotonic() > end:
                raise AssertionError(f"{server.name} does not work:\n{server.log_tail()}") from error
            time.sleep(0.5)
        else:
            return


def _private_key() -> bytes:
    return rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _kubeconfig(server: str, authority: Path) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "here", "cluster": {"server": server, "certificate-authority": str(authority)}}
            ],
            "users": [{"name": "administrator", "user": {"token": "administrator"}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "administrator"}}],
            "current-context": "here",
        }
    )
