"""What is decided of a product: its panels, and what stays in memory."""

from __future__ import annotations

from dataclasses import dataclass

from outcore.tensor.layout.cells import cut_for
from outcore.tensor.layout.geometry import Keep, ProductGeometry, ProductProblem, make


@dataclass(frozen=True)
class Choice:
    """Sizes of panels of batch, rows, columns and inner indices, and what is kept. `parts`:
    ranges of inner indices that are dealt out apart; each is added to the result; `results`: panels of it
    that a process has memory for; `by_chunks`: whether axes are cut between chunks, or each chunk evenly; `half`:
    of a symmetric result one of two panels that are alike is made, and put twice; `block`: so many panels of the
    result are made at once, at most."""

    keep: Keep
    mixed: bool
    most: tuple[int, int, int, int]
    pieces: tuple[int, int, int, int]
    parts: int = 1
    results: int = 1
    by_chunks: bool = False
    half: bool = False
    block: int = 1

    def geometry(self, problem: ProductProblem) -> ProductGeometry:
        groups = problem.axes_to_cut(half=self.half)
        cuts = tuple(
            cut_for(axes, most, pieces, by_chunks=self.by_chunks)
            for axes, most, pieces in zip(groups, self.most, self.pieces, strict=True)
        )
        assert len(cuts) == 4
        return make(problem, cuts, self.most, self.mixed)
