"""Storms: three brokers and some bridges, with faults of every kind at random from a seed."""
