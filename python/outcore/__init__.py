"""Outcore keeps arrays and files larger than memory, for quantum chemistry.

Public names are loaded at first use, so that `import outcore` costs little.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outcore._core import Distribution as Distribution
    from outcore._core import ExclusiveFile as ExclusiveFile
    from outcore._core import clean as clean
    from outcore._core import default_scratch as default_scratch
    from outcore.arrays.disk_array import DiskArray as DiskArray
    from outcore.arrays.global_array import GlobalArray as GlobalArray
    from outcore.arrays.node_array import NodeArray as NodeArray
    from outcore.arrays.sparse_array import BlockSparseArray as BlockSparseArray
    from outcore.base.errors import NotConverged as NotConverged
    from outcore.base.errors import OutcoreError as OutcoreError
    from outcore.files.shared_file import RecordFile as RecordFile
    from outcore.files.shared_file import SharedFile as SharedFile
    from outcore.job.world import World as World
    from outcore.keep import checkpoint as checkpoint
    from outcore.keep import classic as classic
    from outcore.keep import hdf5 as hdf5
    from outcore.parallel.requests import Request as Request
    from outcore.parallel.requests import wait_all as wait_all
    from outcore.parallel.requests import wait_any as wait_any
    from outcore.tensor.arrays.array import Array as Array
    from outcore.tensor.layout.layout import Layout as Layout
    from outcore.tensor.layout.sparsity import Labels as Labels
    from outcore.tensor.layout.symmetry import Symmetry as Symmetry
    from outcore.tensor.layout.tiling import Space as Space
    from outcore.tensor.layout.tiling import Tiling as Tiling
    from outcore.tensor.program.einsum import einsum as einsum
    from outcore.tensor.program.program import Program as Program

_MODULES = {
    "checkpoint": "outcore.keep.checkpoint",
    "classic": "outcore.keep.classic",
    "hdf5": "outcore.keep.hdf5",
}

# Where each public name lives.
_PUBLIC = {
    "Array": "outcore.tensor.arrays.array",
    "BlockSparseArray": "outcore.arrays.sparse_array",
    "DiskArray": "outcore.arrays.disk_array",
    "Distribution": "outcore._core",
    "ExclusiveFile": "outcore._core",
    "GlobalArray": "outcore.arrays.global_array",
    "Labels": "outcore.tensor.layout.sparsity",
    "Layout": "outcore.tensor.layout.layout",
    "NodeArray": "outcore.arrays.node_array",
    "NotConverged": "outcore.base.errors",
    "OutcoreError": "outcore.base.errors",
    "Program": "outcore.tensor.program.program",
    "RecordFile": "outcore.files.shared_file",
    "Request": "outcore.parallel.requests",
    "SharedFile": "outcore.files.shared_file",
    "Space": "outcore.tensor.layout.tiling",
    "Symmetry": "outcore.tensor.layout.symmetry",
    "Tiling": "outcore.tensor.layout.tiling",
    "World": "outcore.job.world",
    "clean": "outcore._core",
    "default_scratch": "outcore._core",
    "einsum": "outcore.tensor.program.einsum",
    "wait_all": "outcore.parallel.requests",
    "wait_any": "outcore.parallel.requests",
}

__all__ = [
    "Array",
    "BlockSparseArray",
    "DiskArray",
    "Distribution",
    "ExclusiveFile",
    "GlobalArray",
    "Labels",
    "Layout",
    "NodeArray",
    "NotConverged",
    "OutcoreError",
    "Program",
    "RecordFile",
    "Request",
    "SharedFile",
    "Space",
    "Symmetry",
    "Tiling",
    "World",
    "__version__",
    "checkpoint",
    "classic",
    "clean",
    "default_scratch",
    "einsum",
    "hdf5",
    "wait_all",
    "wait_any",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("outcore")
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name in _PUBLIC:
        value = globals()[name] = getattr(importlib.import_module(_PUBLIC[name]), name)
        return value
    raise AttributeError(f"module 'outcore' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
