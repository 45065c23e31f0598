"""Write every generated file of the documentation: `python -m tools.docs`."""

from __future__ import annotations

from pathlib import Path

from tools import dashboard, licences, settings
from tools.drawing import draw

ROOT = Path(__file__).parents[1]


def generated() -> dict[Path, str]:
    """Path, from the root of the repository, → content."""
    drawings = sorted((ROOT / "docs" / "architecture").glob("*.txt"))
    return {
        Path("docs/configuration.md"): settings.page(),
        Path("bridge.example.toml"): settings.example(),
        Path("docs/licences.md"): licences.page(),
        Path("k8s/observe/dashboard.json"): dashboard.dashboard(),
        **{d.with_suffix(".svg").relative_to(ROOT): draw(d.read_text("utf-8")) for d in drawings},
    }


if __name__ == "__main__":
    for path, content in generated().items():
        (ROOT / path).write_text(content, "utf-8")
