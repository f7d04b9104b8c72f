"""How near to the bound whole panels of a symmetric result can come, by arithmetic alone."""

from __future__ import annotations

from pathlib import Path

_TIMES = (6, 10, 14, 15, 20, 25, 30, 40, 45, 55, 60, 75, 100, 140)  # an operand over memory
_DEEP = 1 / 200  # inner indices of a panel of the operand, over all


def table(_root: Path, _: str) -> str:
    """Of a square operand: reads of it, and bytes over the bound, by the best of all blocks that the planner knows;
    where panels of the operand take no memory, and where each has some depth."""
    lines = [
        "| Operand over memory | Bound, in operands | Reads, panels infinitely thin | Over the bound "
        f"| Reads, panels of 1/{round(1 / _DEEP)} of the inner indices | Over the bound |",
        "|---|---|---|---|---|---|",
    ]
    for times in _TIMES:
        bound = _bound(times)
        cells = [f"{times}", f"{bound:.2f}"]
        for deep in (0.0, _DEEP):
            reads = _reads(times, deep)
            cells += [f"{reads:.2f}", f"{(reads + 1) / bound:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _reads(times: float, deep: float) -> float:
    """Of the operand at least; memory is for the panels of a block of the result and for those that they need."""
    from outcore.tensor.layout.triangles import counts_of_planes, useful_triangles

    return min(
        blocks.read[0] / count
        for count in counts_of_planes()
        for _, blocks in useful_triangles(count)
        if blocks.most / count**2 + blocks.held[0] * deep / count <= 1 / times
    )


def _bound(times: float) -> float:
    """Bytes of the disk at least, over those of the operand."""
    from outcore.tensor.plan.bound import MovedOnce, least_bytes, symmetric

    rows, word = 100_000, 8
    once = float(word * rows * rows)
    moved = MovedOnce(once, once, once, one_array=True)
    return least_bytes(float(rows) ** 3, moved, once / times, word, symmetric(rows)) / once
