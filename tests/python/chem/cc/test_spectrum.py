"""Spectra: lines and the curve that broadens them."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest

from outcore import OutcoreError
from outcore.chem.cc.excited import spectrum
from outcore.chem.cc.excited.spectrum import Spectrum


def test_the_area_of_the_curve_is_the_sum_of_strengths() -> None:
    x, y = Spectrum(np.array([3.0, 4.5]), np.array([0.2, 0.05]), 0.3).curve()
    assert np.trapezoid(y, x) == pytest.approx(0.25, abs=1e-6)


def test_a_line_has_half_of_its_height_at_half_of_its_width() -> None:
    x, y = Spectrum(np.array([5.0]), np.array([1.0]), 0.5).curve()
    high = y[np.argmin(abs(x - 5.0))]
    for place in (4.75, 5.25):
        assert np.interp(place, x, y) == pytest.approx(high / 2, rel=1e-3)


def test_a_table_has_lines_and_the_curve(tmp_path: Path) -> None:
    path = tmp_path / "found.csv"
    Spectrum(np.array([-0.1, 4.0]), np.array([0.0, 0.5]), 0.5).write(path)
    first, head, *rows = path.read_text().splitlines()
    assert first.startswith("#") and "0.5 eV" in first
    assert head == "row,energy_ev,wavelength_nm,strength"
    assert rows[0] == "line,-0.100000,,0"
    assert rows[1].startswith("line,4.000000,309.96")
    curve = np.array([each.split(",")[1::2] for each in rows[2:]], float)
    assert np.trapezoid(curve[:, 1], curve[:, 0]) == pytest.approx(0.5, abs=1e-4)


@pytest.mark.parametrize("check", [spectrum.check_figure, spectrum.check_table])
def test_other_endings_are_refused(check: object) -> None:
    assert callable(check)
    with pytest.raises(OutcoreError, match="must end in") as error:
        check("--plot", Path("found.txt"))
    assert error.value.errno == errno.EINVAL


def test_a_figure_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OutcoreError, match="write"):
        Spectrum(np.array([4.0]), np.array([0.5])).draw(tmp_path / "none" / "found.png")
