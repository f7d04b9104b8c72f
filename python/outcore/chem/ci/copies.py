"""Which rows of other nodes the tasks of each node need: of these it has copies, see near.py."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from outcore.chem.ci.space import Integers


class Copies:
    """Made of what tasks move of rows, task by task: the node of the task, one of `count` rows, the first element
    of it that the task moves, and the end of the row.

    Attributes, of each copy: nodes, rows; begins, ends: elements of its row; users: tasks that need it. Those of a
    node lie in the order in which its tasks need them."""

    def __init__(self, nodes: Integers, rows: Integers, begins: Integers, ends: Integers, count: int) -> None:
        keys, first, inverse = np.unique(nodes * count + rows, return_index=True, return_inverse=True)
        lowest = np.full(len(keys), np.iinfo(np.int64).max)
        np.minimum.at(lowest, inverse, begins)
        order = np.lexsort((first, keys // count))
        self._count, self._keys = count, keys
        self._number = np.empty(len(keys), np.int64)  # of the copy with each key
        self._number[order] = np.arange(len(order))
        self.nodes, self.rows = keys[order] // count, keys[order] % count
        self.begins, self.ends = lowest[order], ends[first[order]]
        self.users: Integers = np.bincount(inverse, minlength=len(keys)).astype(np.int64)[order]

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def sizes(self) -> Integers:
        found: Integers = self.ends - self.begins
        return found

    def find(self, node: int, rows: Integers) -> Integers:
        """The number of the copy of each of these rows at a node; -1: there is none."""
        wanted = node * self._count + rows
        if not len(self):
            return np.full(len(rows), -1)
        at = np.minimum(np.searchsorted(self._keys, wanted), len(self) - 1)
        return np.where(self._keys[at] == wanted, self._number[at], -1)

    def processes(self, node_of: Integers) -> Integers:
        """Of each copy the process that has it: those of its node in turn. node_of: of each process."""
        found = np.empty(len(self), np.int64)
        for node in range(int(node_of.max()) + 1):
            ranks, here = np.flatnonzero(node_of == node), np.flatnonzero(self.nodes == node)
            found[here] = ranks[np.arange(len(here)) % len(ranks)]
        return found

    def most(self, sizes: Sequence[int]) -> int:
        """Copies of a process at most, and one at least. sizes: processes of each node."""
        of_nodes = np.bincount(self.nodes, minlength=len(sizes))
        return max(1, int((-(-of_nodes // np.array(sizes))).max()))
