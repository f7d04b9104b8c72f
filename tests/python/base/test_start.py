"""Modules whose import commands postpone."""

import subprocess
import sys

import pytest


def said(code: str) -> str:
    """The output of a separate process."""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return answer.stdout.strip()


DEFER = "import sys; from outcore.base import start; start.defer(); start.defer(); "


def test_the_code_of_a_module_runs_at_its_first_use():
    code = (
        "import scipy.optimize; before = 'scipy.optimize._minimize' in sys.modules; "
        "least = scipy.optimize.minimize_scalar(lambda x: (x - 2) ** 2).x; "
        "print(before, round(least, 6), 'scipy.optimize._minimize' in sys.modules, type(scipy.optimize).__name__)"
    )
    assert said(DEFER + code) == "False 2.0 True module"


def test_a_name_can_be_imported_from_it():
    assert said(DEFER + "from scipy.optimize import brentq; print(brentq(lambda x: x - 1, 0, 3))") == "1.0"


def test_its_submodules_can_be_imported_first():
    code = "import scipy.optimize._linesearch; from scipy import optimize; print(optimize.root.__name__)"
    assert said(DEFER + code) == "root"


def test_its_names_are_listed():
    code = "import numpy.testing; print({'assert_allclose', 'suppress_warnings'} <= set(dir(numpy.testing)))"
    assert said(DEFER + code) == "True"


def test_a_name_that_it_has_not_is_an_error():
    code = (
        "import scipy.optimize; print(hasattr(scipy.optimize, 'nothing'), hasattr(scipy.optimize, 'nothing'))"
    )
    assert said(DEFER + code) == "False False"


def test_it_stays_what_it_was_if_it_was_loaded_before():
    code = (
        "import scipy.optimize; " + DEFER + "import scipy.optimize as again; print(again is scipy.optimize)"
    )
    assert said(code) == "True"


def test_threads_wait_for_the_one_that_loads_it():
    code = (
        "import scipy.optimize; from concurrent.futures import ThreadPoolExecutor; "
        "pool = ThreadPoolExecutor(8); "
        "found = pool.map(lambda _: scipy.optimize.root.__name__, range(8)); print(set(found))"
    )
    assert said(DEFER + code) == "{'root'}"


def test_the_collector_of_garbage_works_as_before_after_loading():
    import gc

    from outcore.base import start

    assert gc.isenabled()
    with pytest.raises(KeyError), start.loading():
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()


PARTS = (
    "import importlib, {0} as whole; "
    "parts = [importlib.import_module(f'{0}.{{each}}') for each in start.MODULES['{0}']]; "
    "found = {{name: getattr(whole, name) for part in parts for name in part.__all__}}; "
    "rest = '{0}.{1}'; before = rest in sys.modules; "
)
SPECIAL = PARTS.format("scipy.special", "_support_alternative_backends")
LINALG = PARTS.format("scipy.linalg", "_matfuncs")


@pytest.mark.parametrize(
    ("code", "names", "last"),
    [(SPECIAL, 200, "softmax"), pytest.param(LINALG, 30, "expm", marks=pytest.mark.long)],
)
def test_names_of_what_a_module_is_made_of_come_without_the_rest_and_are_those_of_all_of_it(
    code, names, last
):
    code += (
        f"whole.{last}; others = [name for name, each in found.items() if getattr(whole, name) is not each]; "
        f"print(len(found) > {names}, before, rest in sys.modules, others)"
    )
    assert said(DEFER + code) == "True False True []"


@pytest.mark.parametrize(
    ("code", "name"), [(SPECIAL, "_specfun"), (LINALG, "lapack"), (LINALG, "_decomp_qr")]
)
def test_modules_that_one_is_made_of_can_be_imported_by_name(code, name):
    module = "scipy.special" if code is SPECIAL else "scipy.linalg"
    code += f"from {module} import {name}; print(before, {name}.__name__, rest in sys.modules)"
    assert said(DEFER + code) == f"False {module}.{name} False"


def test_a_private_name_that_no_module_has_is_not_there():
    code = "import scipy.special as special; print(hasattr(special, '_nothing'), type(special).__name__)"
    assert said(DEFER + code) == "False _Deferred"


def test_all_of_a_module_can_be_imported_after_a_part_of_it():
    code = (
        "from scipy.linalg import eigh, sqrtm; from scipy.linalg import *; "
        "print(expm(0 * eigh([[1.0]])[1])[0, 0])"
    )
    assert said(DEFER + code) == "1.0"


def test_modules_of_a_command_alone_are_never_garbage():
    code = (
        "import gc; from outcore.base import start; start.defer({0}); "
        "context = start.loading(); context.__enter__(); context.__exit__(None, None, None); "
        "print(gc.get_freeze_count() > 0, gc.isenabled())"
    )
    assert said(code.format("stays=True")) == "True True"
    assert said(code.format("")) == "False True"
