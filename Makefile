# All commands of this project; CI uses the same. `make` lists them.

PYTHON ?= python3
JOBS   ?= 2
# Tests wait, those on Kafka most of the time, so they have more processes than cores. Each of Kafka's has a cluster.
more       = $(if $(filter 1,$(JOBS)),1,$(shell expr $(JOBS) + $(1)))
KAFKA_JOBS := $(call more,2)
OTHER_JOBS := $(call more,1)
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.set-up
# Less than that: what runs here, as plain Python.
RUNS   := $(VENV)/.runs
PEERS  := $(VENV)/bench
# The modules that setup.py compiles. A compiled module older than its source would hide the source.
COMPILED := $(shell sed -n 's/^    "\(bridge\/.*\.py\)",$$/\1/p' setup.py)

LOCKS = $(patsubst %,requirements/%.txt,$(1))
# Installs the packages of $(1), then the checkout, with $(2) in its environment. pip says nothing for a minute; its
# temporary files count for the MB.
PIP     = $(BIN)/python -m pip install --quiet --disable-pip-version-check
INSTALL = mkdir -p $(VENV)/tmp && export TMPDIR=$(abspath $(VENV)/tmp); \
	while sleep 4 >/dev/null 2>&1 && kill -0 $$$$; do \
		echo "  $$(du -sm $(VENV) | cut -f1) MB, $$(ls -d $(VENV)/lib/*/site-packages/*.dist-info 2>/dev/null | wc -l) packages"; done & \
	{ test -x $(BIN)/python || $(PYTHON) -m venv $(VENV); } && \
	$(PIP) --no-compile --require-hashes $(addprefix -r ,$(call LOCKS,$(1))) && \
	$(2) $(PIP) --no-deps --no-build-isolation -e . -e sandbox; \
	code=$$?; kill $$!; rm -rf $(VENV)/tmp; exit $$code

# Makes the environment of a tool, of $(1), from the lock file that the target needs.
ENVIRONMENT = echo "setting up $(@D)$(1)" >&2 && { test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D); } && \
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $< && touch $@

# The joins in examples, and what is installed for those engines that need an environment or packages of their own.
ENGINES := $(patsubst examples/%/run.py,%,$(wildcard examples/*/run.py))
SET_UP   = $(patsubst examples/%/,$(VENV)/%/.set-up,$(dir $(wildcard $(1:%=examples/%/requirements.txt) $(1:%=examples/%/package.json))))

# The modules that decide and do no I/O, by name.
CORES := $(shell sed -n '/^CORES = /,/^]/s/^    "\(.*\)",$$/\1/p' tests/repo/test_imports.py)
comma := ,
space := $(subst ,, )

COMPUTING := tests/virtual tests/property tests/unit
# The suites of the compiled modules, by name.
OF_COMPILED := $(foreach module,$(COMPILED),$(foreach name,$(basename $(notdir $(module))), \
	$(wildcard $(patsubst bridge/%,tests/unit/%,$(dir $(module)))test_$(name)*.py tests/property/test_$(name)*.py)))
# After a command: with ARGS, this part may have no tests (pytest's exit code 5).
OR_NONE := $(if $(ARGS),|| test $$? -eq 5)
# Runs a command and prints its output at the end, under a heading.
REPORT = said=$$($(1) 2>&1 $(OR_NONE)); code=$$?; printf '\n%s\n%s\n' "$(2)" "$$said"; exit $$code

# What is linted by tests: kustomize and its schemas, promtool, the checks of a Containerfile.
LINTED := $(addprefix tests/repo/,test_k8s.py test_overlays.py test_network_policies.py test_custom_resources.py \
	test_containerfile.py test_systemd.py \
	test_observe.py::test_prometheus_takes_the_rules \
	test_observe.py::test_prometheus_takes_the_queries_of_the_dashboard \
	test_observe.py::test_panels_lie_within_the_grid_and_not_on_each_other \
	test_metrics_documented.py::test_no_other_metric_is_mentioned \
	test_docs.py::test_a_generated_file_is_up_to_date)

VERSION  = $(shell $(PYTHON) -c 'import bridge; print(bridge.__version__)')
# The name that k8s/overlays/dev has, and one of this commit alone.
IMAGE   ?= settlement-bridge:$(firstword $(subst +, ,$(VERSION))) settlement-bridge:$(subst +,-,$(VERSION))
BUILDER ?= $(firstword $(foreach tool,buildah podman docker,$(if $(shell command -v $(tool)),$(tool))))

LOCK = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-annotate --no-header $(UPGRADE)
# Each of these files has only what those before it lack.
LOCKED  = $(addprefix -c ,$(call LOCKS,runtime sandbox dev))
BESIDE  = $(addprefix -c ,$(call LOCKS,$(1))) \
	$$(sed -n 's/^\([a-z0-9-]*\)==.*/--no-emit-package \1/p' $(call LOCKS,$(1)))

# Before a command: it and its children run compiled modules as plain Python.
PLAIN  := PYTHONPATH=$(CURDIR)/tests/plain

# pytest compiles the tests for each process anew where bytecode is not kept.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup docs demo example examples clients quix-join test test-long test-kafka test-computing test-plain test-unit test-pythons bench bench-check flame chaos mutants coverage check check-types check-linted cluster screenshots sbom release image image-test site lock clean

help: ## print this list
	@awk -F ':.*## ' '/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  make %-13s", $$1; count = split($$2, words, " "); at = 20; \
			for (i = 1; i <= count; i++) { \
				if (at + length(words[i]) >= 100) {printf "\n%20s", ""; at = 20}; \
				printf "%s%s", (at > 20 ? " " : ""), words[i]; at += length(words[i]) + 1 }; \
			print ""}' $(MAKEFILE_LIST)

##@ Try it

setup: $(STAMP) ## install everything into .venv; the command is then .venv/bin/bridge
	@$(if $(filter command line,$(origin PYTHON)),test "$$($(PYTHON) -V)" = "$$($(BIN)/python -V)" || \
		{ echo "error: the Python of $(VENV) is not $(PYTHON); run make clean or choose another VENV=.venv-other" >&2; exit 1; })

$(STAMP): $(RUNS) $(call LOCKS,runtime sandbox dev) $(COMPILED)
	@echo "adding to $(VENV) what tests and examples need, 900 MB more, and compiling; minutes"
	@$(call INSTALL,runtime sandbox dev,BRIDGE_MUST_COMPILE=1)
	@$(BIN)/python -m compileall -q -j 0 $(VENV)/lib >/dev/null || true  # warnings of these sources would fail tests
	@$(BIN)/python -c 'from bridge.avro.encoder import compiled; \
		compiled() or print("note: no working C compiler or no Python headers, so the hot path runs as slower plain Python. After installing them: make -B setup. For the error: $(BIN)/python -m pip install -v --no-deps --no-build-isolation -e .")'
	@touch $@
	@echo "$(BIN)/bridge is ready"

$(RUNS): pyproject.toml setup.py sandbox/pyproject.toml sandbox/setup.py $(call LOCKS,runtime sandbox)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error: Python 3.11 or newer is required; choose one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "error: this Python cannot make virtual environments; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@echo "setting up $(VENV), 240 MB"
	@$(call INSTALL,runtime sandbox)
	@touch $@

# Python installed beside what `make setup` compiled would hide it.
demo: $(if $(wildcard $(STAMP) bridge__mypyc*.so),setup,$(RUNS)) ## run everything on this machine, live; SECONDS=20 limits the time, KILLS=5 kills the bridge five times
	@$(BIN)/bridge demo $(if $(SECONDS),--seconds $(SECONDS)) $(if $(KILLS),--kills $(KILLS)) $(if $(RATE),--rate $(RATE))

example: setup $(call SET_UP,$(ENGINE)) ## run a join of bets and names, live; ENGINE=kafka-streams chooses it, SECONDS=60 limits the time, BETS=1000 compares its output with the truth
	@$(BIN)/python -m examples $(ENGINE) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(BETS),--bets $(BETS))

examples: setup $(call SET_UP,$(ENGINES)) ## compare what each join makes of 10,000 bets with the truth; BETS=1000 is quicker; needs Go and npm
	@$(BIN)/python -m examples $(ENGINES) --bets $(or $(BETS),10000)

clients: setup $(VENV)/clients/.set-up ## let clients in six languages read odd bets, and compare each field; rewrites the table in docs/reading.md, exit 1 if a row changes; needs Go, Rust and npm; CLIENT=go runs those whose path has it
	@for tool in go cargo npm; do command -v $$tool >/dev/null || { echo "error: $$tool is not installed" >&2; exit 1; }; done
	@$(BIN)/python -m clients $(CLIENT)

$(VENV)/clients/.set-up: clients/python/requirements.txt
	@$(call ENVIRONMENT)

quix-join: ## the same as example ENGINE=quix-join
	@$(MAKE) --no-print-directory example ENGINE=quix-join

$(VENV)/%/.set-up: examples/%/requirements.txt
	@$(call ENVIRONMENT)

$(VENV)/%/.set-up: examples/%/package.json
	@command -v npm >/dev/null || { echo "error: npm is not installed" >&2; exit 1; }
	@echo "setting up $(<D)" >&2 && cd $(<D) && npm install --no-audit --no-fund --no-package-lock --silent
	@mkdir -p $(@D) && touch $@

##@ Test

# Tests on Kafka mostly wait, so the others run beside them at a lower priority. ARGS chooses among all of them.
test: setup ## run the tests, on a real Kafka and a real registry; JOBS=1 runs one at a time
	@$(MAKE) --no-print-directory --jobs=$(JOBS) test-kafka test-computing $(if $(ARGS),,WHICH='-m "not long"')

test-long: setup ## run the tests that take long, and those of compiled modules as plain Python
	@$(MAKE) --no-print-directory --jobs=$(JOBS) test-kafka test-computing test-plain $(if $(ARGS),,WHICH='-m long') \
		KAFKA_JOBS=$(call more,3) OTHER_JOBS=$(JOBS)  # most of them wait

test-kafka: setup
	@$(BIN)/python -m pytest -n $(KAFKA_JOBS) --dist loadgroup tests/faults tests/integration $(WHICH) $(ARGS) $(OR_NONE)

test-computing: setup
	@$(call REPORT,nice $(BIN)/python -m pytest -n $(OTHER_JOBS) $(COMPUTING) tests/repo $(WHICH) $(ARGS),tests that need no Kafka)

test-plain: setup
	@$(call REPORT,$(PLAIN) nice $(BIN)/python -m pytest -n $(JOBS) $(OF_COMPILED) $(ARGS),tests of compiled modules as plain Python)

test-unit: setup ## run the tests that need no Kafka
	@$(BIN)/python -m pytest -n $(JOBS) $(COMPUTING) tests/repo $(ARGS)

test-pythons: ## run them on each supported Python that is found
	@for version in 3.11 3.12 3.13; do \
		if python$$version -V >/dev/null 2>&1; then \
			echo "Python $$version" && $(MAKE) --no-print-directory test-unit PYTHON=python$$version VENV=.venv-$$version || exit; \
		else echo "Python $$version is not found" >&2; fi; \
	done

##@ Measure and attack

bench: setup $(if $(filter catchup,$(or $(BENCH),catchup)),$(if $(findstring quix,$(or $(CONTENDERS),quix)),$(PEERS)/.set-up)) ## measure the bridge and other programs; BENCH=catchup runs one benchmark, ROUNDS=1 is quick, BASELINE=write stores the ratios
	@$(BIN)/python -m benchmarks $(BENCH) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(MESSAGES),--messages $(MESSAGES)) \
		$(if $(SECONDS),--seconds $(SECONDS)) $(if $(RATES),--rates $(RATES)) $(if $(CONTENDERS),--contenders "$(CONTENDERS)") $(if $(BUILD),--build "$(BUILD)") \
		$(if $(filter write,$(BASELINE)),--write-baseline)

bench-check: setup ## fail if a ratio of catch-up or of a step has fallen by more than a fifth; takes minutes
	@$(BIN)/python -m benchmarks --check

flame: setup ## draw the flame graph of catch-up, docs/performance/flame.svg
	@$(BIN)/python -m benchmarks.flame

$(PEERS)/.set-up: benchmarks/requirements.txt
	@$(call ENVIRONMENT,$(comma) about 140 MB)

chaos: setup ## run long fault campaigns; CAMPAIGN=kills runs one, MESSAGES, KILLS, TERMS, TIMES, FAULT, FAULTS, ROUNDS, SECONDS and SEED change it
	@$(BIN)/python -m pytest -s -o faulthandler_timeout=0 $(or $(wildcard tests/chaos/test_$(CAMPAIGN).py),tests/chaos $(addprefix -k ,$(CAMPAIGN))) $(ARGS)

mutants: setup ## run mutation tests of rate limits, position, deduplicator and eviction horizon; takes minutes
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/mutation.txt
	@rm -rf mutants
	@$(PLAIN) nice -n 10 $(BIN)/mutmut run
	@$(BIN)/mutmut results
	@$(BIN)/mutmut export-cicd-stats
	@$(BIN)/python -c 'import json; s = json.load(open("mutants/mutmut-cicd-stats.json")); \
		score = 100 * (s["killed"] + s["timeout"]) / s["total"]; \
		print("%.1f %% of %d mutants killed, 95 required" % (score, s["total"])); raise SystemExit(score < 95)'

##@ Check, build and generate

sbom: setup ## write the bill of materials of all that runs in production, dist/sbom.cdx.json (CycloneDX)
	@$(BIN)/python -m tools.sbom

release: setup site ## build wheels, sdists, bill of materials and site into dist, and prove each; FROM=v0.2.0 also upgrades from a commit and rolls back; takes minutes
	@$(BIN)/python -m tools.release $(if $(FROM),--from $(FROM))

coverage: setup ## measure which lines and branches of the cores the unit and property tests run; takes minutes
	@$(PLAIN) nice $(BIN)/coverage run --branch --source=$(subst $(space),$(comma),$(CORES)) -m pytest tests/unit tests/property $(ARGS)
	@$(BIN)/coverage report --show-missing

check: setup ## run lint, format, types, schemas, and the linters of manifests, rules, dashboard and image file
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/bridge schemas check
	@$(MAKE) --no-print-directory --jobs=$(JOBS) check-types check-linted

check-types:
	@$(BIN)/mypy

check-linted:
	@$(call REPORT,$(BIN)/python -m pytest -q -n $(JOBS) $(LINTED),linted)

cluster: setup ## apply the manifests to a Kubernetes API server, built from its sources; needs Go, the first build takes minutes
	@command -v go >/dev/null || { echo "error: go is not installed" >&2; exit 1; }
	@cd tests/kubernetes && go build -buildvcs=false -o $(CURDIR)/.kubernetes/kubernetes .
	@$(BIN)/python -m pytest tests/kubernetes $(ARGS)

screenshots: setup ## take the screenshots of the status pages in docs/images again; needs chromium
	@$(PLAIN) $(BIN)/python -m tests.screenshots $(ARGS)

image: ## build the container image with buildah, podman or docker; IMAGE=registry.example/bridge:1 names it
	@test -n "$(BUILDER)" || { echo "error: none of buildah, podman and docker is installed" >&2; exit 1; }
	@$(BUILDER) build -f Containerfile --build-arg VERSION=$(VERSION) $(addprefix -t ,$(sort $(IMAGE))) .

image-test: setup ## build the image from Debian's packages and run it, in about five minutes; needs root, buildah and debootstrap
	@for tool in buildah debootstrap; do command -v $$tool >/dev/null || \
		{ echo "error: $$tool is required; on Debian: apt-get install buildah debootstrap" >&2; exit 1; }; done
	@$(BIN)/python -m pytest tests/image $(ARGS)

docs: setup ## generate settings pages, the example file, the list of licences and drawings
	@$(BIN)/python -m tools.docs

site: $(VENV)/site/.set-up ## build the pages as a site that needs no network, site/index.html; a broken link fails
	@$(VENV)/site/bin/python -m tools.site

$(VENV)/site/.set-up: requirements/site.txt
	@$(call ENVIRONMENT,$(comma) about 170 MB)

lock: setup ## regenerate the requirement files, with hashes and without index addresses
	@$(LOCK) pyproject.toml -o requirements/runtime.txt
	@echo settlement-bridge | $(LOCK) --excludes /dev/stdin sandbox/pyproject.toml --extra cluster \
		--group pyproject.toml:checkout $(call BESIDE,runtime) -o requirements/sandbox.txt
	@$(LOCK) pyproject.toml --extra parquet --group test $(call BESIDE,runtime sandbox) -o requirements/dev.txt
	@$(LOCK) --group build $(LOCKED) -o requirements/build.txt
	@$(LOCK) pyproject.toml --group mutation $(LOCKED) -o requirements/mutation.txt
	@$(LOCK) --group sbom $(LOCKED) -o requirements/sbom.txt
	@$(LOCK) --group site -o requirements/site.txt
	@$(LOCK) examples/flink-sql/requirements.in -o examples/flink-sql/requirements.txt
	@$(LOCK) examples/quix-join/requirements.in -o examples/quix-join/requirements.txt
	@$(LOCK) clients/python/requirements.in -o clients/python/requirements.txt
	@$(LOCK) benchmarks/requirements.in -c examples/quix-join/requirements.txt -o benchmarks/requirements.txt

clean: ## stop the embedded Kafka and remove everything that make has created
	@test ! -x $(BIN)/bridge || $(BIN)/bridge dev down || true
	@rm -rf .venv .venv-* .bridge-dev .chaos .clients .kubernetes examples/*/node_modules build dist site *.egg-info sandbox/build sandbox/*.egg-info *.so .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis mutants
	@find bridge -name '*.so' -delete
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
