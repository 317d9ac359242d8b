# The two commands are `make run` and `make test`; `make help` lists the rest.
SHELL := /bin/bash
VENV := .venv
PY := $(VENV)/bin/python
WORKERS ?= 2
T ?=
.DEFAULT_GOAL := help
.PHONY: help setup run test test-long check format lock demo cases

help: ## List the verbs
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/bin/python:
	@scripts/venv.sh $(VENV)

$(VENV)/.run: requirements.txt | $(VENV)/bin/python
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	@touch $@

$(VENV)/.dev: requirements-dev.txt requirements.txt | $(VENV)/bin/python
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@touch $(VENV)/.run $@

setup: $(VENV)/.dev ## Environment and dependencies for development

run: $(VENV)/.run ## Serve: database, first-run company, web, worker and scheduler on 127.0.0.1:$PORT
	@exec $(PY) -m duduclaw.serve

test: $(VENV)/.dev ## The whole test suite (T="path -k name" narrows it)
	@scripts/test.sh -n $(WORKERS) $(T)

test-long: $(VENV)/.dev ## The tests that take minutes, at full figures
	@scripts/test.sh -m long $(T)

check: $(VENV)/.dev ## Format, lint, types, import contracts, system checks, migrations
	@scripts/check.sh

format: $(VENV)/.dev ## Rewrite the code in the house's format
	@$(VENV)/bin/ruff format -q . && $(VENV)/bin/ruff check -q --fix .

lock: $(VENV)/bin/python ## Write the requirement files with hashes from the .in files
	@scripts/lock.sh

demo: $(VENV)/.run ## Walk the first-run company through a running server
	@exec $(PY) manage.py demo

cases: $(VENV)/.dev ## Print id, result and file of every case; a due case without a passing test fails
	@exec $(PY) -m tests.cases
