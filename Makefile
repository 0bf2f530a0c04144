# Every path below is relative, so that the clone may lie under a path with a space.
PYTHON ?=
ONLY ?=
SEED ?=
MINUTES ?=
DATABASE ?=
UPGRADE ?=
EXTRAS ?=

RUN := .venv/bin/python
export PYTHON UPGRADE SEED

.DEFAULT_GOAL := help
.PHONY: help install up test check unit conformance integration acceptance browser coverage \
	steady search bench chaos docs format lock clean

help: ## Show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

install: ## Build .venv with what tests need from the lock files (nothing to do when they are the same)
	@scripts/install

up: ## Install what running needs, then start the server (EXTRAS=all: every provider, MCP, PostgreSQL)
	@scripts/install $(if $(EXTRAS),all,run)
	@$(RUN) -m wakeful up

test: install ## Install, then run every check and every test (SEED=n repeats an order)
	@$(RUN) scripts/checks.py check conformance integration acceptance browser

check: install ## Format, lint, types, import contracts, unit tests
	@$(RUN) scripts/checks.py check

unit: install ## Unit tests
	@$(RUN) scripts/checks.py unit

conformance: install ## One suite over every implementation of a seam
	@$(RUN) scripts/checks.py conformance

integration: install ## Tests on real files, databases and sockets
	@$(RUN) scripts/checks.py integration

acceptance: install ## Tests that kill and restart the real process
	@$(RUN) scripts/checks.py acceptance

browser: install ## Tests in a real Chromium (scripts/install-test-tools installs it)
	@$(RUN) scripts/checks.py browser

steady: install ## Run all of it five times: plain, busy, as a background job, elsewhere
	@$(RUN) scripts/steady.py

search: install ## Try new examples, many of them, where a test states a property
	@$(RUN) -m pytest -q -n 2 --hypothesis-profile=search $(shell grep -rl '^@given\|^    @given' tests)

coverage: install ## Unit, conformance and integration tests with branch coverage
	@$(RUN) -m coverage run -m pytest $(wildcard tests/unit tests/conformance tests/integration)
	@$(RUN) -m coverage combine --quiet && $(RUN) -m coverage report

bench: install ## Measure (ONLY=name for one row)
	@$(RUN) -m bench $(if $(ONLY),--only '$(ONLY)')

chaos: install ## Kill at random under load and check (SEED=n MINUTES=n DATABASE=postgres)
	@$(RUN) -m tests.proofs.chaos $(if $(SEED),--seed '$(SEED)') $(if $(MINUTES),--minutes '$(MINUTES)') \
		$(if $(DATABASE),--database '$(DATABASE)')

docs: install ## Write the generated pages of docs/reference
	@$(RUN) scripts/reference.py

format: install ## Format, and fix what the linter can fix
	@$(RUN) -m ruff format
	@$(RUN) -m ruff check --fix

lock: install ## Remake the hashed lock files (UPGRADE=1 for the newest versions)
	@scripts/lock

clean: ## Remove everything that was built
	@rm -rf .venv .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage .coverage.* \
		dist bench/results.json chaos-report.json
	@find src tests bench examples scripts -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
