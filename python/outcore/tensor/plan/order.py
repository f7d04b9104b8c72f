"""In which order the operands of an expression are multiplied, two at a time: the best of all orders, by the time
that each product takes.

The search is exact to nine operands (dynamic programming over their subsets); of more the cheapest pair is taken
first.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from outcore.tensor.layout.canonical import size
from outcore.tensor.layout.expression import Expression
from outcore.tensor.plan.rates import Rates

_EXACT = 9


class Pair(NamedTuple):
    """A product of two arrays; inputs are numbered from 0, each product gets the next number. `right` -1: none,
    the left one is summed alone."""

    left: int
    right: int
    out: str


@dataclass(frozen=True)
class Cost:
    """What decides. `disk`: which inputs lie on disk; products larger than memory are taken to."""

    expression: Expression
    disk: Sequence[bool]
    rates: Rates
    memory_bytes: float
    item_bytes: int

    def seconds(self, left: str, right: str, out: str, on_disk: Sequence[bool]) -> float:
        """Of out = left right."""
        extents = self.expression.extents
        multiplications = float(size("".join(set(left + right)), extents))
        sizes = [size(labels, extents) * self.item_bytes for labels in (left, right, out)]
        moved = [bytes_ if there else 0.0 for bytes_, there in zip(sizes, on_disk, strict=True)]
        work = 2 * multiplications / self.rates.peak
        copied = sum(sizes) / (self.rates.copy * self.rates.threads * self.rates.processes)
        disk = sum(moved)
        if min(*moved[:2], self.memory_bytes) > 0:  # about as many as have to be moved: see `bound`
            words = self.memory_bytes / self.item_bytes
            disk = max(disk, self.item_bytes * (2 * multiplications / math.sqrt(words) - 2 * words))
        return max(work + copied, disk / (min(self.rates.read, self.rates.write) * self.rates.nodes))

    def is_large(self, labels: str) -> bool:
        return size(labels, self.expression.extents) * self.item_bytes > self.memory_bytes / 4


def order(cost: Cost) -> list[Pair]:
    """The products; the last gives the output. Indices that one operand alone has are summed first."""
    expression = cost.expression
    labels = list(expression.inputs)
    pairs: list[Pair] = []
    names = list(range(len(labels)))
    for number, own in enumerate(labels):
        others = "".join(labels[:number] + labels[number + 1 :]) + expression.output
        kept = "".join(dict.fromkeys(label for label in own if label in others))
        if len(labels) > 1 and set(kept) != set(own):
            pairs.append(Pair(number, -1, kept))
            names[number], labels[number] = len(expression.inputs) + len(pairs) - 1, kept
    disk = list(cost.disk)
    next_number = len(expression.inputs) + len(pairs)
    if len(labels) == 1:
        return [*pairs, Pair(names[0], -1, expression.output)]
    tree = _exact(cost, labels, disk) if len(labels) <= _EXACT else _greedy(cost, labels, disk)

    def emit(node: _Tree) -> int:
        nonlocal next_number
        if isinstance(node, int):
            return names[node]
        left, right = emit(node[0]), emit(node[1])
        pairs.append(Pair(left, right, _out(labels, expression.output, _members(node))))
        next_number += 1
        return next_number - 1

    emit(tree)
    last = pairs[-1]
    pairs[-1] = Pair(last.left, last.right, expression.output)
    return pairs


_Tree = int | tuple["_Tree", "_Tree"]


def _members(node: _Tree) -> frozenset[int]:
    return frozenset([node]) if isinstance(node, int) else _members(node[0]) | _members(node[1])


def _out(labels: Sequence[str], output: str, members: frozenset[int]) -> str:
    """The indices of a product of some operands that others, or the output, still need: those of the output in its
    order at the end."""
    inside = "".join(labels[i] for i in sorted(members))
    outside = set(output).union(*(labels[i] for i in range(len(labels)) if i not in members))
    kept = dict.fromkeys(label for label in inside if label in outside)
    first = [label for label in kept if label not in output]
    return "".join([*first, *(label for label in output if label in kept)])


def _exact(cost: Cost, labels: Sequence[str], disk: Sequence[bool]) -> _Tree:
    output, count = cost.expression.output, len(labels)
    best: dict[frozenset[int], tuple[float, _Tree, bool]] = {
        frozenset([i]): (0.0, i, disk[i]) for i in range(count)
    }
    everything = frozenset(range(count))
    for length in range(2, count + 1):
        for chosen in itertools.combinations(range(count), length):
            members = frozenset(chosen)
            out = output if members == everything else _out(labels, output, members)
            found: tuple[float, _Tree, bool] | None = None
            for part in _halves(chosen):
                left, right = best[part], best[members - part]
                names = [_name(labels, output, each) for each in (part, members - part)]
                large = cost.is_large(out)
                seconds = (
                    left[0] + right[0] + cost.seconds(names[0], names[1], out, (left[2], right[2], large))
                )
                if found is None or seconds < found[0]:
                    found = seconds, (left[1], right[1]), large
            assert found is not None
            best[members] = found
    return best[everything][1]


def _halves(chosen: tuple[int, ...]) -> list[frozenset[int]]:
    """Each way to divide once: parts that have the first."""
    rest = chosen[1:]
    return [
        frozenset((chosen[0], *some))
        for length in range(len(rest))
        for some in itertools.combinations(rest, length)
    ]


def _name(labels: Sequence[str], output: str, members: frozenset[int]) -> str:
    return labels[next(iter(members))] if len(members) == 1 else _out(labels, output, members)


def _greedy(cost: Cost, labels: Sequence[str], disk: Sequence[bool]) -> _Tree:
    output = cost.expression.output
    nodes: list[tuple[_Tree, bool]] = [(i, disk[i]) for i in range(len(labels))]

    def seconds(pair: tuple[tuple[_Tree, bool], tuple[_Tree, bool]]) -> float:
        left, right = pair
        members = [_members(each[0]) for each in pair]
        out = _out(labels, output, members[0] | members[1])
        names = [_name(labels, output, each) for each in members]
        return cost.seconds(names[0], names[1], out, (left[1], right[1], cost.is_large(out)))

    while len(nodes) > 1:
        left, right = min(itertools.combinations(nodes, 2), key=seconds)
        out = _out(labels, output, _members(left[0]) | _members(right[0]))
        nodes = [node for node in nodes if node is not left and node is not right]
        nodes.append(((left[0], right[0]), cost.is_large(out)))
    return nodes[0][0]
