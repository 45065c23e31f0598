"""The licences of what runs in production: docs/licences.md, by what each package says of itself."""

from __future__ import annotations

import re
from importlib import metadata
from importlib.metadata import PackageMetadata
from pathlib import Path

LOCK = Path(__file__).parents[1] / "requirements" / "runtime.txt"
PERMISSIVE = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "ISC",
        "MIT",
        "MIT-0",
        "PSF-2.0",
        "Unlicense",
        "Zlib",
    }
)
"""SPDX identifiers of licences that ask for no more than notices."""
FILE_COPYLEFT = {"certifi": "MPL-2.0", "orjson": "MPL-2.0"}
"""Packages under a licence that binds changes of their own files only. They are used as published."""
CLASSIFIERS = {
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: ISC License (ISCL)": "ISC",
    "License :: OSI Approved :: MIT License": "MIT",
}
"""Those that name one licence. Others, such as that of BSD, name several."""
BY_TEXT = {"jinja2": "BSD-3-Clause"}
"""Packages that name several; which of them it is, their licence file says."""
ELSEWHERE = re.compile(r"sys_platform == '(?:win32|emscripten)'")
"""Markers of packages for platforms on which the bridge does not run."""
HEAD = """\
# Licences

Written by `make docs`: what runs in production, by what each package declares, with the versions in
`requirements/runtime.txt`. A test fails on a package without a known licence and on a copyleft one. MPL-2.0
binds changes of the package's own files only, which are used as published. Libraries inside of wheels, such
as librdkafka, are not listed apart. `make sbom` writes the same packages as a CycloneDX bill of materials.

| package | version | licence |
|---|---|---|
"""


class UnknownLicence(Exception):
    """A package does not say its licence in a way that is known here."""


def locked() -> dict[str, str]:
    """Name → version of what is installed in production, on the platforms that are supported."""
    lines = re.findall(r"^([\w.-]+)==([\w.!+-]+)(.*)$", LOCK.read_text("utf-8"), re.MULTILINE)
    return {name: version for name, version, marker in lines if not ELSEWHERE.search(marker)}


def declared(package: PackageMetadata) -> str:
    """Return the licence as an SPDX expression. Raises UnknownLicence."""
    expressions = package.get_all("License-Expression", [])
    if expressions:
        return str(expressions[0])
    texts = package.get_all("License", [])
    for text in PERMISSIVE.union(FILE_COPYLEFT.values()).intersection(texts):
        return text
    classifiers = [c for c in package.get_all("Classifier", []) if c.startswith("License ::")]
    if len(classifiers) == 1 and classifiers[0] in CLASSIFIERS:
        return CLASSIFIERS[classifiers[0]]
    if package["Name"].lower() in BY_TEXT:
        return BY_TEXT[package["Name"].lower()]
    raise UnknownLicence(f"{package['Name']} does not declare a known licence: {texts} {classifiers}")


def refused(name: str, expression: str) -> set[str]:
    """Return the licences in an expression that a package may not have here, alternatives included."""
    named = set(re.findall(r"[\w.+-]+", expression)) - {"AND", "OR", "WITH"}
    return named - PERMISSIVE - {FILE_COPYLEFT.get(name, "")}


def page() -> str:
    """Return the content of docs/licences.md. Raises UnknownLicence, PackageNotFoundError."""
    rows = [
        f"| {name} | {version} | {declared(metadata.metadata(name))} |" for name, version in locked().items()
    ]
    return HEAD + "\n".join(rows) + "\n"
