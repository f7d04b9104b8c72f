#!/usr/bin/env bash
# Writes the type stub of the native module: stubs.sh PYTHON FILE
set -euo pipefail
python=$1 file=$2
mkdir -p "$(dirname "$file")"
"$python" -m nanobind.stubgen --quiet -m outcore._core -o "$file"
"$python" -m ruff check --quiet --isolated --select I,F401,UP --target-version py311 --fix "$file"
"$python" -m ruff format --quiet --isolated --line-length 110 "$file"
