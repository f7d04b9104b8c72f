"""The plan of an expression: the products of two arrays that it is made of, where their results lie, what it takes.

A plan is a value: it can be printed, saved, compared, and given to `einsum` to be carried out as it is.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from outcore.base import html
from outcore.base.errors import OutcoreError
from outcore.base.recent import Recent
from outcore.base.sizes import in_words, times
from outcore.tensor.layout.canonical import Binary, binary
from outcore.tensor.layout.expression import Expression, parse
from outcore.tensor.layout.geometry import ProductProblem
from outcore.tensor.layout.letters import common_tilings
from outcore.tensor.layout.operands import Facts, Mask, Where, plain
from outcore.tensor.layout.tiling import Tiling
from outcore.tensor.plan.amounts import Amounts
from outcore.tensor.plan.bound import bound, needed_bytes
from outcore.tensor.plan.choice import Choice
from outcore.tensor.plan.order import Cost, Pair, order
from outcore.tensor.plan.product_plan import Planned, ProductPlan, make_plan
from outcore.tensor.plan.rates import Rates
from outcore.tensor.plan.text import facts_of, text_of

FORMAT = 4  # since 4 blocks of symmetric results are others
_FEW_STEPS = 2000  # of products whose panels are kept for the next call
_ENDLESS = 1 << 60  # bytes
_KEPT = 0.5  # of the memory: more intermediates than that go to disk, and all if panels have too little beside them


@dataclass(frozen=True)
class Statement:
    """One product: numbers of its operands (inputs from 0, then the results of earlier statements; -1: ones),
    where the result lies, None for that of the whole."""

    left: int
    right: int
    labels: tuple[str, str, str]
    where: Where | None
    plan: ProductPlan


@dataclass(frozen=True)
class Plan:
    """How an expression is carried out.

    Attributes:
        expression: subscripts.
        operands: of each input and of the output its shape, type of elements and place, as text.
        statements: in their order.
        memory_bytes: what each process was given.
        rates: of the machine that it was made for.
        bound_bytes: what has to move between disk and memory whatever the plan, if no element of an intermediate
            array is made twice.
    """

    expression: str
    operands: tuple[str, ...]
    statements: tuple[Statement, ...]
    memory_bytes: int
    rates: Rates
    bound_bytes: float = 0.0

    @cached_property
    def predicted(self) -> Amounts:
        return sum((each.plan.predicted for each in self.statements), Amounts())

    @property
    def workspace_bytes(self) -> int:
        """The most that the panels of a statement take, of a process."""
        return max(each.plan.workspace_bytes for each in self.statements)

    # ---- as text ----

    def as_json(self) -> str:
        return self._json

    @cached_property
    def _json(self) -> str:
        """Processes compare it each time that they carry the plan out."""
        return json.dumps({"format": FORMAT, **asdict(self)})

    def text(self) -> str:
        """For `oc_einsum` of C and the Fortran module, which make one panel of a result after another: a statement
        that makes several at once, or half of them, is planned anew. Raises OutcoreError (ENOTSUP) for arrays that
        they do not contract: with tiles, of a node, of integers or of several types."""
        facts = [facts_of(each) for each in self.operands]
        expression = parse(self.expression, [each.shape for each in facts[:-1]])
        links = [(each.left, each.right, each.where) for each in self.statements]
        each_simple = [self._simple(each) for each in products(self, expression, facts)]
        planned = zip(links, each_simple, strict=True)
        return text_of(expression, facts, self.memory_bytes, self.rates.processes, planned)

    def _simple(self, planned: Planned) -> Planned:
        if not planned.plan.choice.half and planned.plan.choice.block == 1:
            return planned
        problem = replace(planned.problem, simple=True)
        return Planned(problem, make_plan(problem, planned.plan.memory_bytes, self.rates))

    @staticmethod
    def from_json(text: str) -> Plan:
        """Raises OutcoreError (EINVAL) for what is no plan, (ENOTSUP) for one of another format."""
        try:
            values = json.loads(text)
            found = values.pop("format")
            if found != FORMAT:
                raise OutcoreError(
                    errno.ENOTSUP, "read a plan", detail=f"format {found}; this program knows {FORMAT}"
                )
            statements = tuple(
                Statement(
                    **{
                        **each,
                        "labels": tuple(each["labels"]),
                        "plan": ProductPlan.from_json(each["plan"]),
                    }
                )
                for each in values["statements"]
            )
            return Plan(
                **{
                    **values,
                    "operands": tuple(values["operands"]),
                    "statements": statements,
                    "rates": Rates.from_json(values["rates"]),
                }
            )
        except (
            ValueError,
            TypeError,
            KeyError,
            AttributeError,
            IndexError,
            RecursionError,
            OverflowError,
        ) as error:
            raise OutcoreError(
                errno.EINVAL, "read a plan", detail=f"{type(error).__name__}: {error}"
            ) from error

    def table(self) -> str:
        """What will happen, for people."""
        lines = [
            f"{self.expression}   {self.memory_bytes / 1e6:.4g} MB of memory, {self.rates.processes} x "
            f"{self.rates.threads} threads",
            *(
                f"  {name}: {text}"
                for name, text in zip(_names(len(self.operands) - 1), self.operands, strict=True)
            ),
            f"  {'product':24s} {'keeps':7s} {'panels':>22s} {'workspace':>10s} {'disk':>10s} {'x bound':>8s} "
            f"{'Gflop':>9s} {'seconds':>9s}",
        ]
        for each in self.statements:
            plan = each.plan
            panels = " x ".join(str(most) for most in plan.choice.most[1:])
            where = "" if each.where is None else f"  result: {each.where}"
            if plan.sharing > 1:
                where = f"  shared by {plan.sharing}{where}"
            over = plan.over_received_bound
            if over is not None and self.rates.processes > plan.sharing:
                where = f"  received {over:.2f} x bound{where}"
            lines.append(
                f"  {','.join(each.labels[:2])}->{each.labels[2]:<{max(1, 22 - len(','.join(each.labels[:2])))}s} "
                f"{plan.choice.keep:7s} {panels:>22s} {plan.workspace_bytes / 1e6:7.1f} MB "
                f"{plan.predicted.disk / 1e6:7.1f} MB {plan.over_bound:8.2f} {plan.predicted.flops / 1e9:9.3g} "
                f"{plan.predicted.seconds:9.3g}{where}"
            )
        total = self.predicted
        lines.append(
            f"  in all: {total.disk_read / 1e6:.1f} MB read, {total.disk_written / 1e6:.1f} MB written "
            f"(bound {self.bound_bytes / 1e6:.1f} MB), {total.flops / 1e9:.3g} Gflop, {total.seconds:.3g} s"
        )
        return "\n".join(lines)

    __str__ = table

    def _repr_html_(self) -> str:
        rows = []
        for each in self.statements:
            plan = each.plan
            rows.append(
                (
                    f"{','.join(each.labels[:2])}->{each.labels[2]}",
                    plan.choice.keep,
                    times(plan.choice.most[1:]),
                    in_words(plan.workspace_bytes),
                    in_words(plan.predicted.disk),
                    f"{plan.over_bound:.2f}",
                    f"{plan.predicted.flops / 1e9:.3g}",
                    f"{plan.predicted.seconds:.3g}",
                    each.where or "",
                )
            )
        total = self.predicted
        return html.table(
            f"Plan of {self.expression}, {in_words(self.memory_bytes)} of memory",
            ("product", "keeps", "panels", "work space", "disk", "x bound", "Gflop", "seconds", "result"),
            rows,
            f"{in_words(total.disk_read)} read, {in_words(total.disk_written)} written (bound "
            f"{in_words(self.bound_bytes)}), {total.flops / 1e9:.3g} Gflop, {total.seconds:.3g} s",
        )

    def compare(self, other: Plan) -> str:
        """Both, and by how much the other one differs."""
        if other.expression != self.expression:
            return f"different expressions: {self.expression} and {other.expression}"
        rows = []
        for name, mine, theirs in (
            ("disk read", self.predicted.disk_read / 1e6, other.predicted.disk_read / 1e6),
            ("disk written", self.predicted.disk_written / 1e6, other.predicted.disk_written / 1e6),
            ("network", self.predicted.network / 1e6, other.predicted.network / 1e6),
            ("workspace", self.workspace_bytes / 1e6, other.workspace_bytes / 1e6),
            ("seconds", self.predicted.seconds, other.predicted.seconds),
        ):
            unit = "s" if name == "seconds" else "MB"
            ratio = f"{theirs / mine:.2f} x" if mine else "-"
            rows.append(f"  {name:14s} {mine:12.4g} {theirs:12.4g} {unit:3s} {ratio}")
        orders = [
            " ; ".join("->".join([",".join(s.labels[:2]), s.labels[2]]) for s in p.statements)
            for p in (self, other)
        ]
        if orders[0] != orders[1]:
            rows.append(f"  order: {orders[0]}   against   {orders[1]}")
        return "\n".join([self.expression, *rows])


def _names(inputs: int) -> list[str]:
    return [*(f"operand {i}" for i in range(inputs)), "result"]


def contract(
    expression: Expression,
    facts: Sequence[Facts],
    memory_bytes: int,
    rates: Rates,
    *,
    choices: Sequence[Choice | None] | None = None,
    adds: bool = False,
) -> Plan:
    """Plans an expression. Pure: nothing is read, and nothing but arguments decides.

    Args:
        facts: of each input and of the output.
        memory_bytes: of each process, for panels and intermediate arrays.
        choices: of each statement, instead of the best; None: the best.
        adds: the result is added to what is there.

    Raises: OutcoreError ENOMEM (the smallest panels of a product do not fit), ENOTSUP (too many tiles), EINVAL
        (tilings that do not match).
    """

    def make() -> Plan:
        try:
            return _contract(expression, facts, memory_bytes, rates, choices, adds=adds, kept=_KEPT)
        except OutcoreError as error:
            if error.errno != errno.ENOMEM:
                raise
        return _contract(expression, facts, memory_bytes, rates, choices, adds=adds, kept=0)

    if choices is not None:
        return make()
    forms = tuple(each.form for each in facts)
    return _recent_plans.get((str(expression), forms, memory_bytes, rates, adds), make)


_recent_plans: Recent[Plan] = Recent(500)  # loops contract the same arrays again


def _contract(
    expression: Expression,
    facts: Sequence[Facts],
    memory_bytes: int,
    rates: Rates,
    choices: Sequence[Choice | None] | None,
    *,
    adds: bool,
    kept: float,
) -> Plan:
    """`kept`: the part of the memory that intermediate arrays may take."""
    inputs, out = list(facts[:-1]), facts[-1]
    dtype = np.result_type(*(each.dtype for each in facts))
    where = [each.where == "disk" for each in inputs]
    pairs = order(Cost(expression, where, rates, memory_bytes, dtype.itemsize))
    arrays = [*inputs]
    labels = list(expression.inputs)
    last_use = {name: number for number, pair in enumerate(pairs) for name in (pair.left, pair.right)}
    in_memory: dict[int, int] = {}
    statements = []
    least = [_once(expression, inputs, out, adds=adds)]
    for number, pair in enumerate(pairs):
        taken = sum(in_memory.values())
        last = number == len(pairs) - 1
        product = product_of(pair, labels, expression.extents)
        right = _ones(product, expression, arrays[pair.left].dtype) if pair.right < 0 else arrays[pair.right]
        result = out
        if not last:
            result = intermediate(product, expression, arrays[pair.left], right, dtype)
            in_reach = result.bytes / rates.processes <= memory_bytes * kept - taken
            result = replace(result, where=_memory(rates.processes) if in_reach else "disk")
        extents = {label: expression.extents[label] for label in "".join(product.groups)}
        problem = ProductProblem(product, extents, arrays[pair.left], right, result, adds and last)
        share = 0
        if not last and result.where != "disk":
            share = -(-result.bytes // (rates.processes if result.where == "global" else 1))
        free = memory_bytes - taken - share
        made = make_plan(problem, free, rates, None if choices is None else choices[number])
        statements.append(
            Statement(
                pair.left,
                pair.right,
                (product.left, product.right, product.out),
                None if last else result.where,
                made,
            )
        )
        if len(pairs) == 1:
            least = [made.bound_bytes]
        else:
            intermediates = pair.left >= len(inputs), pair.right >= len(inputs), not last
            least.append(_of_statement(problem, intermediates, memory_bytes * rates.processes))
        arrays.append(result)
        labels.append(pair.out)
        if share:
            in_memory[len(arrays) - 1] = share
        for name in [name for name in in_memory if last_use[name] == number]:
            del in_memory[name]
    described = tuple(each.described for each in facts)
    return Plan(str(expression), described, tuple(statements), memory_bytes, rates, max(least))


def _once(expression: Expression, inputs: Sequence[Facts], out: Facts, *, adds: bool) -> float:
    """Bytes that have to move of all arrays of an expression that lie on disk."""
    *read, put = needed_bytes([*expression.inputs, expression.output], [*inputs, out])
    most: dict[int, float] = {}  # of each array, in whatever place most of it is needed
    for number, (each, nbytes) in enumerate(zip(inputs, read, strict=True)):
        array = number if each.array < 0 else each.array
        most[array] = max(nbytes, most.get(array, 0.0))
    return sum(most.values()) + put * (2 if adds else 1)


def _of_statement(
    problem: ProductProblem, intermediates: tuple[bool, bool, bool], memory_bytes: float
) -> float:
    """What a statement asks of an expression to move: elements of intermediate arrays begin in memory."""
    facts = [
        replace(each, where="disk") if is_made else each
        for (_, each), is_made in zip(problem.arrays, intermediates, strict=True)
    ]
    by_itself = replace(problem, left=facts[0], right=facts[1], out=facts[2])
    begun = sum(each.bytes for each, is_made in zip(facts, intermediates, strict=True) if is_made)
    return bound(by_itself, memory_bytes) - begun


def least_memory(fits: Callable[[int], bool], low: int = 0) -> int:
    """Bytes in which something can be planned, to a thousandth; in `low` bytes it cannot. Raises OutcoreError
    (ENOMEM) if there is no such number."""
    high = max(64, 2 * low)
    while not fits(high):
        if high > _ENDLESS:
            raise OutcoreError(errno.ENOMEM, "plan a contraction", detail="no memory is enough")
        low, high = high, 2 * high
    while high - low > max(1, high >> 10):
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def product_of(pair: Pair, labels: Sequence[str], extents: dict[str, int]) -> Binary:
    """The product of a pair; an operand that is summed alone is multiplied by ones."""
    left = labels[pair.left]
    if pair.right >= 0:
        return binary(left, labels[pair.right], pair.out, extents)
    summed = "".join(dict.fromkeys(label for label in left if label not in pair.out))
    return binary(left, summed, pair.out, extents)


def _ones(product: Binary, expression: Expression, dtype: np.dtype[Any]) -> Facts:
    return plain(expression.shape(product.right), dtype, "process")


def _memory(processes: int) -> Where:
    return "process" if processes == 1 else "global"


def intermediate(
    product: Binary, expression: Expression, left: Facts, right: Facts, dtype: np.dtype[Any]
) -> Facts:
    """Of the result of a product that is used within the expression: with tiles if every axis has some and not all
    tiles can be there. The caller says where it lies."""
    found = plain(expression.shape(product.out), dtype, "process")
    tiles, mask = result_tiles((product.left, product.right), product.out, (left, right))
    if mask is None or mask.all() or any(tiling is None for tiling in tiles):
        return found
    return replace(found, tilings=tiles, readable=mask, stored=mask)


def result_tiles(
    inputs: Sequence[str], output: str, facts: Sequence[Facts]
) -> tuple[tuple[Tiling | None, ...], Mask | None]:
    """The tiles of a result, None for axes that have none, and which of them are not zero; None: all. Raises
    OutcoreError (EINVAL) where tiles of two operands do not match."""
    found = common_tilings(
        f"einsum '{','.join(inputs)}->{output}'",
        [
            (f"operand {number}", labels, each.tilings)
            for number, (labels, each) in enumerate(zip(inputs, facts, strict=True))
        ],
    )
    tiles = tuple(found.get(label) for label in output)
    if all(each.readable is None for each in facts):
        return tiles, None
    masks = []
    for labels, each in zip(inputs, facts, strict=True):
        grid = [len(found[label]) if label in found else 1 for label in labels]
        masks.append(np.ones(grid) if each.readable is None else each.readable.astype(float))
    return tiles, np.einsum(f"{','.join(inputs)}->{output}", *masks, optimize=True) > 0


def products(plan: Plan, expression: Expression, facts: Sequence[Facts]) -> list[Planned]:
    """Those of the statements of a plan with these arrays."""

    def make() -> tuple[Plan, list[Planned]]:
        found = zip(problems(plan, expression, facts), plan.statements, strict=True)
        return plan, [Planned(problem, statement.plan) for problem, statement in found]

    return _recent_products.get((id(plan), *(each.form for each in facts)), make)[1]


def _steps(made: tuple[Plan, list[Planned]]) -> int:
    return 1 + sum(each.geometry.steps.size for each in made[1])


# By the identity of plans, which these keep: the hash of one takes longer than many a product.
_recent_products: Recent[tuple[Plan, list[Planned]]] = Recent(50 * _FEW_STEPS, _steps, _FEW_STEPS)


def problems(plan: Plan, expression: Expression, facts: Sequence[Facts]) -> list[ProductProblem]:
    """Those of the statements of a plan with these arrays."""
    arrays = list(facts[:-1])
    dtype = np.result_type(*(each.dtype for each in facts))
    result = []
    for statement in plan.statements:
        left, right, out = statement.labels
        product = binary(left, right, out, expression.extents)
        extents = {label: expression.extents[label] for label in "".join(product.groups)}
        other = (
            _ones(product, expression, arrays[statement.left].dtype)
            if statement.right < 0
            else arrays[statement.right]
        )
        target = facts[-1]
        if statement.where is not None:
            target = intermediate(product, expression, arrays[statement.left], other, dtype)
            target = replace(target, where=statement.where)
        result.append(ProductProblem(product, extents, arrays[statement.left], other, target))
        arrays.append(target)
    return result
