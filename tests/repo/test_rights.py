"""The rights on Kafka are declared once: the page, its commands and Strimzi's user say the same."""

from __future__ import annotations

import re
from collections import defaultdict

from confluent_kafka.admin import AclOperation, ResourceType

from bridge.config import Settings
from bridge.records import rights
from tests.repo.manifests import K8S, Resource, build, environment, kustomization, of_kind, pods
from tests.repo.source import ROOT

PAGE = (ROOT / "docs" / "kafka.md").read_text("utf-8").partition("\n## Rights\n")[2].partition("\n## ")[0]
PREFIX = f"{Settings().topics.prefix}."
TOPIC, GROUP, ID = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
KINDS = {"topics": TOPIC, "group": GROUP, "transactional id": ID}
OPTIONS = {"topic": TOPIC, "group": GROUP, "transactional-id": ID}
OF_STRIMZI = {"topic": TOPIC, "group": GROUP, "transactionalId": ID}


def operation(name: str) -> AclOperation:
    """Kafka's own spelling, such as `DescribeConfigs`, as the client has it."""
    return AclOperation[re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()]


def test_the_table_has_the_declared_rights() -> None:
    rows = re.findall(r"^\| ([a-z ]+?)(?: `(\S+)`, prefixed)? \| (\w+(?:, \w+)*) \| ", PAGE, re.MULTILINE)
    told = {
        KINDS[kind]: frozenset(map(operation, names.split(", ")))
        for kind, prefix, names in rows
        if prefix == PREFIX
    }
    assert told == rights.NEEDED
    more = [frozenset(map(operation, names.split(", "))) for kind, _, names in rows if kind == "the same"]
    assert more == [rights.TO_CREATE_TOPICS, rights.TO_ALTER_TOPICS]


def test_the_commands_grant_them_and_creation() -> None:
    granted: defaultdict[ResourceType, frozenset[AclOperation]] = defaultdict(frozenset)
    for option, prefix, rest in re.findall(
        r"^\$acl --([\w-]+) (\S+) --resource-pattern-type prefixed((?:.*\\\n)*.*)", PAGE, re.MULTILINE
    ):
        assert prefix == PREFIX
        granted[OPTIONS[option]] |= frozenset(map(operation, re.findall(r"--operation (\w+)", rest)))
    assert granted == rights.NEEDED | {TOPIC: rights.NEEDED[TOPIC] | rights.TO_CREATE_TOPICS}


def user(folder: str = "user") -> Resource:
    """The only KafkaUser there."""
    [found] = of_kind("KafkaUser", build(K8S / folder).resources).values()
    return found


def test_strimzi_s_user_has_them_and_no_other() -> None:
    authorization = user()["spec"]["authorization"]
    assert authorization["type"] == "simple"
    granted = {}
    for rule in authorization["acls"]:
        assert rule.keys() == {"resource", "operations"}
        assert (rule["resource"]["name"], rule["resource"]["patternType"]) == (PREFIX, "prefix")
        granted[OF_STRIMZI[rule["resource"]["type"]]] = frozenset(map(operation, rule["operations"]))
    assert len(granted) == len(authorization["acls"])
    assert granted == rights.NEEDED


def test_who_ends_a_transaction_has_what_the_page_says_and_no_other() -> None:
    [sentence] = re.findall(r"^Who ends a transaction.*?\.$", PAGE, re.MULTILINE | re.DOTALL)
    told = dict(
        re.findall(r"(\w+) on (?:the|all) (topics|transactional ids|cluster)", " ".join(sentence.split()))
    )
    granted = {}
    for rule in user("user/admin")["spec"]["authorization"]["acls"]:
        kind = rule["resource"].pop("type")
        assert (
            rule["resource"]
            == {
                "cluster": {},
                "topic": {"name": PREFIX, "patternType": "prefix"},
                "transactionalId": {"name": "*", "patternType": "literal"},
            }[kind]
        )
        [granted[kind]] = rule["operations"]
    kinds = {"topics": "topic", "transactional ids": "transactionalId", "cluster": "cluster"}
    assert granted == {kinds[kind]: name for name, kind in told.items()}
    assert kustomization(K8S / "user" / "admin")["labels"] == kustomization(K8S / "topics")["labels"]


def test_it_is_the_user_of_the_programs() -> None:
    found = user()
    assert (found["apiVersion"], found["spec"]["authentication"]) == (
        "kafka.strimzi.io/v1",
        {"type": "scram-sha-512"},
    )
    for pod in pods().values():
        given = environment(pod)
        assert given["BRIDGE_KAFKA__SASL_USERNAME"] == found["metadata"]["name"]
        assert given["BRIDGE_KAFKA__SASL_MECHANISM"].lower() == found["spec"]["authentication"]["type"]
    assert kustomization(K8S / "user")["labels"] == kustomization(K8S / "topics")["labels"]
