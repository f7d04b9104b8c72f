"""Modules that commands put off."""

import subprocess
import sys

import pytest


def said(code: str) -> str:
    """What a process of its own prints."""
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
