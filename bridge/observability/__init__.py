"""Status page, health and metrics of a running program, over HTTP.

`status` is what is shown of a bridge at one moment. `health`, `metrics` and `view` make something of it,
and `endpoints` serves that. The event loop only takes the snapshot.
"""
