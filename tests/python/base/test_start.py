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


PARTS = (
    "import importlib, scipy.special as special; "
    "parts = [importlib.import_module(f'scipy.special.{each}') for each in start.MODULES['scipy.special']]; "
    "found = {name: getattr(special, name) for part in parts for name in part.__all__}; "
    "rest = 'scipy.special._support_alternative_backends'; before = rest in sys.modules; "
)


def test_names_of_what_a_module_is_made_of_come_without_the_rest_and_are_those_of_all_of_it():
    code = PARTS + (
        "special.softmax; others = [name for name, each in found.items() if getattr(special, name) is not each]; "
        "print(len(found) > 200, before, rest in sys.modules, others)"
    )
    assert said(DEFER + code) == "True False True []"


def test_modules_that_one_is_made_of_can_be_imported_by_name():
    code = PARTS + "from scipy.special import _specfun; print(before, _specfun.__name__, rest in sys.modules)"
    assert said(DEFER + code) == "False scipy.special._specfun False"


def test_a_private_name_that_no_part_has_is_that_of_all_of_it():
    code = "import scipy.special as special; print(hasattr(special, '_nothing'), type(special).__name__)"
    assert said(DEFER + code) == "False module"
