"""Asks librdkafka which properties it has and accepts; the Python client has no call for that.

Where the client's build does not export librdkafka's functions, everything is accepted here, and creating a
client fails instead.
"""

from __future__ import annotations

import ctypes
import re
from difflib import get_close_matches


def property_error(name: str, value: object) -> str:
    """Return why librdkafka refuses a property of that name (`linger.ms`), "" if it accepts it."""
    reason = ctypes.create_string_buffer(512)
    try:
        library = _library()
        library.rd_kafka_conf_new.restype = ctypes.c_void_p
        properties = ctypes.c_void_p(library.rd_kafka_conf_new())
        given = (text.encode("utf-8", "surrogateescape") for text in (name, str(value)))
        code = library.rd_kafka_conf_set(properties, *given, reason, ctypes.c_size_t(len(reason)))
        library.rd_kafka_conf_destroy(properties)
    except (OSError, AttributeError):
        return ""
    if not code:
        return ""
    near = [] if code == -1 else get_close_matches(name, _names(), n=1)
    hint = f"; did you mean kafka.{near[0].replace('.', '_')}?" if near else ""
    return f"librdkafka does not accept it: {reason.value.decode().strip()}{hint}"


def _names() -> list[str]:
    return re.findall(r"^([a-z][\w.]+) +\|", table_of_properties(), re.MULTILINE)


def table_of_properties() -> str:
    """Return the table of all properties that librdkafka prints, in Markdown.

    Raises OSError or AttributeError where its functions are not exported.
    """
    table, size = ctypes.c_char_p(), ctypes.c_size_t()
    libc = ctypes.CDLL(None)
    libc.open_memstream.restype = ctypes.c_void_p
    stream = ctypes.c_void_p(libc.open_memstream(ctypes.byref(table), ctypes.byref(size)))
    _library().rd_kafka_conf_properties_show(stream)
    libc.fclose(stream)
    return (table.value or b"").decode()


def _library() -> ctypes.CDLL:
    from confluent_kafka import cimpl

    return ctypes.CDLL(cimpl.__file__)
