# The two commands of a new user are `make demo` and `make test`; `make help` lists the rest.
SHELL := /bin/bash
.DEFAULT_GOAL := help

VENV := .venv
VENV_PYTHON := $(VENV)/bin/python
OUTCORE := $(VENV)/bin/outcore
TOOLS := PATH="$(abspath $(VENV))/bin:$$PATH"
READY := $(VENV)/.ready
BUILT := $(VENV)/.built
STUB := python/outcore/_core.pyi

# One build for the Python package, the C++ tests and the compiler warnings.
BUILD := build/dev

# What the native module is made of; Python sources are used in place and need no build.
NATIVE := CMakeLists.txt pyproject.toml $(shell find src include bindings -type f 2>/dev/null)
CXX_FILES := $(shell find src include bindings tests -name '*.cpp' -o -name '*.hpp' -o -name '*.h' -o -name '*.c')

# make test SANITIZE=address,undefined   (or thread)
SANITIZE :=
# make test ALL=1   (tests that take long, too)
ALL :=

.PHONY: help setup demo test bench docs screenshots lint tidy format stubs wheels test-wheels test-slurm test-recipes coverage clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

setup: $(BUILT)  ## make .venv, install what is needed into it, build

$(READY): scripts/setup.sh pyproject.toml
	@scripts/setup.sh $(VENV)
	@touch $@

$(BUILT): $(READY) $(NATIVE)
	@scripts/build.sh $(VENV_PYTHON) \
	  --config-settings build-dir=$(BUILD) \
	  --config-settings cmake.define.OUTCORE_TESTS=ON \
	  $(if $(CI),--config-settings cmake.define.OUTCORE_WERROR=ON)
	@touch $@

demo: $(BUILT)  ## Hartree-Fock of C14H8F6 with its integrals on disk, on two processes
	$(OUTCORE) scf examples/c14h8f6.xyz --basis '6-31g*' --cart --storage disk --ranks 2

test: $(BUILT)  ## C++, Python, 2 and 4 processes; ALL=1: long tests too; SANITIZE=address,undefined or thread
	@$(VENV_PYTHON) scripts/test.py $(if $(ALL),--all) $(if $(SANITIZE),--sanitize $(SANITIZE))

wheels:  ## source distribution and wheels, in dist; PYTHONS="python3.11 python3.12"
	@scripts/wheels.sh dist

test-wheels: $(BUILT)  ## each wheel in an empty environment without compilers; PYTHONS="python3.11 .."
	$(VENV_PYTHON) -m pytest -q tests/install/test_wheels.py

test-recipes: $(BUILT)  ## recipes of packaging; parts need root, debootstrap and lmod
	$(VENV_PYTHON) -m pytest -q tests/install/test_recipes.py tests/install/test_conda.py

test-slurm: $(BUILT)  ## jobs of a Slurm that the tests start; needs root, slurm-wlm and munge
	$(VENV_PYTHON) -m pytest -q tests/slurm

coverage: $(BUILT)  ## statements and branches that tests run, Python and C++ (an hour)
	$(VENV_PYTHON) scripts/covered.py all; status=$$?; $(VENV_PYTHON) scripts/documents && exit $$status

bench: $(BUILT)  ## all benchmarks, results in build/bench
	@mkdir -p build/bench
	@for name in $$($(OUTCORE) bench --list | cut -d' ' -f1); do \
	  $(OUTCORE) bench $$name --json build/bench/$$name.json || failed=1; \
	done; test -z "$$failed"

docs: $(BUILT)  ## the documents as a site, in build/site; fails if what is generated in them is out of date
	$(VENV_PYTHON) scripts/documents --check
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --quiet
	$(VENV_PYTHON) scripts/check_site.py

screenshots: docs  ## ten pages of the site as pictures, in build/screenshots; fails if a browser finds fault with them
	$(VENV_PYTHON) scripts/screenshots.py

lint: $(BUILT)  ## formatters, compiler warnings as errors, ruff, mypy, arrows between rooms, stub up to date
	$(VENV)/bin/clang-format --dry-run -Werror $(CXX_FILES)
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/shellcheck scripts/*.sh tests/*/*.sh .ci/run
	$(VENV_PYTHON) scripts/floors.py
	@! grep -n 'nanobind/stl/string' bindings/python/*.cpp bindings/python/[a-r]*.hpp || \
		{ echo "string_arg.hpp is in place of nanobind's, which refuses names that are not UTF-8" >&2; exit 1; }
	@scripts/stubs.sh $(VENV_PYTHON) build/_core.pyi
	diff -u $(STUB) build/_core.pyi || { echo "$(STUB) is out of date: run make stubs" >&2; exit 1; }
	@$(VENV_PYTHON) scripts/commit_subjects.py
	@$(TOOLS) cmake --preset dev -DOUTCORE_WERROR=ON >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
	$(TOOLS) cmake --build --preset dev

tidy: $(BUILT)  ## clang-tidy on what has changed since the last time; warnings only
	@$(TOOLS) cmake --preset tidy >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
	$(TOOLS) cmake --build --preset tidy

format: $(READY)  ## format all sources
	$(VENV)/bin/clang-format -i $(CXX_FILES)
	$(VENV)/bin/ruff check --fix --exit-zero .
	$(VENV)/bin/ruff format .

stubs: $(BUILT)  ## write the type stub of the native module anew
	@scripts/stubs.sh $(VENV_PYTHON) $(STUB)

clean:  ## remove everything that was built or installed here
	rm -rf build dist $(VENV) .mypy_cache .ruff_cache .pytest_cache
