"""Settlement bridge: a sportsbook settlement feed turned into Kafka, exactly once."""

__version__ = "0.2.0"
