"""The rights that the bridge needs on Kafka, which docs/kafka.md and `k8s/user` repeat."""

from __future__ import annotations

from typing import Final

from confluent_kafka.admin import AclOperation, ResourceType

NEEDED: Final = {
    ResourceType.TOPIC: frozenset({AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE_CONFIGS}),
    ResourceType.GROUP: frozenset({AclOperation.READ}),
    ResourceType.TRANSACTIONAL_ID: frozenset({AclOperation.WRITE}),
}
"""On all resources whose names begin with `topics.prefix` and a dot; Describe comes with Read and with Write.

They suffice for `bridge run` and the snapshot jobs if the topics are as declared.
"""
TO_CREATE_TOPICS: Final = frozenset({AclOperation.CREATE})
"""In addition on the topics, where some are missing."""
TO_ALTER_TOPICS: Final = frozenset({AclOperation.ALTER_CONFIGS})
"""In addition on the topics, for `bridge topics apply` where settings differ."""
