"""Cases of Full-CI tests are those of this folder too; PySCF and BLAS use one thread."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "ci"))

from ci_threads import one_thread

__all__ = ["one_thread"]
