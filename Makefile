PYTHON ?= python3
REPRODUCE = .venv/bin/spie run && .venv/bin/spie report
# Two workers: the tests that compile kernels overlap with the others.
PYTEST = .venv/bin/pytest -n 2
APT = -qq -o Acquire::http::Timeout=20 -o Acquire::Retries=1

.DEFAULT_GOAL := help
.PHONY: help setup chromium test test-fast reproduce reproduce-all bench bench-deep clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/.installed ## create .venv with the tested versions; instant when nothing changed
	@command -v chromium >/dev/null || $(MAKE) --no-print-directory chromium

# A browser for the tests of the page. It is no reason to fail: without it they are skipped and say so.
chromium:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "setup: installing chromium for the tests of the page, a minute or two"; \
		export DEBIAN_FRONTEND=noninteractive; apt-get $(APT) update >/dev/null 2>&1; \
		apt-get $(APT) install -y --no-install-recommends chromium >/dev/null 2>&1; \
	fi; command -v chromium >/dev/null || echo "setup: no chromium here, so the tests of the page will be skipped"

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

test-fast: setup ## the tests that compile no kernel, train nothing and play no game: under a minute
	$(PYTEST) -m 'not slow'

reproduce: setup ## every tabular, grid-world and MountainCar table and figure of the paper, and the page that compares
	$(REPRODUCE)

reproduce-all: setup ## the same after every agent and control has been tuned alike: ten minutes more
	.venv/bin/spie run tuned tuned-grids && $(REPRODUCE)

bench: setup ## speed of the engine against plain NumPy
	.venv/bin/python benchmarks/bench.py

bench-deep: setup ## speed of the deep agent against Stable-Baselines3 and against this core's matrix product
	.venv/bin/python benchmarks/deep.py

clean: ## remove builds and caches, compiled kernels included; keeps .venv
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -path ./.venv -prune -o -name __pycache__ -type d -exec rm -rf {} +
