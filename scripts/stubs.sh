#!/usr/bin/env bash
# Writes the type stubs of the native module: stubs.sh PYTHON DIRECTORY (which gets _core/*.pyi)
set -euo pipefail
python=$1 directory=$2
mkdir -p "$directory"
rm -rf "$directory/_core"
"$python" -m nanobind.stubgen --quiet --recursive -m outcore._core -O "$directory"
"$python" -m ruff check --quiet --isolated --select I,F401,UP --target-version py311 --fix "$directory/_core"
"$python" -m ruff format --quiet --isolated --line-length 110 "$directory/_core"
