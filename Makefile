# The vocabulary of this project; CI uses the same verbs. `make` prints it.

PYTHON ?= python3
JOBS   ?= 2
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.set-up
QUIX   := $(VENV)/quix-join
PEERS  := $(VENV)/bench
# The modules that setup.py compiles: a compiled form that is older than its source would hide it.
COMPILED := $(shell sed -n 's/^    "\(bridge\/.*\.py\)",$$/\1/p' setup.py)

COMPUTING := tests/virtual tests/property tests/unit
# Behind a command: of the tests that ARGS choose, this part may have none.
OR_NONE := $(if $(ARGS),|| test $$? -eq 5)
# A command whose output comes whole, under a heading, when it has ended.
TOLD = said=$$($(1) 2>&1 $(OR_NONE)); code=$$?; printf '\n%s\n%s\n' "$(2)" "$$said"; exit $$code

# In front of a command: it, and its children, run what is compiled as plain Python.
PLAIN  := PYTHONPATH=$(CURDIR)/tests/plain

.DEFAULT_GOAL := help
.PHONY: help setup docs demo quix-join test test-kafka test-compiled-and-plain test-unit bench bench-check flame chaos mutants check lock clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## install everything into .venv; the command is then .venv/bin/bridge

$(STAMP): pyproject.toml setup.py requirements/dev.txt $(COMPILED)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error: Python 3.11 or newer is needed; name one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "error: this Python cannot make virtual environments; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@echo "setting up $(VENV), about 350 MB, a minute or less"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@BRIDGE_MUST_COMPILE=1 $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--no-build-isolation -e .
	@$(BIN)/python -c 'from bridge.avro.encoder import compiled; \
		compiled() or print("note: no C compiler that works, or no Python headers: the hot path runs as plain Python, slower; with them: make -B setup. To see what it says: $(BIN)/python -m pip install -v --no-deps --no-build-isolation -e .")'
	@touch $@

demo: setup ## everything on this machine, live; SECONDS=20 ends by itself, KILLS=5 kills the bridge meanwhile
	@$(BIN)/bridge demo $(if $(SECONDS),--seconds $(SECONDS)) $(if $(KILLS),--kills $(KILLS)) $(if $(RATE),--rate $(RATE))

quix-join: setup $(QUIX)/.set-up ## bets joined with their names by Quix Streams, live; SECONDS=60 ends by itself
	@$(BIN)/python examples/quix-join/demo.py --python $(QUIX)/bin/python $(if $(SECONDS),--seconds $(SECONDS))

$(QUIX)/.set-up: examples/quix-join/requirements.txt
	@echo "setting up $(QUIX), about 130 MB" >&2
	@test -x $(QUIX)/bin/python || $(PYTHON) -m venv $(QUIX)
	@$(QUIX)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

# Tests on Kafka mostly wait: those that only compute run beside them, at leisure.
test: setup ## all tests, on a real Kafka and a real registry, the cheap ones also uncompiled; JOBS=1 runs one at a time
	@$(MAKE) --no-print-directory --jobs=$(JOBS) test-kafka test-compiled-and-plain

test-kafka: setup
	@$(BIN)/python -m pytest -n $(JOBS) --maxschedchunk 1 tests/faults tests/integration $(ARGS) $(OR_NONE)

test-compiled-and-plain: setup
	@$(call TOLD,nice $(BIN)/python -m pytest $(COMPUTING) tests/repo $(ARGS),tests that need no Kafka)
	@$(call TOLD,$(PLAIN) nice $(BIN)/python -m pytest $(COMPUTING) \
		$(foreach part,benchmarks cli doctor examples inspection observability rest sandbox snapshots,--ignore=tests/unit/$(part)) $(ARGS),the same with what is compiled as plain Python)

test-unit: setup ## only those that need no Kafka
	@$(BIN)/python -m pytest $(COMPUTING) tests/repo $(ARGS)

bench: setup $(if $(filter catchup,$(or $(BENCH),catchup)),$(if $(findstring quix,$(or $(CONTENDERS),quix)),$(PEERS)/.set-up)) ## measure the bridge beside others; BENCH=catchup runs one, ROUNDS=1 is a quick look
	@$(BIN)/python -m benchmarks $(BENCH) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(MESSAGES),--messages $(MESSAGES)) \
		$(if $(SECONDS),--seconds $(SECONDS)) $(if $(RATES),--rates $(RATES)) $(if $(CONTENDERS),--contenders "$(CONTENDERS)")

bench-check: setup ## has a ratio fallen by more than a fifth? minutes; BASELINE=write stores what is measured
	@$(BIN)/python -m benchmarks $(if $(filter write,$(BASELINE)),--write-baseline,--check)

flame: setup ## draw where the time of catching up goes, into docs/performance/flame.svg
	@$(BIN)/python -m benchmarks.flame

$(PEERS)/.set-up: benchmarks/requirements.txt
	@echo "setting up $(PEERS), about 140 MB" >&2
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

chaos: setup ## long campaigns of faults; CAMPAIGN=three_days chooses, MESSAGES, KILLS and SEED change it
	@$(BIN)/python -m pytest -s -o faulthandler_timeout=0 tests/chaos $(if $(CAMPAIGN),-k $(CAMPAIGN)) $(ARGS)

mutants: setup ## break limits, position, deduplicator and replay marks in some 800 ways that a test must notice; minutes
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/mutation.txt
	@rm -rf mutants
	@$(PLAIN) nice -n 10 $(BIN)/mutmut run
	@$(BIN)/mutmut results
	@$(BIN)/mutmut export-cicd-stats
	@$(BIN)/python -c 'import json; s = json.load(open("mutants/mutmut-cicd-stats.json")); \
		score = 100 * (s["killed"] + s["timeout"]) / s["total"]; \
		print("%.1f %% of %d mutants noticed, 95 are asked for" % (score, s["total"])); raise SystemExit(score < 95)'

check: setup ## lint, format, types, schemas
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/bridge schemas check

docs: setup ## write the generated pages: settings, example file and drawings
	@$(BIN)/python -m tools.docs

lock: setup ## write the requirement files anew, with hashes and without addresses
	@$(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header --extra dev --group test -o requirements/dev.txt $(UPGRADE)
	@$(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header -c requirements/dev.txt -o requirements/runtime.txt $(UPGRADE)
	@$(BIN)/uv pip compile --group build --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header -c requirements/dev.txt -o requirements/build.txt $(UPGRADE)
	@$(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header --group mutation \
		-c requirements/dev.txt -o requirements/mutation.txt $(UPGRADE)
	@$(BIN)/uv pip compile examples/quix-join/requirements.in --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header -o examples/quix-join/requirements.txt $(UPGRADE)
	@$(BIN)/uv pip compile benchmarks/requirements.in --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header -c examples/quix-join/requirements.txt \
		-o benchmarks/requirements.txt $(UPGRADE)

clean: ## stop the embedded Kafka and remove everything that make has made here
	@test ! -x $(BIN)/bridge || $(BIN)/bridge dev down
	@rm -rf $(VENV) .bridge-dev build dist *.egg-info *.so .mypy_cache .ruff_cache .pytest_cache .hypothesis mutants
	@find bridge -name '*.so' -delete
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
