"""Encodes metrics in Prometheus' text format or OpenMetrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from prometheus_client import CollectorRegistry, Metric, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

F = TypeVar("F", CounterMetricFamily, GaugeMetricFamily)
K = TypeVar("K", bound=str | tuple[str, ...])


def filled(family: F, samples: Mapping[K, float]) -> F:
    """Add samples to a family with labels, each under its label value or values."""
    for key, value in samples.items():
        family.add_metric([key] if isinstance(key, str) else key, value)
    return family


def exposition(
    families: Iterable[Metric], labels: Mapping[str, str], accept: str = "", *, process: bool = True
) -> tuple[bytes, str]:
    """Encode metrics, each with `labels`, and those of the process; return the text and its content type.

    `accept` is the header of that name, by which a scraper may ask for OpenMetrics.
    """
    registry = CollectorRegistry()
    registry.register(_Labelled(families, labels))
    if process:
        registry.register(_Labelled(ProcessCollector(registry=None).collect(), labels))
    try:
        encode, content_type = choose_encoder(accept)
    except (TypeError, ValueError):  # a version that is none
        encode, content_type = choose_encoder("")
    return encode(registry), content_type


class _Labelled(Collector):
    def __init__(self, families: Iterable[Metric], labels: Mapping[str, str]) -> None:
        self._families, self._labels = families, labels

    def collect(self) -> Iterator[Metric]:
        for family in self._families:
            family.samples = [s._replace(labels={**self._labels, **s.labels}) for s in family.samples]
            yield family
