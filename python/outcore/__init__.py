"""Outcore keeps arrays and files larger than memory, for quantum chemistry.

Public names are loaded at first use, so that `import outcore` costs little.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outcore._core import Distribution as Distribution
    from outcore._core import ExclusiveFile as ExclusiveFile
    from outcore._core import Request as Request
    from outcore._core import clean as clean
    from outcore._core import default_scratch as default_scratch
    from outcore._core import wait_all as wait_all
    from outcore._core import wait_any as wait_any
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
    from outcore.tensor.array import Array as Array
    from outcore.tensor.einsum import einsum as einsum
    from outcore.tensor.layout import Layout as Layout
    from outcore.tensor.program import Program as Program
    from outcore.tensor.sparsity import Labels as Labels
    from outcore.tensor.symmetry import Symmetry as Symmetry
    from outcore.tensor.tiling import Space as Space
    from outcore.tensor.tiling import Tiling as Tiling

_MODULES = {
    "checkpoint": "outcore.keep.checkpoint",
    "classic": "outcore.keep.classic",
    "hdf5": "outcore.keep.hdf5",
}

# Where each public name lives.
_PUBLIC = {
    "Array": "outcore.tensor.array",
    "BlockSparseArray": "outcore.arrays.sparse_array",
    "DiskArray": "outcore.arrays.disk_array",
    "Distribution": "outcore._core",
    "ExclusiveFile": "outcore._core",
    "GlobalArray": "outcore.arrays.global_array",
    "Labels": "outcore.tensor.sparsity",
    "Layout": "outcore.tensor.layout",
    "NodeArray": "outcore.arrays.node_array",
    "NotConverged": "outcore.base.errors",
    "OutcoreError": "outcore.base.errors",
    "Program": "outcore.tensor.program",
    "RecordFile": "outcore.files.shared_file",
    "Request": "outcore._core",
    "SharedFile": "outcore.files.shared_file",
    "Space": "outcore.tensor.tiling",
    "Symmetry": "outcore.tensor.symmetry",
    "Tiling": "outcore.tensor.tiling",
    "World": "outcore.job.world",
    "clean": "outcore._core",
    "default_scratch": "outcore._core",
    "einsum": "outcore.tensor.einsum",
    "wait_all": "outcore._core",
    "wait_any": "outcore._core",
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
