"""Ask librdkafka whether it accepts a property; the Python client has no call for that.

Where the client's build does not export librdkafka's functions, everything is accepted here, and creating a
client fails instead.
"""

from __future__ import annotations

import ctypes


def property_error(name: str, value: object) -> str:
    """Return why librdkafka refuses a property of that name (`linger.ms`), "" if it accepts it."""
    from confluent_kafka import cimpl

    reason = ctypes.create_string_buffer(512)
    try:
        library = ctypes.CDLL(cimpl.__file__)
        library.rd_kafka_conf_new.restype = ctypes.c_void_p
        properties = ctypes.c_void_p(library.rd_kafka_conf_new())
        given = (text.encode("utf-8", "surrogateescape") for text in (name, str(value)))
        code = library.rd_kafka_conf_set(properties, *given, reason, ctypes.c_size_t(len(reason)))
        library.rd_kafka_conf_destroy(properties)
    except (OSError, AttributeError):
        return ""
    return f"librdkafka does not accept it: {reason.value.decode().strip()}" if code else ""
