"""PySCF and BLAS use one thread."""

from __future__ import annotations

from cc_support import one_thread

__all__ = ["one_thread"]
