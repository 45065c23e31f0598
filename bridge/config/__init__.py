"""The settings, frozen and validated. `load` reads them; nothing else reads the environment."""

from bridge.config.api import ApiSettings
from bridge.config.fields import ENV_PREFIX, env_name, proxy_error
from bridge.config.loader import RENAMED, Settings, load
from bridge.config.secrets import read_secret, secret_trouble
from bridge.config.sections import (
    BatchSettings,
    FeedSettings,
    KafkaSettings,
    LimitsSettings,
    RegistrySettings,
    TopicsSettings,
    WebSettings,
    age_seconds,
    parse_start,
)

__all__ = [
    "ENV_PREFIX",
    "RENAMED",
    "ApiSettings",
    "BatchSettings",
    "FeedSettings",
    "KafkaSettings",
    "LimitsSettings",
    "RegistrySettings",
    "Settings",
    "TopicsSettings",
    "WebSettings",
    "age_seconds",
    "env_name",
    "load",
    "parse_start",
    "proxy_error",
    "read_secret",
    "secret_trouble",
]
