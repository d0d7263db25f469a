# Two commands do everything on a machine that has Python 3.11 or newer, make and a package index:
#   make audit MATRIX=mujoco.yaml
#   make test

MATRIX ?= smoke.yaml
PYTHON ?= python3
export SQL ?= SELECT matrix, environment, older, newer, verdict FROM pairs WHERE adjacent
VENV := .venv
READY := $(VENV)/.ready
RUN := $(VENV)/bin/release-audit

.DEFAULT_GOAL := help
.PHONY: help audit plan query explain reproduce doctor test lint bench lock schema clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

audit: $(READY)  ## Audit a matrix: MATRIX=paper.yaml, or a path
	@$(RUN) run "$(MATRIX)" $(ARGS)

plan: $(READY)  ## Show what an audit would run: MATRIX=...
	@$(RUN) plan "$(MATRIX)" $(ARGS)

query: $(READY)  ## Run SQL on the results: SQL="SELECT ..."
	@$(RUN) query "$$SQL" $(ARGS)

explain: $(READY)  ## Say why two releases differ: ENV=... OLDER=... NEWER=...
	@$(RUN) explain "$(ENV)" "$(OLDER)" "$(NEWER)" $(ARGS)

reproduce: $(READY)  ## Measure the paper's figures again: NAMES="faults drift", or all
	@$(RUN) reproduce $(NAMES) $(ARGS)

doctor: $(READY)  ## Check Python, uv, the index, the disk, the CPU
	@$(RUN) doctor

test: $(READY) lint  ## Check style and types, then run every test
	@$(VENV)/bin/pytest $(ARGS)

lint: $(READY)  ## Check style and types
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy

bench: $(READY)  ## Measure against the obvious harness and a bare loop
	@$(VENV)/bin/python -m bench $(ARGS)

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
