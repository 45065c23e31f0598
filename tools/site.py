"""The pages as a site that needs no network: `python -m tools.site`, by `make site`, into site/.

MkDocs takes one folder and its own way of lists, so the pages are laid out in one, with what they link.
The menu is the index, docs/README.md. A link that leads nowhere is an error.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[1]
SITE = ROOT / "site"
INDEX = Path("docs/README.md")
LINK = re.compile(r"\[([^\[\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
ITEM = re.compile(r"^( *)((?:[-*]|\d+\.) +)")
STYLE = """
@media (min-width: 76.25em) { .md-grid { max-width: 76rem } }  /* 110 columns of code fit */
@media (max-width: 45em) { .md-typeset table:not([class]) :is(td, th) { padding: 0.5em; min-width: 0 } }
.md-typeset td:first-child > code { white-space: nowrap }  /* a name is one word */
"""
TAB = 4
"""Columns by which MkDocs indents what belongs to an item of a list."""
THEME = {
    "name": "material",
    "font": False,  # else it is asked of another host
    "features": ["content.code.copy", "toc.follow"],
}
LINKS = dict.fromkeys(("not_found", "anchors", "absolute_links", "unrecognized_links"), "warn")


def config(pages: Path, menu: list[dict[str, object]]) -> dict[str, object]:
    """Return the settings of MkDocs."""
    return {
        "site_name": "Settlement bridge",
        "docs_dir": str(pages),
        "theme": THEME,
        "use_directory_urls": False,  # so that it can be read without a server; only the search needs one
        "plugins": ["search"],
        "extra_css": ["style.css"],
        "extra": {"generator": False},
        "markdown_extensions": ["tables", "toc", "pymdownx.superfences", "pymdownx.highlight"],
        "validation": {"nav": {"omitted_files": "ignore"}, "links": LINKS},
        "nav": menu,
    }


def menu(index: str) -> list[dict[str, object]]:
    """Return the sections of the index with their pages, each once."""
    found: list[dict[str, object]] = []
    seen = set[str]()
    for section, items in re.findall(r"^(\w[^\n]*):\n\n((?:- .*\n(?:  .*\n)*)+)", index, re.MULTILINE):
        links = re.findall(r"\[([^\]]+)\]\(([^)#]+\.md)\)", " ".join(items.split()))
        own = [{title: _from_root(INDEX, target)} for title, target in links if target not in seen]
        seen.update(target for _, target in links)
        found.append({section: own})
    return [{"Home": "README.md"}, {"All pages": str(INDEX)}, *found]


def lay_out(pages: Path) -> None:
    """Copy the pages, and the files that they link, into an empty folder."""
    command = [shutil.which("git") or "git", "ls-files", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    for name in map(Path, listed.stdout.split()):
        text = (ROOT / name).read_text("utf-8")
        for target in [*(link[1] for link in LINK.findall(text)), *re.findall(r'src="([^"]+)"', text)]:
            linked = _from_root(name, target)
            if (ROOT / linked).is_file() and not linked.endswith(".md"):
                _put(pages / linked, (ROOT / linked).read_bytes())
        text = LINK.sub(partial(_to_page, name), text)
        _put(pages / name, indented(text).encode())


def indented(page: str) -> str:
    """Return a page in which what belongs to an item of a list is indented as MkDocs wants it."""
    lines, open_items = list[str](), list[int]()
    is_code = is_loose = False
    for line in page.splitlines():
        item = None if is_code else ITEM.match(line)
        if not is_code:
            indent = len(line) - len(line.lstrip())
            while line.strip() and open_items and indent < open_items[-1]:
                open_items.pop()
            is_loose = bool(open_items) if not line else is_loose
        inner = open_items[-1] if open_items else 0
        if item and is_loose and lines[-1]:
            lines.append("")
        lines.append(line and " " * TAB * len(open_items) + line[inner:])
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif item:
            open_items.append(len(item[0]))
            is_loose = False
    return "\n".join(lines) + "\n"


def _from_root(page: Path, target: str) -> str:
    """Return a link's target as a path from the root of the repository."""
    place = (ROOT / page).parent / target
    return target if "://" in target else str(place.resolve().relative_to(ROOT))


def _to_page(page: Path, link: re.Match[str]) -> str:
    """Return a link to a folder as one to its page, or as text where it has none."""
    text, target, anchor = link.groups("")
    if not (folder := ROOT / page.parent / target).is_dir():
        return link[0]
    return f"[{text}]({target.rstrip('/')}/README.md{anchor})" if (folder / "README.md").is_file() else text


def _put(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def main() -> int:
    """Build the site. Returns 1 if a link leads nowhere."""
    with tempfile.TemporaryDirectory() as directory:
        pages, settings = Path(directory) / "pages", Path(directory) / "mkdocs.yml"
        lay_out(pages)
        _put(pages / "style.css", STYLE.encode())
        index = (ROOT / INDEX).read_text("utf-8")
        settings.write_text(json.dumps(config(pages, menu(index))), "utf-8")
        shutil.rmtree(SITE, ignore_errors=True)
        command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
        environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}  # it is about the theme's own plans
        command += ["-f", str(settings), "-d", str(SITE)]
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
