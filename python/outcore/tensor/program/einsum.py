"""`outcore.einsum`: contractions of arrays wherever they lie, planned onto memory and disk.

g = outcore.einsum("Qia,Qjb->iajb", b, b, out=disk_array)
print(outcore.einsum.plan("ijcd,Qac,Qbd->ijab", t2, bvv, bvv))   # its cost; nothing runs
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from outcore.base import html, keywords
from outcore.base.errors import OutcoreError
from outcore.base.sizes import in_words
from outcore.job.world import World
from outcore.tensor.arrays.extended import ExtendedOperand
from outcore.tensor.layout.symmetry import Symmetry
from outcore.tensor.plan.amounts import Amounts
from outcore.tensor.plan.plan import Plan
from outcore.tensor.plan.rates import Rates, learn
from outcore.tensor.program.program import recording
from outcore.tensor.run.contraction import Contraction, fill_zero, rates_of
from outcore.tensor.run.progress import Tell, watching


@dataclass(frozen=True)
class Counted:
    """Actual and predicted amounts of a run, over all processes.

    Attributes:
        plan: the one that was carried out; with `symmetrize` that of the last permutation.
        predicted, actual: amounts, with `symmetrize` of all permutations together.
    """

    plan: Plan
    predicted: Amounts
    actual: Amounts

    def __str__(self) -> str:
        p, a = self.predicted, self.actual
        rows = [
            ("read from disk", p.disk_read / 1e6, a.disk_read / 1e6, "MB"),
            ("written to disk", p.disk_written / 1e6, a.disk_written / 1e6, "MB"),
            ("from other processes", p.network / 1e6, a.network / 1e6, "MB"),
            ("operations", p.flops / 1e9, a.flops / 1e9, "Gflop"),
            ("time", p.seconds, a.seconds, "s"),
        ]
        return "\n".join(
            f"{name:22s} predicted {mine:12.4g}, was {was:12.4g} {unit}" for name, mine, was, unit in rows
        )

    def _repr_html_(self) -> str:
        p, a = self.predicted, self.actual
        rows = [
            ("read from disk", in_words(p.disk_read), in_words(a.disk_read)),
            ("written to disk", in_words(p.disk_written), in_words(a.disk_written)),
            ("from other processes", in_words(p.network), in_words(a.network)),
            ("operations", f"{p.flops / 1e9:.3g} Gflop", f"{a.flops / 1e9:.3g} Gflop"),
            ("time", f"{p.seconds:.3g} s", f"{a.seconds:.3g} s"),
        ]
        return html.table(f"Run of {self.plan.expression}", ("", "predicted", "actual"), rows)


class Einsum:
    """See `__call__` and `plan`."""

    @keywords.checked()
    def __call__(
        self,
        subscripts: str,
        *operands: Any,
        out: Any = None,
        accumulate: bool = False,
        scale: complex = 1,
        memory: int | str | None = None,
        plan: Plan | None = None,
        world: World | None = None,
        threads: int | None = None,
        progress: Tell | None = None,
        symmetry: str | Sequence[str] | Symmetry | None = None,
        symmetrize: bool = False,
        report: bool = False,
    ) -> Any:
        """Contracts arrays as `numpy.einsum` does; returns the result. Collective over the world of the arrays.

        Args:
            subscripts: as for `numpy.einsum`, in its form with text.
            operands: variables of a Program, into which the call is recorded (with `out`, `accumulate` and `scale`
                alone); or arrays of NumPy (the same at all processes), GlobalArray, DiskArray, NodeArray,
                BlockSparseArray, Array.
            out: array for the result, which shares no elements with an operand; None: an array of NumPy if all
                operands are; a new Array if one of them is, or if `symmetry` is given; else a new GlobalArray if
                the memory holds it, or a new DiskArray (scratch). If it lacks tiles, only those that it has are
                computed: the result is zero elsewhere, whatever the product is there.
            accumulate: add to the elements of `out`.
            scale: factor of the product.
            memory: memory of each process for panels, intermediate arrays and a new result (but one of NumPy):
                bytes, or text such as "2GB"; None: three quarters of the rest of the world's budget. Beside it
                arrays on disk have caches (`cache_bytes` of each, of new ones together a sixteenth of the budget),
                and elements are on their way between processes (a sixteenth of it, from 4 to 32 MB).
            plan: one that `plan` has made for such arrays; None: the best.
            world: the processes, if no array names them; None then: this process alone.
            threads: number of threads of each process; None: its share of the cores.
            progress: a function that process 0 calls with a `Progress`, ten times a second at most; True: a bar in
                the terminal or the notebook, with the time that is left.
            symmetry: symmetry of a new result, as for Array; tiles that follow from others are not computed.
            symmetrize: the result is the sum of the product over all permutations of its symmetry, each with its
                sign. Without it the product must have the symmetry whatever the elements are.
            report: return (result, Counted): actual beside predicted amounts.

        Raises (the same at all processes):
            OutcoreError: EINVAL (subscripts, shapes, tilings, a plan for other arrays, a result that is an
            operand), ENOMEM (too little memory; the message says how much is enough), ENOTSUP (too many tiles),
            ENOSPC, and errors of reading and writing.
        """
        program = recording([*operands, out])
        if program is not None:
            given = {
                "memory": memory,
                "plan": plan,
                "world": world,
                "threads": threads,
                "progress": progress,
                "symmetry": symmetry,
                "symmetrize": symmetrize or None,
                "report": report or None,
            }
            others = ", ".join(name for name, value in given.items() if value is not None)
            if others:
                detail = f"{others}: a program decides, or its arrays; give it `out` with the symmetry"
                raise OutcoreError(errno.EINVAL, f"einsum '{subscripts}'", detail=detail)
            return program.einsum(subscripts, *operands, out=out, accumulate=accumulate, scale=scale)
        job = Contraction(
            subscripts,
            operands,
            out,
            world,
            memory,
            threads,
            symmetry=symmetry,
            checks_symmetry=not symmetrize,
            scale=scale,
            accumulate=accumulate,
            plan=plan,
        )
        if symmetrize:
            if plan is not None:
                raise OutcoreError(errno.EINVAL, f"einsum '{subscripts}'", detail="symmetrize takes no plan")
            result, found = self._symmetrized(job, operands, rates_of(job), accumulate, job.scale, progress)
            return (result, found) if report else result
        chosen = plan if plan is not None else job.make_plan(rates_of(job), adds=accumulate)
        with watching(progress, job.world, chosen.predicted.seconds) as watch:
            if watch is not None:
                watch.begin(chosen.expression, chosen.predicted.seconds)
            result, counted = job.run(chosen, accumulate=accumulate, scale=job.scale, progress=watch)
        if job.world.rank == 0 and plan is None:
            learn(chosen.rates, job.dtype.name, chosen.predicted, counted)
        return (result, Counted(chosen, chosen.predicted, counted)) if report else result

    def _symmetrized(
        self,
        job: Contraction,
        operands: Sequence[Any],
        rates: Rates,
        accumulate: bool,
        scale: complex,
        progress: Tell | None,
    ) -> tuple[Any, Counted]:
        """Does one contraction for each permutation; each computes the stored tiles alone."""
        job.make_plan(rates, adds=True)  # raises, if memory is too small, before anything changes
        job.create()
        if not isinstance(job.out, ExtendedOperand):
            raise OutcoreError(errno.EINVAL, f"einsum '{job.expression}'", detail="symmetrize needs an Array")
        out, output = job.out.array, job.expression.output
        parts = []
        for permutation, sign in out.layout.symmetry.elements.items():
            turned = "".join(output[axis] for axis in permutation)
            each = Contraction(
                f"{','.join(job.expression.inputs)}->{turned}",
                operands,
                out,
                job.world,
                job.memory_bytes,
                job.threads,
                checks_symmetry=False,
            )
            parts.append((each, each.make_plan(rates, adds=True), sign))
        if not accumulate:
            fill_zero(job.world, job.out)
        predicted, actual = sum((plan.predicted for _, plan, _ in parts), Amounts()), Amounts()
        with watching(progress, job.world, predicted.seconds) as watch:
            for each, plan, sign in parts:
                if watch is not None:
                    watch.begin(plan.expression, plan.predicted.seconds)
                _, counted = each.run(plan, accumulate=True, scale=sign * scale, progress=watch)
                actual += counted
        return out, Counted(parts[-1][1], predicted, actual)

    def plan(
        self,
        subscripts: str,
        *operands: Any,
        out: Any = None,
        memory: int | str | None = None,
        world: World | None = None,
        threads: int | None = None,
        rates: Rates | None = None,
        symmetry: str | Sequence[str] | Symmetry | None = None,
        symmetrize: bool = False,
    ) -> Plan:
        """The plan of a call with these arguments; nothing is moved. Collective. `rates`: of another machine."""
        job = Contraction(
            subscripts,
            operands,
            out,
            world,
            memory,
            threads,
            symmetry=symmetry,
            checks_symmetry=not symmetrize,
        )
        return job.make_plan(rates_of(job) if rates is None else rates)


einsum = Einsum()
