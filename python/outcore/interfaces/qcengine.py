"""The harness of QCEngine.

    import outcore.interfaces.qcengine  # registers the program
    result = qcengine.compute(model, "outcore", task_config={"ncores": 2, "memory": 4})

Procedures that call programs of QCEngine, such as geomeTRIC's, can call it as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from outcore.base import extras
from outcore.interfaces import job
from outcore.interfaces.qcschema import answer, translate

try:
    from qcengine import register_program
    from qcengine.exceptions import ConvergenceError, InputError, ResourceError, UnknownError
    from qcengine.programs import list_all_programs
    from qcengine.programs.model import ProgramHarness
except ModuleNotFoundError as error:
    raise extras.missing(error, "register a program of QCEngine") or error from error

if TYPE_CHECKING:
    from qcelemental.models.v2 import AtomicInput, AtomicResult
    from qcengine.config import TaskConfig

_ERRORS = {"input": InputError, "resource": ResourceError, "convergence": ConvergenceError}


class OutcoreHarness(ProgramHarness):  # type: ignore[misc]
    """Runs in the calling process, with the threads (`ncores`) and the memory (GiB) of the task; the keyword
    `ranks` starts that many processes. Keywords are options of the command of the method."""

    _defaults: ClassVar[dict[str, Any]] = {
        "name": "Outcore",
        "scratch": True,
        "thread_safe": False,
        "thread_parallel": True,
        "node_parallel": False,
        "managed_memory": True,
    }

    @staticmethod
    def found(raise_error: bool = False) -> bool:
        """Whether PySCF, which computes integrals, is installed."""
        from qcelemental.util import which_import

        found = which_import(
            "pyscf", return_bool=True, raise_error=raise_error, raise_msg="Install it with pip install pyscf."
        )
        return bool(found)

    def get_version(self) -> str:
        from importlib.metadata import version

        return version("outcore")

    def compute(self, input_model: AtomicInput, config: TaskConfig) -> AtomicResult:
        """Raises InputError, ResourceError, ConvergenceError or UnknownError of QCEngine."""
        self.found(raise_error=True)
        try:
            request = translate.translate(input_model, 2)
            given = _of_task(config) | request.options
            done = job.compute(request.method.command, given, request.geometry)
        except Exception as error:
            raise _ERRORS.get(job.kind_of(error), UnknownError)(str(error)) from error
        return answer.result(request, done)


def _of_task(config: TaskConfig) -> dict[str, Any]:
    """Options from the task; keywords of the same names replace them."""
    given = {"threads": config.ncores, "memory": f"{int(config.memory * 1024)}MiB"}
    return given | ({} if config.scratch_directory is None else {"scratch": config.scratch_directory})


if "outcore" not in list_all_programs():
    register_program(OutcoreHarness())
