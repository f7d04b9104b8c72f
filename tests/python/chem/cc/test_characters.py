"""The character of a state in words."""

from __future__ import annotations

import numpy as np
import pytest
from cc_support import mean_field
from eom_support import TIGHT

from outcore.chem.cc import CCSD
from outcore.chem.cc.divergence import Names
from outcore.chem.cc.excited import characters

WORDS = ("single excitation", "double excitation")
NAMES = Names([[2, 3]], [[4, 6]])  # 1 and 5 are frozen
SINGLES = [(0, 0, np.array([[0.0, 0.1], [0.5, -0.8]]))]


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.95, "single excitation 3 -> 6 71 %, 3 -> 4 28 %"),
        (0.85, "single excitation 3 -> 6 71 %, 3 -> 4 28 %"),
        (0.84, "single excitation, mixed with double excitation 3 -> 6 71 %, 3 -> 4 28 %"),
        (0.5, "single excitation, mixed with double excitation 3 -> 6 71 %, 3 -> 4 28 %"),
        (0.49, "double excitation"),
        (0.02, "double excitation"),
    ],
)
def test_shares_of_singles_have_words(share: float, expected: str) -> None:
    assert characters.of_root(WORDS, NAMES, SINGLES, share) == expected


def test_singles_of_both_spins_are_ordered_together() -> None:
    names = Names([[1], [1]], [[2, 3], [2, 3]])
    blocks = [(0, 0, np.array([[0.3, 0.0]])), (1, 1, np.array([[0.0, -0.6]]))]
    found = characters.of_root(WORDS, names, blocks, 0.9)
    assert found == "single excitation 1b -> 3b 80 %, 1a -> 2a 20 %"


def test_ions_are_named_by_one_orbital() -> None:
    words = ("ionisation", "ionisation with an excitation")
    found = characters.of_root(words, NAMES, [(None, 0, np.array([0.1, 0.9]))], 0.9)
    assert found == "ionisation 3 99 %"
    words = ("attachment", "attachment with an excitation")
    found = characters.of_root(words, NAMES, [(0, None, np.array([0.1, 0.9]))], 0.6)
    assert found == "attachment, mixed with attachment with an excitation 6 99 %"


def test_a_doubly_excited_state_is_called_so() -> None:
    """Beryllium has an excited configuration 2p2 of even parity, which has hardly any single excitations."""
    with CCSD(mean_field("Be 0 0 0", "6-31g"), 1, comm=None, memory="1GB", threads=1, **TIGHT) as cc:
        cc.kernel()
        _, states = cc.eomee_ccsd_singlet(nroots=7, residual=1e-6)
    words = [states.character(root) for root in range(7)]
    assert all(each.startswith("single excitation 2 -> ") for each in words[:3])
    doubles = [root for root, each in enumerate(words) if each == "double excitation"]
    assert doubles
    for root in doubles:
        assert states.singles[root] < 0.5
