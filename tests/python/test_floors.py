"""The check of `make lint` that dependencies point down only: it passes this tree, and finds violations."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def floors(root: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "floors.py", root], check=False, capture_output=True, text=True
    )
    assert not done.stderr
    return done.returncode, done.stdout


def tree(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.long  # make lint does the same
def test_this_tree_passes():
    assert floors(ROOT) == (0, "")


@pytest.mark.parametrize(
    ("path", "text", "arrow"),
    [
        ("src/device/file.hpp", '#include "world/gate.hpp"\n', "src/device/file.hpp:1: device uses world"),
        (
            "src/array/a.cpp",
            '\n#include "outcore/exclusive_file.hpp"\n',
            "src/array/a.cpp:2: array uses file",
        ),
        (
            "include/outcore/box.hpp",
            '#include "outcore/world.hpp"\n',
            "include/outcore/box.hpp:1: base uses world",
        ),
        ("src/chem/ri/a.hpp", '#include "chem/hf/slab.hpp"\n', "src/chem/ri/a.hpp:1: chem/ri uses chem/hf"),
        (
            "python/outcore/job/a.py",
            "from outcore.keep import problem\n",
            "python/outcore/job/a.py:1: job uses keep",
        ),
        ("python/outcore/job/a.py", "import outcore.cli.main\n", "python/outcore/job/a.py:1: job uses cli"),
        ("python/outcore/job/a.py", "def f():\n    from ..arrays import b\n", "a.py:2: job uses arrays"),
        (
            "python/outcore/trace/a.py",
            "def f():\n    from outcore import DiskArray\n",
            "a.py:2: trace uses arrays",
        ),
        ("python/outcore/files/a.py", "import outcore.arrays.b as b\n", "a.py:1: files uses arrays"),
        (
            "python/outcore/chem/ri/a.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from outcore.chem.hf.scf import RHF\n",
            "a.py:3: chem.ri uses chem.hf",
        ),
        ("python/outcore/job/a.py", "f('outcore.cli.main')\n", "a.py:1: job uses cli"),
        ("python/outcore/keep/a.py", "f('outcore.chem.hf')\n", "a.py:1: keep uses chem.hf"),
    ],
)
def test_an_arrow_that_goes_up_is_found(tmp_path, path, text, arrow):
    init = '_PUBLIC = {"DiskArray": "outcore.arrays.disk_array"}\n'
    status, said = floors(tree(tmp_path, **{"python/outcore/__init__.py": init, path: text}))
    assert status == 1
    assert arrow in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            "src/world/gate.cpp",
            '#include "outcore/error.hpp"\n#include "world/gate.hpp"\n#include <device/no.hpp>\n',
        ),
        ("src/chem/ri/a.hpp", '#include "chem/common/basis.hpp"\n#include "base/thread_team.hpp"\n'),
        (
            "python/outcore/cli/a.py",
            "from outcore import _core\nfrom outcore.chem.hf import scf\n",
        ),
        ("python/outcore/job/a.py", "import numpy\nfrom . import b\nname = 'outcore.names'\n"),
        ("python/outcore/keep/a.py", "f('outcore.tensor.arrays.array')\n"),
    ],
)
def test_arrows_that_go_down_pass(tmp_path, path, text):
    assert floors(tree(tmp_path, **{path: text})) == (0, "")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/attic/a.cpp", '#include <vector>\n#include "base/x.hpp"\n'),
        ("include/outcore/unheard_of.hpp", '#include "outcore/error.hpp"\n'),
        ("include/outcore/box.hpp", '#include "base/threads.hpp"\n'),
        ("python/outcore/attic.py", "from outcore import _core\n"),
    ],
)
def test_what_has_no_room_is_found(tmp_path, path, text):
    status, said = floors(tree(tmp_path, **{path: text}))
    assert status == 1
    assert "no room is known" in said or "not public" in said


def test_a_circle_of_files_is_found_and_one_of_types_is_none(tmp_path):
    files = {
        "python/outcore/job/a.py": "def f():\n    from outcore.job.b import x\n",
        "python/outcore/job/b.py": "from outcore.job import c\n",
        "python/outcore/job/c.py": "import outcore.job.a\n",
        "python/outcore/job/d.py": "if TYPE_CHECKING:\n    from outcore.job import e\n",
        "python/outcore/job/e.py": "from outcore.job import d\n",
        "src/base/a.hpp": '#include "base/b.hpp"\n',
        "src/base/b.hpp": '#include "base/a.hpp"\n',
    }
    assert floors(tree(tmp_path, **files)) == (
        1,
        "a circle: base/a.hpp base/b.hpp\na circle: outcore.job.a outcore.job.b outcore.job.c\n",
    )


def test_a_circle_that_is_none_any_more_has_to_leave_the_list(tmp_path):
    status, said = floors(tree(tmp_path, **{"scripts/floors.py": "", "src/base/a.hpp": ""}))
    assert status == 1
    assert "no circle any more" in said and "outcore.trace.report" in said
