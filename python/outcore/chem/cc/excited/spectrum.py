"""Spectra of states with oscillator strengths: lines, and the curve that broadens them."""

from __future__ import annotations

import csv
import errno
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from outcore.base import plain_file
from outcore.base.errors import OutcoreError, as_outcore_error
from outcore.trace import plot

Values = np.ndarray[Any, np.dtype[Any]]

EV_NANOMETRES = 1239.841984
"""Energy of a photon (eV) times its wavelength (nm)."""
WIDTH = 0.4
"""Full width at half maximum of a line (eV), by default."""
FIGURES = (".png", ".pdf", ".svg")

_MARGIN = 3.0  # widths beside the lowest and the highest line
_POINTS = 40  # points of the curve in a width


@dataclass(frozen=True)
class Spectrum:
    """energies: eV, [state]. strengths: of oscillators, [state]. width: full width at half maximum of a line
    (eV)."""

    energies: Values
    strengths: Values
    width: float = WIDTH

    def curve(self) -> tuple[Values, Values]:
        """Energies (eV), and strength per eV: each line is a Gaussian whose area is its strength."""
        sigma = self.width / (2.0 * np.sqrt(2.0 * np.log(2.0)))
        low, high = self.energies.min() - _MARGIN * self.width, self.energies.max() + _MARGIN * self.width
        x = np.linspace(low, high, int(np.ceil((high - low) / self.width * _POINTS)) + 1)
        lines = np.exp(-0.5 * ((x[:, None] - self.energies) / sigma) ** 2)
        found: Values = lines @ self.strengths / (sigma * np.sqrt(2.0 * np.pi))
        return x, found

    @property
    def _line(self) -> str:
        return f"Gaussian lines, full width at half maximum {self.width:g} eV"

    def write(self, path: Path) -> None:
        """Writes a table with a row for each state, `line`, and for each point of the curve, `curve`, whose values
        are per eV; its first line says the width. Replaces an existing file. Not collective. Raises
        OutcoreError."""
        with (
            plain_file.replaced(path, "write the spectrum") as new,
            new.open("w", encoding="utf-8", newline="") as file,
        ):
            file.write(f"# {self._line}; a curve is strength per eV\n")
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(["row", "energy_ev", "wavelength_nm", "strength"])
            for kind, x, y in (("line", self.energies, self.strengths), ("curve", *self.curve())):
                for energy, value in zip(x, y, strict=True):
                    length = f"{EV_NANOMETRES / energy:.4f}" if energy > 0 else ""
                    rows.writerow([kind, f"{energy:.6f}", length, f"{value:.8g}"])

    def draw(self, path: Path) -> None:
        """Draws the curve, and lines from zero, as a figure. Not collective. Raises OutcoreError: matplotlib is
        missing, or the file cannot be written."""
        figure = plot.figure(figsize=(7, 4), dpi=120, layout="constrained")
        axes = figure.subplots()
        axes.plot(*self.curve(), color="#1f6fb4")
        axes.set_xlabel("energy (eV)")
        axes.set_ylabel("strength per eV")
        lines = axes.twinx()
        lines.vlines(self.energies, 0.0, self.strengths, color="#d1495b")
        lines.set_ylabel("oscillator strength")
        for each in (axes, lines):
            each.set_ylim(bottom=min(0.0, each.get_ylim()[0]))
        axes.set_title(self._line, loc="left", fontsize=9)
        try:
            figure.savefig(path)
        except OSError as error:
            raise as_outcore_error(error, f"write {path}") from error


def check_figure(option: str, path: Path | None) -> None:
    """Raises OutcoreError for a name whose ending is not in FIGURES, or if matplotlib is missing."""
    if path is None:
        return
    if path.suffix not in FIGURES:
        raise OutcoreError(
            errno.EINVAL, f"{option} {path}", detail=f"its name must end in {', '.join(FIGURES)}"
        )
    plot.figure()


def check_table(option: str, path: Path | None) -> None:
    """Raises OutcoreError for a name that does not end in .csv."""
    if path is not None and path.suffix != ".csv":
        raise OutcoreError(errno.EINVAL, f"{option} {path}", detail="its name must end in .csv")
