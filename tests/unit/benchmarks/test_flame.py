"""What perf has sampled, as a flame graph that tells our functions from libraries."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

import pytest

from benchmarks.flame import stacks
from benchmarks.plot import WIDTH, flame

SCRIPT = """python
\t    7f2b _PyObject_Malloc (/usr/lib/libpython3.11.so.1.0)
\t    7f2c PyBlake2_blake2b (/lib-dynload/_blake2.cpython-311-x86_64-linux-gnu.so)
\t    7f2c [unknown] (/site-packages/_pydantic_core.cpython-311-x86_64-linux-gnu.so)
\t    7f2d [unknown] (/site-packages/_pydantic_core.cpython-311-x86_64-linux-gnu.so)
\t    7f2e CPyDef_encoder____Record___write (/bridge__mypyc.cpython-311-x86_64-linux-gnu.so)
\t    7f2f CPyPy_pipeline___Pipeline___handle (/bridge__mypyc.cpython-311-x86_64-linux-gnu.so)
\t    7f30 main (/usr/bin/python3.11)

rdk:main
\tffff entry_SYSCALL_64 ([kernel.kallsyms])
\t    7f31 rd_kafka_thread_main (/confluent_kafka.libs/librdkafka-0cb94173.so.1)

python
\t    7f30 main (/usr/bin/python3.11)

"""
OURS = (
    "python",
    "pipeline.Pipeline.handle",
    "encoder._Record.write",
    "_pydantic_core",
    "_blake2",
    "libpython",
)


def test_a_stack_is_told_from_the_outermost_call() -> None:
    """Our functions by name, libraries as a whole, under the name of their thread."""
    assert stacks(SCRIPT) == {
        ("python (thread)", *OURS): 1,
        ("rdk:main (thread)", "librdkafka", "kernel"): 1,
        ("python (thread)", "python"): 1,
    }


def test_a_box_is_as_wide_as_its_share() -> None:
    """And stands upon its caller; what was seen too rarely is left out."""
    svg = flame("busy", {("a", "b"): 600, ("a", "c & d"): 200, ("a",): 199, ("rare",): 1})
    space = "{http://www.w3.org/2000/svg}"
    boxes = {}
    for group in Xml.fromstring(svg).iter(f"{space}g"):
        told, box = group.find(f"{space}title"), group.find(f"{space}rect")
        assert told is not None
        assert box is not None
        boxes[told.text] = {name: float(box.attrib[name]) for name in ("x", "y", "width")}
    assert list(boxes) == ["a: 99.9%", "b: 60.0%", "c & d: 20.0%"]
    a, b, c = boxes.values()
    assert b["width"] == pytest.approx(0.6 * (WIDTH - 20), abs=0.2)
    assert c["x"] == pytest.approx(b["x"] + b["width"], abs=0.2)
    assert b["y"] == c["y"] < a["y"]
