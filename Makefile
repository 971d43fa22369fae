PYTHON ?= python3
REPRODUCE = .venv/bin/spie run && .venv/bin/spie report
# Two workers: the tests that compile kernels overlap with the others. A file's tests, which share fixtures and kernels,
# stay together.
PYTEST = .venv/bin/pytest -n 2 --dist loadscope
APT = -qq -o Acquire::http::Timeout=20 -o Acquire::Retries=1

.DEFAULT_GOAL := help
.PHONY: help setup lock chromium test test-fast reproduce reproduce-all docs found bench bench-deep fuzz kills clean

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

# What is in the lock is installed by its hashes, and nothing else is fetched; torch, whose builds differ by platform,
# by its exact version; and spie itself is built with what is there already.
PIP = .venv/bin/python -m pip install -qq --disable-pip-version-check
.venv/.installed: pyproject.toml constraints.txt requirements.lock
	@echo "setup: installing spie and its tools into .venv, a minute or two"
	@$(PYTHON) -m venv .venv
	@$(PIP) --require-hashes --no-deps --only-binary :all: -r requirements.lock
	@$(PIP) -c constraints.txt "$$(grep '^torch==' constraints.txt)"
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

lock: setup ## write requirements.lock anew, after constraints.txt has changed
	.venv/bin/python scripts/lock.py

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

docs: setup ## the documentation as a site, in build/site: built and checked without network
	PYTHONPATH=scripts .venv/bin/python -m handbook.site

found: setup ## what we found, in README.md, computed again from the results that ship
	PYTHONPATH=scripts .venv/bin/python -m handbook.found

bench: setup ## speed of the engine against plain NumPy
	.venv/bin/python benchmarks/bench.py

bench-deep: setup ## speed of the deep agent against Stable-Baselines3 and against this core's matrix product
	.venv/bin/python benchmarks/deep.py

fuzz: setup ## made-up inputs of every kind for SECONDS (300): nothing may crash, hang or differ in silence
	nice .venv/bin/python tests/fuzz/__main__.py --seconds $(or $(SECONDS),300) --seed $(or $(SEED),0)

kills: setup ## N (100) commands killed at random, their disks filled, then continued: the bits of unbroken runs
	nice .venv/bin/python benchmarks/kills.py --kills $(or $(N),100) --seed $(or $(SEED),0)

clean: ## remove builds and caches, compiled kernels included; keeps .venv
	rm -rf build dist .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -path ./.venv -prune -o -name __pycache__ -type d -exec rm -rf {} +
