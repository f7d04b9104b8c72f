"""The recipe of conda-forge (make test-recipes): rattler-build reads and renders it, its script builds each variant
into a prefix, and the tests of the recipe pass there.

The channels of conda are not needed: what the recipe names for the host and for runs comes from PyPI, and the
system stands for liburing and the compilers. The path of the prefix is constant: a compiler cache serves all
variants.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONDA = ROOT / "packaging" / "conda"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
VARIANTS = ("nompi", "mpich", "openmpi")
# What conda-forge pins in all recipes.
PINNED = {"python": ["3.11.* *_cpython"], "c_stdlib": ["sysroot"], "c_stdlib_version": ["2.28"],
          "c_compiler": ["gcc"], "c_compiler_version": ["14"], "cxx_compiler": ["gxx"],
          "cxx_compiler_version": ["14"]}  # fmt: skip
RENDER = """
import json, sys
from rattler_build import Stage0Recipe, VariantConfig
found = Stage0Recipe.from_file(sys.argv[1]).render(VariantConfig(json.loads(sys.argv[2])))
print(json.dumps({each.variant["mpi"]: each.recipe.to_dict() for each in found}))
"""
ORDER = ["schema_version", "context", "package", "source", "build", "requirements", "tests", "about", "extra"]
TWO = """
import mpi4py.MPI, outcore
with outcore.World(memory="64MB") as world:
    total = world.gather(world.rank)
    if world.rank == 0:
        print("ranks", sum(total), "of", world.size)
"""


def tool(place: Path, *packages: str) -> Path:
    """The interpreter of an environment with packages that only this suite needs."""
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    pip = [place / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, *packages], check=True)
    return place / "bin" / "python"


@pytest.fixture(scope="module")
def recipes(tmp_path_factory, record_testsuite_property) -> dict[str, dict]:
    """The rendered recipe of each variant."""
    python = tool(tmp_path_factory.mktemp("rattler") / "env", "py-rattler-build>=0.73")
    variants = yaml_of("conda_build_config.yaml") | PINNED
    command = [python, "-c", RENDER, CONDA / "recipe.yaml", json.dumps(variants)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    version = subprocess.check_output(
        [python, "-c", "import importlib.metadata as m; print(m.version('py-rattler-build'))"], text=True
    )
    record_testsuite_property("with", f"rattler-build {version.strip()}")
    return json.loads(done.stdout)


def yaml_of(name: str) -> dict:
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((CONDA / name).read_text())


def names(requirements: list[str]) -> set[str]:
    return {each.split()[0] for each in requirements}


# ---- what reviewers of conda-forge ask for


def test_rattler_build_renders_each_variant_once(recipes):
    assert sorted(recipes) == sorted(VARIANTS)
    strings = {recipe["build"]["string"] for recipe in recipes.values()}
    assert len(strings) == len(VARIANTS)


def test_sections_are_in_the_order_of_conda_forge():
    assert list(yaml_of("recipe.yaml")) == ORDER


def test_the_recipe_says_what_conda_forge_asks_for(recipes):
    for recipe in recipes.values():
        assert recipe["about"]["license"] == PROJECT["project"]["license"]
        assert recipe["about"]["license_file"] == [*PROJECT["project"]["license-files"]]
        assert recipe["about"]["summary"] == PROJECT["project"]["description"]
        assert recipe["package"] == {"name": "outcore", "version": PROJECT["project"]["version"]}
        assert "python" in names(recipe["requirements"]["host"])
        assert recipe["tests"]
    lines = yaml_of("recipe.yaml")["requirements"]["build"]
    assert any("compiler(" in line for line in lines) and any("stdlib(" in line for line in lines)


def test_a_variant_without_mpi_is_preferred(recipes):
    numbers = {name: recipe["build"]["number"] for name, recipe in recipes.items()}
    assert numbers["nompi"] > numbers["mpich"] == numbers["openmpi"]


def test_only_variants_with_mpi_need_it(recipes):
    for name, recipe in recipes.items():
        mpi = {"mpich", "openmpi", "mpi4py"} & names(recipe["requirements"]["run"])
        assert mpi == (set() if name == "nompi" else {name, "mpi4py"})


def test_the_recipe_has_the_dependencies_of_the_package(recipes):
    def wanted(needs: list[str]) -> set[str]:
        return {need.split(";")[0].replace(">", " >").split()[0] for need in needs}

    for recipe in recipes.values():
        assert names(recipe["requirements"]["run"]) >= wanted(PROJECT["project"]["dependencies"])
        tools = wanted(PROJECT["build-system"]["requires"]) - {"blosc2", "mpich"}
        assert names(recipe["requirements"]["host"]) >= tools | {"c-blosc2"}


# ---- the build


class Prefix:
    """An environment that stands for the host prefix of conda; the script of the recipe has installed into it."""

    def __init__(self, place: Path, name: str, recipe: dict) -> None:
        self.place = place / "prefix"
        self.bin = self.place / "bin"
        self.name = name
        self.recipe = recipe
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("PIP_NO", "PYTHON"))
        } | {
            "PATH": f"{self.bin}:{os.environ['PATH']}:{Path(sys.executable).parent}",
            "PREFIX": str(self.place),
            "PYTHON": str(self.bin / "python"),
            "LD_LIBRARY_PATH": str(self.place / "lib"),  # conda enters it into the libraries
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        }
        subprocess.run([sys.executable, "-m", "venv", self.place], check=True)
        needs = recipe["requirements"]
        self.install([*needs["host"], "c-blosc2"])
        self.headers_and_library_of_blosc2()
        source = place / "source"
        for file in subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines():
            (source / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, source / file)
        alone = {"PIP_NO_INDEX": "1", "PIP_NO_DEPENDENCIES": "1", "PIP_IGNORE_INSTALLED": "1"}
        for line in self.script():
            self.run("bash", "-ec", line, cwd=source, **alone)
        self.install(needs["run"])

    def script(self) -> list[str]:
        """Lines of the script, in which rattler-build leaves names of the context to the build."""
        script = self.recipe["build"]["script"]
        known = self.recipe["context"] | {"PYTHON": "$PYTHON"}
        lines = [script] if isinstance(script, str) else script
        return [re.sub(r"\$\{\{ (\w+) \}\}", lambda name: str(known[name[1]]), line) for line in lines]

    def install(self, requirements: list[str]) -> None:
        """Packages of conda by their names and versions on PyPI."""
        pypi = {"c-blosc2": "blosc2", "liburing": "", "pip": "", "python": ""}
        found = []
        for each in requirements:
            name, *version = each.split()
            found.append(pypi.get(name, name) + "".join(version[:1] if name not in pypi else []))
        self.run("python", "-m", "pip", "install", "-q", "--disable-pip-version-check", *filter(None, found))

    def headers_and_library_of_blosc2(self) -> None:
        package = next(self.place.glob("lib/python*/site-packages/blosc2"))
        shutil.copytree(package / "include", self.place / "include", dirs_exist_ok=True)
        for library in (package / "lib").glob("libblosc2.*"):
            shutil.copy2(library, self.place / "lib")

    def run(self, *command: str, cwd: Path | None = None, **more: str) -> str:
        done = subprocess.run(
            command,
            cwd=cwd or self.place,
            env=self.environment | more,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        return done.stdout

    @property
    def package(self) -> Path:
        return next(self.place.glob("lib/python*/site-packages/outcore"))


@pytest.fixture(scope="module", params=VARIANTS)
def prefix(request, recipes, tmp_path_factory):
    place = tmp_path_factory.getbasetemp() / "conda"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    yield Prefix(place, request.param, recipes[request.param])
    shutil.rmtree(place)


def test_libraries_for_mpi_are_those_of_the_variant(prefix):
    """Headers that the system has beside the prefix may add another family, but not to the variant without MPI."""
    found = {each.stem.removeprefix("outcore_mpi_") for each in prefix.package.glob("lib/outcore_mpi_*.so")}
    assert not found if prefix.name == "nompi" else prefix.name in found


def test_the_library_of_blosc2_is_that_of_the_prefix(prefix):
    said = prefix.run("ldd", str(prefix.package / "lib" / "liboutcore.so"))
    assert f"{prefix.place}/lib/libblosc2.so" in said


def test_the_tests_of_the_recipe_pass(prefix):
    asked = 0
    for test in prefix.recipe["tests"]:
        if python := test.get("python"):
            for module in python["imports"]:
                prefix.run("python", "-c", f"import {module}")
            if python.get("pip_check", True):
                prefix.run("python", "-m", "pip", "check")
        else:
            for line in test["script"]:
                prefix.run("bash", "-ec", line)
        asked += 1
    assert asked == 2


def test_an_array_on_disk_is_multiplied(prefix):
    program = (
        "import numpy, outcore\n"
        "with outcore.World(memory='64MB') as world:\n"
        "    axis = outcore.Tiling(600, tile=100)\n"
        "    a = outcore.Array.from_numpy(world, numpy.eye(600), (axis, axis), where='disk')\n"
        "    print(outcore.einsum('ij,jk->ik', a, a, memory='1MB').to_numpy().trace())\n"
    )
    assert prefix.run("python", "-c", program).strip() == "600.0"


def test_processes_are_those_of_the_mpi_of_the_variant(prefix):
    if prefix.name == "nompi":
        assert not (prefix.bin / "mpiexec").exists()
        return
    assert prefix.run("mpiexec", "-n", "2", "python", "-c", TWO).strip() == "ranks 1 of 2"
