PYTHON ?= python3
REPRODUCE = .venv/bin/spie run table1
# Two workers: the tests that compile kernels overlap with the others.
PYTEST = .venv/bin/pytest -n 2

.DEFAULT_GOAL := help
.PHONY: help setup test reproduce bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/.installed ## create .venv with the tested versions; instant when nothing changed

# The constraints reach the isolated build too: older pips read PIP_CONSTRAINT there, newer ones PIP_BUILD_CONSTRAINT.
.venv/.installed: export PIP_CONSTRAINT = constraints.txt
.venv/.installed: export PIP_BUILD_CONSTRAINT = constraints.txt
.venv/.installed: pyproject.toml constraints.txt
	@echo "setup: installing spie and its tools into .venv, a minute or two"
	@$(PYTHON) -m venv .venv
	@.venv/bin/python -m pip install -qq --disable-pip-version-check --editable '.[dev]'
	@touch $@

test: setup ## lint, types and tests
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy spie
	$(PYTEST)

reproduce: setup ## the paper's main numbers beside ours
	$(REPRODUCE)

bench: setup ## speed of the engine against plain NumPy
	.venv/bin/python benchmarks/bench.py

clean: ## remove builds and caches, compiled kernels included; keeps .venv
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -path ./.venv -prune -o -name __pycache__ -type d -exec rm -rf {} +
