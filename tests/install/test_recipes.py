"""Recipes of `packaging` (make test-recipes): each agrees with `pyproject.toml`, and those that can run here
do.

The container is built as the Dockerfile says, in a Debian made by debootstrap; it needs root, and some minutes.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def named(requirement: str) -> str:
    return re.split(r"[\s>=<;\[]", requirement, maxsplit=1)[0].lower()


DEPENDENCIES = {named(each) for each in PROJECT["project"]["dependencies"]}
TOOLS = {named(each) for each in PROJECT["build-system"]["requires"]} - {"blosc2", "mpich"}


# ---- Spack


def directives(name: str) -> list[ast.Call]:
    tree = ast.parse((PACKAGING / "spack" / "outcore" / "package.py").read_text())
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    ]


def test_spack_has_the_dependencies_of_the_package():
    names = {
        named(call.args[0].value.partition("@")[0]).removeprefix("py-") for call in directives("depends_on")
    }
    assert names >= DEPENDENCIES | TOOLS


def test_spack_has_the_versions_of_the_package():
    least = {
        name.removeprefix("py-"): least.split(":")[0]
        for name, _, least in (call.args[0].value.partition("@") for call in directives("depends_on"))
    }
    for need in (*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]):
        wanted = re.search(r">=\s*([\d.]+)", need)
        if wanted and named(need) in least:
            assert wanted[1].startswith(least[named(need)]), need


def test_spack_knows_the_packages():
    packages = os.environ.get("SPACK_PACKAGES")
    if not packages:
        pytest.skip("SPACK_PACKAGES names no copy of Spack's packages")
    for call in directives("depends_on"):
        name = call.args[0].value.partition("@")[0].replace("-", "_")
        if name not in ("c", "cxx", "mpi"):
            assert (Path(packages) / name / "package.py").exists(), name


# ---- EasyBuild


def easyconfig() -> tuple[Path, dict]:
    file = next((PACKAGING / "easybuild").glob("*.eb"))
    found: dict = {}
    exec(compile(file.read_text(), file, "exec"), found)
    return file, found


def test_the_easyconfig_has_the_name_and_the_version_of_the_package():
    file, found = easyconfig()
    chain = found["toolchain"]
    assert file.name == f"{found['name']}-{found['version']}-{chain['name']}-{chain['version']}.eb"
    assert found["version"] == PROJECT["project"]["version"]
    assert [name for name, *_ in found["exts_list"]][-1] == PROJECT["project"]["name"]


def test_the_easyconfig_has_the_dependencies_of_the_package():
    """Bundles have several packages: what of them is needed stands in a comment of their line."""
    file, found = easyconfig()
    given = {name.lower() for name, *_ in (*found["dependencies"], *found["exts_list"])}
    given |= set(re.findall(r"\w+", " ".join(re.findall(r"\),  # (.*)", file.read_text()))))
    assert given >= DEPENDENCIES | {"scipy", "mpi4py", "pyscf", "blosc2"}
    assert {name.lower() for name, _ in found["builddependencies"]} >= TOOLS | {"cmake", "ninja"}


LMOD = Path("/usr/share/lmod/lmod/libexec/lmod")


@pytest.fixture(scope="module")
def lmod() -> dict[str, str]:
    if not LMOD.exists():
        pytest.skip("Lmod is needed (apt install lmod)")
    return {"LMOD_CMD": str(LMOD), "PATH": f"{LMOD.parent}:{PATH}"}


def test_easybuild_finds_all_dependencies(lmod, tmp_path, record_testsuite_property):
    """`eb --dry-run` resolves what is needed, and what that needs, from EasyBuild's own easyconfigs."""
    file, _ = easyconfig()
    env = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", env], check=True)
    pip = [env / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "easybuild>=5.4"], check=True)
    options = ["--dry-run", "--robot", "--allow-use-as-root-and-accept-consequences", f"--prefix={tmp_path}"]
    environment = os.environ | lmod | {"PATH": f"{env}/bin:{lmod['PATH']}"}
    command = [env / "bin" / "eb", file, *options]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    needed = set(re.findall(r"^ \* \[[ x]\] \S+/([^/\s]+)\.eb", done.stdout, re.MULTILINE))
    assert {"PySCF-2.11.0-foss-2025a", file.stem} <= needed
    record_testsuite_property("with", f"EasyBuild, {len(needed)} easyconfigs")


# ---- module


def test_the_module_names_places_that_are_installed():
    from outcore import _core

    package = Path(_core.__file__).resolve().parent
    text = (PACKAGING / "modulefiles" / "outcore.lua").read_text()
    for place in re.findall(r'pathJoin\(package, "([^"]+)"\)', text):
        assert (package / place).is_dir()
    assert (package / "lib" / "cmake" / "outcore" / "outcoreConfig.cmake").exists()


def test_lmod_loads_the_module(lmod, tmp_path):
    modules = tmp_path / "modules"
    modules.mkdir()
    shutil.copy(PACKAGING / "modulefiles" / "outcore.lua", modules)
    environment = os.environ | lmod | {"MODULEPATH": str(modules), "OUTCORE_PREFIX": sys.prefix}
    commands = subprocess.check_output([LMOD, "bash", "load", "outcore"], env=environment, text=True)
    script = f"{commands}\ncommand -v outcore; outcore --version; pkg-config --modversion outcore"
    said = subprocess.run(
        ["bash", "-ec", script], env=environment, capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr
    first, *versions = said.stdout.splitlines()
    assert first == f"{sys.prefix}/bin/outcore"
    assert all(PROJECT["project"]["version"] in line for line in versions)


# ---- containers


def steps() -> list[tuple[str, str]]:
    """Instructions of the Dockerfile, and the arguments of each."""
    text = (PACKAGING / "containers" / "Dockerfile").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def test_apptainer_does_what_docker_does():
    definition = (PACKAGING / "containers" / "outcore.def").read_text()
    for word, rest in steps():
        if word == "RUN" and ("pip install" in rest or "venv /opt" in rest or "outcore doctor" in rest):
            assert rest in definition


@pytest.fixture(scope="module")
def debian(tmp_path_factory):
    """A small Debian, with this machine's access to packages."""
    if os.getuid() or shutil.which("debootstrap", path=PATH) is None:
        pytest.skip("root and debootstrap are needed (apt install debootstrap)")
    place = tmp_path_factory.mktemp("debian")
    lists = "\n".join(each.read_text() for each in Path("/etc/apt").glob("sources.list*/*.sources"))
    mirror = re.search(r"URIs:\s*(\S+)", lists)
    command = ["debootstrap", "--variant=minbase", "bookworm", place, *([mirror[1]] if mirror else [])]
    subprocess.run(command, env=os.environ | {"PATH": PATH}, check=True, capture_output=True)
    for each in ("apt", "ssl", "pip.conf", "resolv.conf", "hosts"):
        there = Path("/etc") / each
        if there.is_dir():
            shutil.copytree(there, place / "etc" / each, dirs_exist_ok=True, symlinks=True)
        elif there.exists():
            shutil.copy(there, place / "etc" / each)
    yield place
    subprocess.run(["umount", place / "proc"], check=False, capture_output=True)
    shutil.rmtree(place, ignore_errors=True)


def test_the_steps_of_the_dockerfile_run(debian):
    """Both stages in one system: the second installs less."""
    subprocess.run(["mount", "-t", "proc", "proc", debian / "proc"], check=True)
    tracked = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    given = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    given |= {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "HOME": "/root"}
    if "PIP_CERT" in given:  # outside of /etc/ssl, where the package of certificates writes its own file
        shutil.copy(given["PIP_CERT"], debian / "certificates.pem")
        given["PIP_CERT"] = "/certificates.pem"
    for word, rest in steps():
        if word == "COPY" and not rest.startswith("--from"):
            for name in tracked:
                target = debian / "src" / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, target)
        elif word == "ENV":
            name, _, value = rest.partition("=")
            given[name] = value.replace(f"${name}", given[name])
        elif word == "RUN":
            done = subprocess.run(
                ["chroot", debian, "sh", "-c", rest], env=given, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, rest + done.stdout[-3000:] + done.stderr[-3000:]
    said = subprocess.run(
        ["chroot", debian, "outcore", "--version"], env=given, capture_output=True, text=True, check=True
    )
    assert PROJECT["project"]["version"] in said.stdout
