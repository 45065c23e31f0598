"""What pyproject.toml cannot say: the version, what is compiled, and that a failing compiler is no error.

Without a C compiler, or Python's headers, the same modules are installed as plain Python; also where mypy is
missing, or refuses them, as a newer one may, unless BRIDGE_MUST_COMPILE is set in the environment.
"""

from __future__ import annotations

import os
import runpy
import sys
import sysconfig
from email.parser import Parser
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

COMPILED = [
    "bridge/audit/bets.py",
    "bridge/audit/placement.py",
    "bridge/avro/columns.py",
    "bridge/avro/decoder.py",
    "bridge/avro/encoder.py",
    "bridge/messages/extras.py",
    "bridge/messages/transcoder.py",
    "bridge/messages/converter.py",
    "bridge/feed/received.py",
    "bridge/feed/framing.py",
    "bridge/feed/position.py",
    "bridge/service/conversion_log.py",
    "bridge/service/pipeline.py",
    "bridge/service/replay.py",
    "bridge/messages/scalars.py",
    "bridge/kafka/batch.py",
    "bridge/kafka/cursor.py",
    "bridge/kafka/partitioner.py",
    "bridge/records/counters.py",
    "bridge/dedup/deduplicator.py",
    "bridge/dedup/eviction_horizon.py",
    "bridge/dedup/hash_table.py",
    "bridge/dedup/restored.py",
    "bridge/snapshots/usage.py",
]
"""Each works plain, too. They import the bridge, the standard library, librt and mypy_extensions only."""

# No mypy settings of the project: its plugins are not there where only the build's requirements are.
_MYPY = ["--config-file=", "--cache-dir=build/mypy", "--strict", "--follow-imports=silent"]

_LIBRARIES = f"*{sysconfig.get_config_var('EXT_SUFFIX')}"


class AllOrNone(build_ext):
    """Builds every extension, or, where one fails, leaves none: each needs the library they share."""

    def build_extensions(self) -> None:
        """Builds them. What fails is reported by setuptools as a warning, as it is optional."""
        for earlier in Path(self.build_lib).rglob(_LIBRARIES):
            earlier.unlink()  # it would pass for one of this build
        for extension in self.extensions:
            # Compilers differ in what they warn of.
            extension.extra_compile_args = [a for a in extension.extra_compile_args if a != "-Werror"]
        super().build_extensions()
        built = [Path(self.get_ext_fullpath(extension.name)) for extension in self.extensions]
        if not all(file.exists() for file in built):
            self.warn("not compiled: the plain modules will be used, which do the same more slowly")
            for file in built:
                file.unlink(missing_ok=True)

    def copy_extensions_to_source(self) -> None:
        """Into the checkout, for an editable install; what an earlier one left would hide its source."""
        for stale in [*Path("bridge").rglob(_LIBRARIES), *Path().glob(_LIBRARIES)]:
            stale.unlink()
        super().copy_extensions_to_source()


def extensions() -> list[Extension]:
    """All that mypyc makes of them; one that cannot be built where mypy is missing or refuses them."""
    try:
        from mypyc.build import mypycify

        found = mypycify([*_MYPY, *COMPILED], group_name="bridge", debug_level="0")
    except (ModuleNotFoundError, SystemExit) as error:
        if "BRIDGE_MUST_COMPILE" in os.environ:
            raise
        sys.stderr.write(f"warning: not compiled: {error or 'this mypy finds the errors above'}\n")
        # Not none at all: the libraries of earlier builds would stay, and hide their sources.
        found = [Extension("bridge__mypyc", ["made-by-no-mypy.c"])]
    for extension in found:
        extension.optional = True
    return found


def version() -> str:
    """The one given in the environment, or that of the sdist or the checkout."""
    made_from = Path("PKG-INFO")
    if made_from.exists():
        return Parser().parsestr(made_from.read_text("utf-8"))["Version"]
    bridge = runpy.run_path("bridge/__init__.py")
    here = bridge["__version__"] if Path(".git").exists() else f"{bridge['RELEASE']}+unknown"
    return os.environ.get("BRIDGE_VERSION") or here


# pip asks for the requirements and the metadata before it builds: mypy need not work for those answers, nor
# for an sdist.
_only_asked = not {"egg_info", "dist_info", "sdist"}.isdisjoint(sys.argv)
_plain = _only_asked or "BRIDGE_PLAIN" in os.environ  # a wheel for any platform
setup(version=version(), ext_modules=[] if _plain else extensions(), cmdclass={"build_ext": AllOrNone})
