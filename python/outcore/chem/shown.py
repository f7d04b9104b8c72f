"""Output of methods in notebooks."""

from __future__ import annotations

from collections.abc import Iterable

from outcore.base import html


def roots(title: str, energies: Iterable[float], *, converged: bool, iterations: int) -> str:
    """A table for a search for several states. energies: of each root (Hartree)."""
    rows: list[tuple[str, object]] = [
        (f"energy of root {root}", f"{energy:.10f} Eh") for root, energy in enumerate(energies, 1)
    ]
    return html.facts(title, [*rows, ("converged", "yes" if converged else "no"), ("iterations", iterations)])
