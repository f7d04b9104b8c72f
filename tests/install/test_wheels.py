"""Wheels of `make wheels`, each installed into an empty environment of a system without compilers.

    make test-wheels            interpreters: PYTHONS, else python3.11 to python3.14 of PATH and of pyenv

An interpreter of `VERSIONS` that is not here is skipped by name. The numbers of the installed package are those of
this checkout.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DIST = Path(os.environ.get("WHEELS", ROOT / "dist"))
WATER = "3\n\nO 0 0 0.1\nH 0 0.75 -0.47\nH 0.1 -0.75 -0.5\n"
VERSIONS = ((3, 11), (3, 12), (3, 13))
# The programs of a small system: no compiler, no linker, no make.
TOOLS = ("sh", "env", "uname", "ls", "cat", "hostname", "ldd", "sed", "grep", "mkdir", "rm", "id", "getconf")

EINSUM = """
import numpy as np, outcore
with outcore.World(memory="200MB") as world:
    axis = outcore.Tiling(1500, tile=250)
    values = np.random.default_rng(1).random((1500, 1500))
    a = outcore.Array.from_numpy(world, values, (axis, axis), where="disk")
    product = outcore.einsum("ij,jk->ik", a, a, memory="8MB")
    assert abs(product.to_numpy() - values @ values).max() < 1e-9
    print("right")
"""

PROCESSES = """
import outcore
with outcore.World(memory="64MB") as world:
    assert world.size == 2
    print("ranks", sum(world.gather(world.rank))) if world.rank == 0 else world.gather(world.rank)
"""


def version_of(python: str | Path) -> tuple[int, int] | None:
    try:
        said = subprocess.run(
            [python, "-c", "import sys; print(*sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    major, minor = map(int, said.stdout.split())
    return major, minor


def interpreters() -> dict[tuple[int, int], str]:
    """An interpreter for each version: those that PYTHONS names, else all that are here."""
    if named := os.environ.get("PYTHONS", "").split():
        found = named
    else:
        pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
        found = [f"python3.{minor}" for minor in range(11, 15)]
        found += [str(each) for each in sorted(pyenv.glob("3.*/bin/python3"), reverse=True)]
    known: dict[tuple[int, int], str] = {}
    for each in found:
        version = version_of(each)
        if version and version >= VERSIONS[0]:
            known.setdefault(version, each)
    return known


INTERPRETERS = interpreters()


def wheel_for(version: tuple[int, int]) -> Path:
    tag = "cp311-cp311" if version == (3, 11) else "cp312-abi3"
    found = sorted(DIST.glob(f"outcore-*-{tag}-manylinux*.whl"))
    assert found, f"there is no wheel {tag} in {DIST}: make wheels"
    return found[-1]


def energy_of(file: Path) -> float:
    found = json.loads(file.read_text())
    return found.get("ccsd_t_energy_hartree", found.get("energy_hartree"))


class Installed:
    def __init__(self, place: Path, version: tuple[int, int]) -> None:
        python = INTERPRETERS[version]
        self.place = place
        self.bin = place / "env" / "bin"
        subprocess.run([python, "-m", "venv", place / "env"], check=True)
        tools = place / "tools"
        tools.mkdir()
        for name in TOOLS:
            if there := shutil.which(name):
                (tools / name).symlink_to(there)
        self.environment = {"PATH": f"{self.bin}:{tools}", "HOME": str(place), "OMP_NUM_THREADS": "1"}
        self.wheel = wheel_for(version)
        self.run("python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "--only-binary", ":all:",
                 f"outcore[chem,mpi,tensor] @ file://{self.wheel}")  # fmt: skip
        (place / "water.xyz").write_text(WATER)

    def run(self, *command: str | Path, **more) -> str:
        done = subprocess.run(
            command, env=self.environment | more, cwd=self.place, capture_output=True, text=True, check=False,
            executable=shutil.which(command[0], path=self.environment["PATH"]),
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def energy(self, *command: str) -> float:
        self.run("outcore", *command, "--json", "result.json")
        return energy_of(self.place / "result.json")


@pytest.fixture(
    scope="module",
    params=sorted({*VERSIONS, *INTERPRETERS}),
    ids=lambda version: f"cpython{version[0]}.{version[1]}",
)
def installed(request, tmp_path_factory, record_testsuite_property):
    version = request.param
    if version not in INTERPRETERS:
        pytest.skip(f"CPython {version[0]}.{version[1]} is not here")
    place = tmp_path_factory.mktemp("wheel")
    found = Installed(place, version)
    release = found.run("python", "-c", "import platform; print(platform.python_version())").strip()
    record_testsuite_property("with", f"CPython {release}: {found.wheel.name}")
    yield found
    shutil.rmtree(place)


def here(tmp_path, *command: str) -> float:
    """The energy by this checkout."""
    (tmp_path / "water.xyz").write_text(WATER)
    subprocess.run(
        [sys.executable, "-m", "outcore", *command, "--json", "result.json"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    return energy_of(tmp_path / "result.json")


def test_the_environment_has_no_compiler(installed):
    path = installed.environment["PATH"]
    assert not any(
        shutil.which(each, path=path) for each in ("cc", "gcc", "c++", "g++", "ld", "cmake", "make")
    )


def test_the_package_comes_from_the_wheel(installed):
    assert "site-packages" in installed.run("python", "-c", "import outcore; print(outcore.__file__)")


def test_doctor_knows_the_machine(installed):
    assert "I/O engine" in installed.run("outcore", "doctor")


def test_the_conformance_suites_are_inside(installed):
    for name in ("backends", "codecs"):  # their import needs pytest
        script = f"import importlib.util as u; print(u.find_spec('outcore.conformance.{name}').origin)"
        assert "site-packages" in installed.run("python", "-c", script)


def test_the_metadata_is_that_of_the_project(installed):
    script = "import importlib.metadata as m; print(m.distribution('outcore').read_text('METADATA'))"
    said = installed.run("python", "-c", script)
    assert f"Version: {PROJECT['version']}\n" in said and "License-Expression: Apache-2.0\n" in said
    for extra in PROJECT["optional-dependencies"]:
        assert f"Provides-Extra: {extra}\n" in said


def test_all_extras_can_be_installed(installed):
    """What `outcore[all]` needs exists for this interpreter as wheels that fit together. geomeTRIC, which is pure
    Python, has none."""
    installed.run("python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "--dry-run",
                  "--only-binary", ":all:", "--no-binary", "geometric",
                  f"outcore[all] @ file://{installed.wheel}")  # fmt: skip


def test_licences_of_what_is_inside_are_there(installed):
    script = "import outcore, pathlib; print(*pathlib.Path(outcore.__file__).parent.glob('licenses/*/*'))"
    said = installed.run("python", "-c", script)
    assert all(f"/{library}/" in said for library in ("blosc2", "nanobind", "liburing"))


def test_liburing_is_inside_and_blosc2_is_not_needed(installed):
    inside = zipfile.ZipFile(installed.wheel).namelist()
    assert any(name.startswith("outcore.libs/liburing") for name in inside)
    library = next(installed.place.glob("env/lib/python*/site-packages/outcore/lib/liboutcore.so"))
    assert "blosc2" not in installed.run("ldd", library)


@pytest.mark.parametrize(
    "command",
    [
        ("scf", "water.xyz", "--basis", "6-31g", "--storage", "disk", "--conv-tol", "1e-11"),
        ("ccsd", "water.xyz", "--basis", "6-31g", "--triples", "--frozen", "auto", "--memory", "1GB"),
    ],
    ids=["scf", "ccsd"],
)
def test_energies_are_those_of_this_checkout(installed, tmp_path, command):
    assert installed.energy(*command) == pytest.approx(here(tmp_path, *command), abs=1e-8)


def test_an_einsum_in_little_memory(installed):
    assert "right" in installed.run("python", "-c", EINSUM)


def test_two_processes(installed):
    (installed.place / "two.py").write_text(PROCESSES)
    assert "ranks 1" in installed.run("mpiexec", "-n", "2", "python", "two.py")


def test_scf_on_two_processes(installed, tmp_path):
    command = ("scf", "water.xyz", "--basis", "6-31g", "--storage", "disk", "--conv-tol", "1e-11")
    assert installed.energy(*command, "--ranks", "2") == pytest.approx(here(tmp_path, *command), abs=1e-8)


@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="pkg-config is not installed")
def test_a_program_in_c_with_the_installed_headers(installed, tmp_path):
    place = installed.run("outcore", "config", "--pkgconfig-dir").strip()
    flags = subprocess.check_output(
        ["pkg-config", "--cflags", "--libs", "outcore"],
        env=os.environ | {"PKG_CONFIG_PATH": place},
        text=True,
    ).split()
    program = tmp_path / "program"
    subprocess.run(
        ["cc", "-std=c11", ROOT / "tests" / "install" / "program.c", "-o", program, *flags], check=True
    )
    assert "Bad file descriptor" in subprocess.check_output([program], text=True)
