# Two commands do everything on a machine that has Python 3.11 or newer, make and a package index:
#   make audit MATRIX=mujoco.yaml
#   make test

MATRIX ?= smoke.yaml
PYTHON ?= python3
export SQL ?= SELECT matrix, environment, older, newer, verdict FROM pairs WHERE adjacent
VENV := .venv
READY := $(VENV)/.ready
RUN := $(VENV)/bin/release-audit
# Tests mostly wait for programs that they started: four at once keep two cores busy.
PYTEST := $(VENV)/bin/pytest --numprocesses 4
# A file stays on one worker: its tests share an audit. Those of the fault suite say themselves what stays together.
PYTEST_ALL := $(PYTEST) --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help audit plan query explain reproduce report doctor test test-faults soak browser lint bench bench-scale cluster-demo fuzz \
	lock schema clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

audit: $(READY)  ## Audit a matrix: MATRIX=paper.yaml, or a path
	@$(RUN) run "$(MATRIX)" $(ARGS)

plan: $(READY)  ## Show what an audit would run: MATRIX=...
	@$(RUN) plan "$(MATRIX)" $(ARGS)

query: $(READY)  ## Run SQL on the results: SQL="SELECT ...", or NAMED=safe-upgrades (NAMED=list shows all)
	@$(RUN) query $(if $(NAMED),--named "$(NAMED)","$$SQL") $(ARGS)

report: $(READY)  ## Write the results as one page: results/report.html
	@$(RUN) report $(ARGS)

explain: $(READY)  ## Say why two releases differ: ENV=... OLDER=... NEWER=...
	@$(RUN) explain "$(ENV)" "$(OLDER)" "$(NEWER)" $(ARGS)

reproduce: $(READY)  ## Measure the paper's figures again: NAMES="faults drift", or all
	@$(RUN) reproduce $(NAMES) $(ARGS)

doctor: $(READY)  ## Check Python, uv, the index, the disk, the CPU
	@$(RUN) doctor

test: $(READY) lint browser  ## Check style and types, then run the tests; of the fault suite only its core
	@$(PYTEST_ALL) $(ARGS)

browser:  ## Install Chromium for the tests, where it is missing and apt-get may do so
	@for name in chromium chromium-browser google-chrome; do command -v $$name > /dev/null && exit 0; done; \
		as=$$([ "$$(id -u)" = 0 ] || echo "sudo -n"); \
		{ command -v apt-get > /dev/null && $$as true 2> /dev/null; } || \
			{ echo "no Chromium: tests of the report's page are skipped; install the system's package chromium"; exit 0; }; \
		echo "installing Chromium for the tests of the report's page"; \
		export DEBIAN_FRONTEND=noninteractive; \
		{ $$as apt-get update -qq; $$as apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } \
			> /dev/null 2>&1 || echo "Chromium could not be installed: tests of the report's page are skipped"

test-faults: $(READY)  ## Run the whole fault suite: hanging packages, full disks, killed nodes, jumping clocks
	@$(PYTEST) -m "faults or core" tests/faults $(ARGS)

soak: $(READY)  ## Audit in a loop while processes are killed at random: SECONDS=3600
	@$(VENV)/bin/python -m tests.soak --seconds $(or $(SECONDS),3600) $(ARGS)

lint: $(READY)  ## Check style and types
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy

bench: $(READY)  ## Measure against the obvious harness and a bare loop
	@$(VENV)/bin/python -m bench $(ARGS)

bench-scale: $(READY)  ## Measure how planning, storing and comparing grow up to 10,000 releases
	@$(VENV)/bin/python -m bench.scale $(ARGS)

fuzz: $(READY)  ## Fuzz the readers of matrices, laws and answers: SECONDS=600 for each
	@$(VENV)/bin/python -m tests.fuzz --seconds $(or $(SECONDS),600) $(ARGS)

cluster-demo: $(READY)  ## Audit on a cluster of three nodes, started on this machine for it: MATRIX=...
	@$(VENV)/bin/python -m demo "$(MATRIX)" $(ARGS)

lock: $(READY)  ## Resolve the harness's own dependencies anew
	@echo uv | $(VENV)/bin/uv pip compile - --universal --python-version 3.11 --generate-hashes --no-annotate \
		--custom-compile-command "make lock" --quiet --upgrade --output-file requirements/uv.txt
	@$(VENV)/bin/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes \
		--no-annotate --custom-compile-command "make lock" --quiet --upgrade --output-file requirements/all.txt

schema: $(READY)  ## Write matrices/schema.json from the code
	@$(RUN) schema > matrices/schema.json

clean:  ## Remove the harness's virtualenv (results and cached virtualenvs stay)
	rm -rf $(VENV)

$(READY): requirements/all.txt requirements/uv.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "release-audit needs Python 3.11 or newer as $(PYTHON); try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 2; }
	@echo "setting up $(VENV)"
	@$(PYTHON) -m venv --clear $(VENV)
	@command -v uv > /dev/null || \
		$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	@uv=$$(command -v uv || echo $(VENV)/bin/uv); \
		$$uv pip sync --quiet --compile-bytecode --require-hashes --python $(VENV)/bin/python requirements/all.txt && \
		$$uv pip install --quiet --no-deps --no-build-isolation --python $(VENV)/bin/python --editable .
	@touch $(READY)
