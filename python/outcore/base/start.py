"""Makes a command start fast. A program that imports Outcore is not affected.

Modules that other packages import and few runs use are loaded at their first use. PySCF imports `scipy.optimize`,
which an SCF needs for EDIIS and smearing alone, and `pyscf.ao2mo`. SciPy imports all names of NumPy, including the
Fortran translator and the tools for tests. `scipy.special` and `scipy.linalg` spend most of their import time on
notes that they add to their documentation; PySCF needs only functions of some of their submodules.
"""

from __future__ import annotations

import gc
import importlib
import importlib.machinery
import importlib.util
import sys
import threading
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import Loader  # slow to load

MODULES: dict[str, tuple[str, ...]] = {
    "numpy.ctypeslib": (),
    "numpy.f2py": (),
    "numpy.polynomial": (),
    "numpy.testing": (),
    "pyscf.ao2mo": (),
    "scipy.linalg": ("_decomp", "_special_matrices", "_decomp_cholesky", "_basic", "_misc"),
    "scipy.optimize": (),
    "scipy.special": ("_ufuncs", "_basic", "_multiufuncs"),
}
"""Modules that are loaded at their first use. Some export the public names of submodules, which are listed here: a
name is looked for in these submodules first, in this order, without loading the rest. Of a module with submodules
listed, private names are found only if they are names of submodules."""

_loading = threading.RLock()


class _Deferred(types.ModuleType):
    """A module whose code runs only when a caller asks for a name that it does not have yet."""

    def __getattr__(self, name: str) -> object:
        with _loading:
            if "_deferred" in vars(self):
                found = self._of_parts(name)
                if found is not None:
                    return found
            loader = vars(self).pop("_deferred", None)
            if loader is not None:
                try:
                    loader.exec_module(self)
                except BaseException:
                    vars(self)["_deferred"] = loader  # the next use raises the same error
                    raise
                self.__class__ = types.ModuleType  # type: ignore[assignment]
        return types.ModuleType.__getattribute__(self, name)

    def _of_parts(self, name: str) -> object:
        """A submodule of this name, or a public name of a submodule in `MODULES`; None: only the loaded module can
        tell."""
        parts = MODULES[self.__name__]
        if not parts or name.startswith("__"):
            return None
        place = f"{self.__name__}.{name}"
        if importlib.util.find_spec(place) is not None:
            return importlib.import_module(place)
        if name.startswith("_"):
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        for part in parts:
            module = importlib.import_module(f"{self.__name__}.{part}")
            if name in module.__all__:
                vars(self)[name] = getattr(module, name)
                return vars(self)[name]
        return None

    def __dir__(self) -> list[str]:
        self.__getattr__("__name__")
        return dir(self)


class _Loader:
    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return self._loader.create_module(spec) or _Deferred(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        if module.__spec__ is not None:
            module.__loader__ = module.__spec__.loader = self._loader  # it knows files and resources
        if isinstance(module, _Deferred):
            vars(module)["_deferred"] = self._loader
        else:
            self._loader.exec_module(module)


class _Finder:
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in MODULES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


_stays = [False]  # whether loaded modules stay until the process ends


def defer(*, stays: bool = False) -> None:
    """Defers loading `MODULES` in this process, except those that are loaded already. May be repeated. stays: the
    process only runs a command, so the garbage collector need not look at its modules again, even at the end."""
    _stays[0] = _stays[0] or stays
    if not any(isinstance(each, _Finder) for each in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


@contextmanager
def loading() -> Iterator[None]:
    """Stops garbage collection while modules are loaded.

    In the process of a command every object that is alive at the end of it stays, also in a cycle. An object that
    is alive then drops its references to such cycles itself before the process ends, if the core has made a part of
    them: nanobind reports it as leaked otherwise."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if _stays[0]:
            gc.freeze()
        if enabled:
            gc.enable()
