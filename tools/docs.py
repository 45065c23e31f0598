"""Write every generated file of the documentation: `python -m tools.docs`."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

from tools import dashboard, licences, settings
from tools.drawing import draw

ROOT = Path(__file__).parents[1]
_SHOWN = re.compile(r"(<!-- (clients/\S+) -->\n```\w+\n).*?(?=```\n)", re.DOTALL)
"""On a page: the parts of a program that are to be shown there."""
_PARTS = re.compile(r"^[ \t]*(?:#|//) page\n(.*?)^[ \t]*(?:#|//) /page\n", re.DOTALL | re.MULTILINE)
"""In a program: what a page shows of it."""


def with_programs(page: str) -> str:
    """Return a page with the parts of the programs as they are now."""

    def shown(found: re.Match[str]) -> str:
        parts = _PARTS.findall((ROOT / found[2]).read_text("utf-8"))
        return found[1] + "\n".join(dedent(part).expandtabs(4) for part in parts)

    return _SHOWN.sub(shown, page)


def generated() -> dict[Path, str]:
    """Path, from the root of the repository, → content."""
    drawings = sorted((ROOT / "docs" / "architecture").glob("*.txt"))
    return {
        Path("docs/configuration.md"): settings.page(),
        Path("bridge.example.toml"): settings.example(),
        Path("docs/licences.md"): licences.page(),
        Path("docs/reading.md"): with_programs((ROOT / "docs" / "reading.md").read_text("utf-8")),
        Path("k8s/observe/dashboard.json"): dashboard.dashboard(),
        **{d.with_suffix(".svg").relative_to(ROOT): draw(d.read_text("utf-8")) for d in drawings},
    }


if __name__ == "__main__":
    for path, content in generated().items():
        (ROOT / path).write_text(content, "utf-8")
