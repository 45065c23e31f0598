"""The settings, frozen and validated. `load` reads them; nothing else reads the environment."""

from bridge.config.api import ApiSettings
from bridge.config.fields import env_name, proxy_error
from bridge.config.loader import Settings, load
from bridge.config.secrets import secret_trouble
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
    "secret_trouble",
]
