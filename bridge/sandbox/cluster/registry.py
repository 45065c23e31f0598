"""The schema registry: its command line, its environment, and whether it is ready."""

from __future__ import annotations

import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path

from bridge.sandbox.cluster.broker import JVM_FLAGS
from bridge.sandbox.cluster.ports import HOST

DATABASE = "schemas.mv.db"
"""File of the schemas, in the directory in which the registry runs."""


def url(port: int) -> str:
    """Of the Confluent-compatible API."""
    return f"http://{HOST}:{port}/apis/ccompat/v7"


def command(java: Path, jar: Path) -> list[str]:
    """Runs the registry in its directory."""
    return [str(java), "-Xmx256m", *JVM_FLAGS, "-jar", str(jar)]


def environment(port: int) -> dict[str, str]:
    """Its settings. Schemas are kept in the directory in which it runs, as records keep their ids."""
    return {
        "APICURIO_STORAGE_KIND": "sql",
        # By default H2 writes up to half a second late: an id that is in Kafka would be lost in a kill.
        "APICURIO_DATASOURCE_URL": "jdbc:h2:file:./schemas;WRITE_DELAY=0",
        "APICURIO_DATASOURCE_JDBC_INITIAL_SIZE": "1",
        "APICURIO_DATASOURCE_JDBC_MIN_SIZE": "1",
        "APICURIO_DATASOURCE_JDBC_MAX_SIZE": "10",
        "QUARKUS_HTTP_HOST": HOST,
        "QUARKUS_HTTP_PORT": str(port),
        "QUARKUS_HTTP_ACCESS_LOG_ENABLED": "false",
        # By default on port 9000 of every interface, where a second registry could not start.
        "QUARKUS_MANAGEMENT_HOST": HOST,
        "QUARKUS_MANAGEMENT_PORT": "0",
    }


def answers(port: int, timeout: float = 1.0) -> bool:
    """Whether it lists its subjects."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # loopback needs no proxy
    try:
        with opener.open(f"{url(port)}/subjects", timeout=timeout) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, HTTPException, OSError):
        return False
