"""`bridge doctor`: checks everything that a bridge depends on, and changes nothing.

`runner` runs the checks, those in `…_checks` by what they ask: this machine, Kafka and the registry, the
feed, the REST side. Each returns `finding`s: what `bridge run` would wait for is trouble, what would end it a
failure.
"""
