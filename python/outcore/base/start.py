"""What makes a command start soon. A program that imports Outcore is left as it is.

Modules that other packages import and few runs use are loaded at their first use. PySCF imports `scipy.optimize`,
which an SCF needs for EDIIS and smearing alone. SciPy imports all names of NumPy, with them the Fortran translator
and the tools for tests.
"""

from __future__ import annotations

import gc
import importlib.abc
import importlib.machinery
import sys
import threading
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

MODULES = frozenset({"numpy.f2py", "numpy.testing", "scipy.optimize"})

_loading = threading.RLock()


class _Deferred(types.ModuleType):
    """A module whose code runs when a name is asked for that the import alone has not given it."""

    def __getattr__(self, name: str) -> object:
        with _loading:
            loader = vars(self).pop("_deferred", None)
            if loader is not None:
                try:
                    loader.exec_module(self)
                except BaseException:
                    vars(self)["_deferred"] = loader  # the next use says the same
                    raise
                self.__class__ = types.ModuleType  # type: ignore[assignment]
        return types.ModuleType.__getattribute__(self, name)

    def __dir__(self) -> list[str]:
        self.__getattr__("__name__")
        return dir(self)


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return self._loader.create_module(spec) or _Deferred(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        if module.__spec__ is not None:
            module.__loader__ = module.__spec__.loader = self._loader  # which knows files and resources
        if isinstance(module, _Deferred):
            vars(module)["_deferred"] = self._loader
        else:
            self._loader.exec_module(module)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in MODULES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


def defer() -> None:
    """Puts off `MODULES` in this process, but for those that it has loaded. May be repeated."""
    if not any(isinstance(each, _Finder) for each in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


@contextmanager
def loading() -> Iterator[None]:
    """While modules are loaded nothing looks for garbage among them: they stay."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
