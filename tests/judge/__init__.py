"""Judges from outside what a bridge has made of a simulator's feed. Knows nothing of the bridge's code."""

from tests.judge.model import Anomaly, Case, Excuse, Found, Report
from tests.judge.run import judge, read_gaps
from tests.judge.watch import missing

__all__ = ["Anomaly", "Case", "Excuse", "Found", "Report", "judge", "missing", "read_gaps"]
