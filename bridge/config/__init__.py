"""The settings, frozen and validated. `load` reads them; nothing else reads `BRIDGE_…` variables."""

from bridge.config.api import ApiSettings as ApiSettings
from bridge.config.feed import FeedSettings as FeedSettings
from bridge.config.kafka import KafkaSettings as KafkaSettings
from bridge.config.loader import Settings as Settings
from bridge.config.loader import load as load
from bridge.config.names import env_name as env_name
from bridge.config.proxies import http_scheme as http_scheme
from bridge.config.proxies import proxy_of as proxy_of
from bridge.config.sections import BatchSettings as BatchSettings
from bridge.config.sections import LimitsSettings as LimitsSettings
from bridge.config.sections import RegistrySettings as RegistrySettings
from bridge.config.sections import TopicsSettings as TopicsSettings
from bridge.config.sections import WebSettings as WebSettings
from bridge.config.times import age_seconds as age_seconds
from bridge.config.times import parse_start as parse_start
from bridge.config.times import parse_time as parse_time
