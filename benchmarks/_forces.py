"""Sums over the atoms of a gradient that are zero, because an energy does not change when the molecule is moved or
turned."""

from __future__ import annotations

from typing import Any

import numpy as np


def force(gradient: Any) -> float:
    """The largest element of the sum of a gradient [atom][x], in the unit of the gradient."""
    return float(abs(np.asarray(gradient).sum(0)).max())


def torque(places: Any, gradient: Any) -> float:
    """The largest element of the sum of places x gradient, both [atom][x]; Hartree, for Bohr and Hartree/Bohr."""
    return float(abs(np.cross(np.asarray(places), np.asarray(gradient)).sum(0)).max())
