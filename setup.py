"""What pyproject.toml cannot say: which modules are compiled, and that a failing compiler is no error.

Without a C compiler, or Python's headers, the same modules are installed as plain Python.
"""

from __future__ import annotations

import sysconfig
from pathlib import Path

from mypyc.build import mypycify
from setuptools import setup
from setuptools.command.build_ext import build_ext

COMPILED = [
    "bridge/avro/encoder.py",
    "bridge/avro/layout.py",
    "bridge/avro/transcoder.py",
    "bridge/feed/frames.py",
    "bridge/feed/position.py",
    "bridge/scalars.py",
    "bridge/sink/table.py",
]
"""Each works plain, too, and imports nothing but its like, the standard library and librt."""

# No mypy settings of the project: its plugins are not there where only the build's requirements are.
_MYPY = ["--config-file=", "--cache-dir=build/mypy", "--strict", "--follow-imports=silent"]


class AllOrNone(build_ext):
    """Builds every extension, or, where one fails, leaves none: each needs the library they share."""

    def build_extensions(self) -> None:
        """Builds them. What fails is reported by setuptools as a warning, as it is optional."""
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
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        for stale in [*Path("bridge").rglob(f"*{suffix}"), *Path().glob(f"*{suffix}")]:
            stale.unlink()
        super().copy_extensions_to_source()


extensions = mypycify([*_MYPY, *COMPILED], group_name="bridge", debug_level="0")
for extension in extensions:
    extension.optional = True
setup(ext_modules=extensions, cmdclass={"build_ext": AllOrNone})
