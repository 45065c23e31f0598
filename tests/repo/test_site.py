"""The pages are laid out as MkDocs takes them; that it does so is seen by `make site`."""

from __future__ import annotations

from pathlib import Path

from tests.repo.source import ROOT
from tools.site import INDEX, indented, lay_out, menu

PAGE = """\
1. First:

   ```yaml
   - name: x
     value: y
   ```

   And more.
2. Second.
   - within

- a
  b
- c

Behind.

```
- no item
  at all
```
"""
LAID_OUT = """\
1. First:

    ```yaml
    - name: x
      value: y
    ```

    And more.

2. Second.
    - within

- a
    b
- c

Behind.

```
- no item
  at all
```
"""


def test_what_belongs_to_an_item_is_indented_and_code_is_left_alone() -> None:
    assert indented(PAGE) == LAID_OUT


def test_the_menu_has_each_page_of_the_index_once() -> None:
    sections = menu((ROOT / INDEX).read_text("utf-8"))
    named = [page for section in sections[2:] for links in section.values() for page in _pages(links)]
    assert len(named) == len({*named}) > 25
    assert all((ROOT / page).is_file() for page in named)


def _pages(links: object) -> list[str]:
    assert isinstance(links, list)
    return [page for link in links for page in link.values()]


def test_pages_lie_with_what_they_link(tmp_path: Path) -> None:
    lay_out(tmp_path)
    assert (tmp_path / "docs" / "images" / "gap-390-light.png").is_file()  # by <img>
    assert (tmp_path / "docs" / "images" / "catching-up-1440-light.png").is_file()
    assert "](../examples/kafka-streams/README.md)" in (tmp_path / "docs" / "reading.md").read_text("utf-8")
