"""Models are those of all methods; PySCF and BLAS use one thread."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent))

from cc_support import one_thread

__all__ = ["one_thread"]
