# Every target makes its virtual environment by itself. `make PYTHON=python3.13` chooses the interpreter it is made
# from, `make PY=/path/to/python` uses an environment of yours as it is.
PYTHON ?= python3
VENV ?= .venv
PY ?= $(VENV)/bin/python
ARGS ?=
# Test processes side by side. A file's tests stay together, as they share what is dear to set up, and what takes longest
# begins first (tests/conftest.py).
WORKERS ?= 2

READY := $(if $(filter $(VENV)/bin/python,$(PY)),$(VENV)/.ready)
PYTEST = -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
SUITE := -m "not bench and not postgres15 and not browser and not model"
BROWSER := $(if $(filter $(VENV)/bin/python,$(PY)),$(VENV)/.browser)
ON_15 := $(wildcard tests/db tests/schema tests/concurrency)

.DEFAULT_GOAL := help
.PHONY: help venv demo run stop test test-extra postgres15 browser model storm check fix bench bench-fair

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 14

venv: $(READY) ## make .venv with everything that development needs

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; try: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(READY) ## the newcomer's first command: thousands of jobs, two killed processes, nothing lost
	@$(PY) -m tests.demo $(ARGS)

run: $(READY) ## dispatcher, worker and web console, until Ctrl-C
	@$(PY) -m scheduler_project.run

stop: $(READY) ## stop the PostgreSQL that demo, run or manage.py started
	@$(PY) -m scheduler_project.embedded stop

test: $(READY) ## the test suite, on a PostgreSQL of its own
	$(PY) $(PYTEST) $(SUITE) $(ARGS)

test-extra: postgres15 browser model storm ## the next four: what needs more than Python and make

postgres15: $(READY) ## what touches the database again, on Debian's PostgreSQL 15
	TEST_POSTGRES=15 $(PY) $(PYTEST) -m "not bench and not mutant" $(ON_15) $(ARGS)

browser: $(READY) $(BROWSER) ## the operator console in Debian's Chromium: journeys, accessibility, policy
	$(PY) $(PYTEST) --dist worksteal -m browser tests/browser $(ARGS)

$(VENV)/.browser: $(VENV)/.ready
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[browser]'
	@touch $@

model: $(READY) ## check the formal model of a job's life, and that each guard it lacks is missed (needs spin and gcc)
	$(PY) -m tests.model

storm: $(READY) ## three minutes of faults against a real cluster, nothing lost (needs pgbouncer and gcc)
	$(PY) -m tests.storm $(STORM)

check: $(READY) ## lint, format, types, layers, migrations
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) -c 'from importlinter.cli import lint_imports_command; lint_imports_command()'
	$(PY) -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run

bench: $(READY) ## all workloads of `manage.py benchmark`, each beside its floor: about a quarter of an hour
	$(PY) manage.py benchmark all $(ARGS)

bench-fair: $(READY) ## fairness between tenants, limits and slow neighbours, measured: about eight minutes
	$(PY) manage.py benchmark fair $(ARGS)

fix: $(READY) ## repair what lint and format can repair
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .
