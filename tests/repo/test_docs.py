"""The pages agree with the code and with each other."""

from __future__ import annotations

import re
import shlex
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from bridge import RELEASE
from bridge.cli import app
from bridge.config import Settings
from bridge.config.kafka import ALIASES, OURS, SECRETS
from bridge.errors import BridgeError
from tests.repo.source import ROOT
from tests.repo.test_imports import LEVELS, level
from tests.repo.test_layout import own_files
from tools.docs import generated


@pytest.mark.parametrize("path", generated(), ids=str)
def test_a_generated_file_is_up_to_date(path: Path) -> None:
    assert (ROOT / path).read_text("utf-8") == generated()[path]


def test_every_place_that_names_the_version_has_this_one() -> None:
    manifests = ("k8s/base/kustomization.yaml", "k8s/components/serving-jobs/kustomization.yaml")
    for path in (*manifests, "k8s/README.md", "docs/install.md"):
        named = re.findall(
            r"(?:settlement-bridge|newTag): ?(\d+\.\d+\.\d+)", (ROOT / path).read_text("utf-8")
        )
        assert set(named) == {RELEASE}, path
    changes = re.findall(r"^## (.+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert changes[0] == "Unreleased"
    assert re.fullmatch(rf"{re.escape(RELEASE)} - \d{{4}}-\d\d-\d\d", changes[1])


def test_the_drawing_of_the_packages_shows_the_levels() -> None:
    height: dict[str, float] = {}
    for line in (ROOT / "docs" / "architecture" / "rooms.txt").read_text("utf-8").splitlines():
        if box := re.match(r'box \S+ +\S+ +(\S+) .*"(.*)"', line):
            height |= dict.fromkeys(re.findall(r"[\w.]+", box[2]), float(box[1]))
    names = set().union(*LEVELS) - {"__main__"}
    assert names <= height.keys()
    assert [(a, b) for a in names for b in names if level(a) < level(b) and height[a] <= height[b]] == []


def test_the_example_file_holds_the_defaults() -> None:
    text = (ROOT / "bridge.example.toml").read_text("utf-8")
    values = tomllib.loads(re.sub(r"^#(\w+ = )", r"\1", text, flags=re.MULTILINE))
    defaults = Settings().model_dump(mode="json", exclude_none=True)
    for section, settings in defaults.items():
        assert settings.items() <= values[section].items()


def test_the_page_of_kafka_lists_its_secrets_and_what_is_the_bridges_own() -> None:
    page = (ROOT / "docs" / "kafka.md").read_text("utf-8")
    own = re.search(r"The bridge sets these properties itself.*?\n\n", page, re.DOTALL)
    secrets = re.search(r"^\| secret \|.*?\n\n", page, re.DOTALL | re.MULTILINE)
    assert own
    assert secrets
    assert set(re.findall(r"`(\w+)`", own[0])) == OURS | ALIASES.keys()
    assert sorted(re.findall(r"`(\w+)`", secrets[0])) == list(SECRETS)


def test_the_page_of_exit_codes_lists_them_all() -> None:
    page = (ROOT / "docs" / "exit-codes.md").read_text("utf-8")
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    assert listed == {0, 130} | {error.exit_code for error in below(BridgeError)}


def below(root: type[BridgeError]) -> list[type[BridgeError]]:
    """A class and all below it."""
    return [root, *(error for child in root.__subclasses__() for error in below(child))]


CODE = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)


def test_every_relative_link_resolves() -> None:
    broken = []
    for page in own_files():
        if page.suffix != ".md":
            continue
        text = re.sub(r"`[^`\n]*`", "", CODE.sub("", page.read_text("utf-8")))
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = target.partition("#")
            file = (page.parent / path) if path else page
            if "://" not in target and (not file.exists() or (anchor and anchor not in anchors(file))):
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", CODE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


RETIRED = re.compile(r"\b(dial\w*|guard|reign|ledger|journal|sink|half-open)\b", re.IGNORECASE)
"""Second words for what the glossary names."""
MEASURED = re.compile(r"<!-- (\w+) -->.*?<!-- /\1 -->", re.DOTALL)


def test_the_pages_use_the_words_of_the_glossary() -> None:
    found = []
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = MEASURED.sub("", CODE.sub("", page.read_text("utf-8")))
        text = re.sub(r"`[^`\n]*`|\]\([^)]*\)|^\| `bridge_.*$", "", text, flags=re.MULTILINE)
        found += [f"{page.relative_to(ROOT)}: {word}" for word in RETIRED.findall(text)]
    assert found == []


PATH = re.compile(r"`((?:bridge|benchmarks|docs|examples|k8s|schemas|tests|tools)/[\w./*-]*[\w*])/?`")


def test_every_path_that_a_page_names_is_there() -> None:
    missing = [
        f"{page.relative_to(ROOT)}: {path}"
        for page in own_files()
        if page.suffix == ".md" and page.name != "CHANGELOG.md"
        for path in PATH.findall(page.read_text("utf-8"))
        if not any(any(root.glob(path)) for root in (ROOT, page.parent))
    ]
    assert missing == []


COMMAND = re.compile(r"(?:^ *(?:\$ )?|`|bin/|-- )bridge(?= [a-z-])([^;|>`\n]*)", re.MULTILINE)
"""One that is typed: what follows the program."""


def test_every_command_that_a_page_types_is_one() -> None:
    seen, wrong, group = 0, list[str](), get_command(app)
    for page in own_files():
        if page.suffix != ".md" or page.name == "CHANGELOG.md":
            continue
        text = MEASURED.sub("", page.read_text("utf-8"))
        code = [found[0] for found in CODE.finditer(text)] + re.findall(r"`[^`\n]+`", CODE.sub("", text))
        for typed in (found for part in code for found in COMMAND.findall(part.replace("\\\n", ""))):
            seen += 1
            if not is_command(shlex.split(typed, comments=True), group):
                wrong.append(f"{page.relative_to(ROOT)}: bridge{typed}")
    assert wrong == []
    assert seen > 200


def is_command(words: list[str], command: Any) -> bool:
    """Whether the words are those of a command below this one, with options and choices that it has."""
    while words and words[0] in getattr(command, "commands", ()):
        command = command.commands[words.pop(0)]
    options = {name: option for option in command.params for name in option.opts}
    context = command.make_context(None, [], resilient_parsing=True)
    for word, value in pairwise([*words, ""]):
        if word.startswith("-") and word != "--help":
            option = options.get(word.partition("=")[0])
            choices = option.display_type(context).strip("<>").split("|") if option else []
            if not choices or (choices[1:] and value.islower() and value not in choices):
                return False
    return not hasattr(command, "commands") or not words or words[0].startswith("-")
