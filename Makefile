# Every target that runs something first brings .venv up to date; that takes well under a second
# when nothing has changed. `make help` lists the targets from their ## comments.

PYTHON ?= /usr/bin/python3
# Folder with the raw measurements that the shipped profiles are fitted from; not part of the checkout.
DATA ?= ../shared/data
HOST ?= 127.0.0.1
# How long each fuzzer runs.
SECONDS ?= 60
SOAK_SECONDS ?= 600
PORT ?= 8080

BIN := .venv/bin
export PYTHON
# Bytecode is kept: each test worker would else rewrite all tests, and each started process compile.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup core demo lab-demo test test-slow test-long test-lab test-qemu test-fresh image fuzz fuzz-api bench soak siege lint audit format profiles figures screenshots cards docs wheel deb serve lock notices clean

help: ## list every target
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: ## install what is missing: Debian packages where allowed, .venv, this project, its core
	@scripts/setup.sh

core: ## compile what has changed in the native parts (setup does so too)
	@scripts/build_core.sh

demo: setup ## answer the main question for the shipped example, with a picture in build/demo
	@mkdir -p build/demo
	$(BIN)/iojoule recommend --device samsung-980-pro-1tb --workload examples/page-reads.toml \
		--plot build/demo/page-reads-pareto.svg

lab-demo: setup ## measure, fit and recommend on a virtual drive, end to end (needs root)
	@scripts/lab_demo.sh

test: setup ## linters, types, import layers and all tests but the slow ones
	@scripts/check.sh

# What measures on virtual disks needs half a core and the right moment: three files at a time, and beside
# them, on one core and with a session of its own (Linux shares cores among sessions before it looks at
# nice), what only computes. Who starts processes with sessions of their own, as the service does, would
# wait for them there. The rest follows, beginning with what takes longest.
LABS := lab_demo idle_lab observe_lab acting faults power_limit_lab fleet_replay_lab govern_lab
WAITING := $(LABS:%=tests/end_to_end/test_%.py) tests/measure
BESIDE := tests/sim tests/model tests/recommender tests/api/validating
REST := tests/end_to_end $(filter-out tests/end_to_end tests/__pycache__ $(WAITING) $(BESIDE),$(patsubst %/.,%,$(wildcard tests/*/.)) $(wildcard tests/test_*.py))
SLOW := $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder -m "slow and not soak"
test-slow: setup ## the tests that compute for long, run whole programs or a browser
	@mkdir -p build; core=$$(taskset -cp $$$$ | grep -o '[0-9]*$$'); \
	setsid sh -c 'echo 19 >/proc/self/autogroup; exec nice -n 19 taskset -c $$0 $(SLOW) $(BESIDE)' $$core \
		>build/beside.log 2>&1 & \
	beside=$$!; trap 'kill $$beside; exit 130' INT TERM; failed=; \
	$(SLOW) -n 3 $(WAITING) || failed=1; \
	tail -n +1 -f --pid=$$beside build/beside.log; \
	wait $$beside || failed=1; [ -z "$$failed" ]
	$(SLOW) -n 3 $(patsubst %,--ignore=%,$(WAITING) $(BESIDE)) $(REST)

test-long: setup ## every test that takes minutes, those of test-lab and fuzz-api too (some hours)
	$(BIN)/python -m pytest -m soak

test-lab: setup ## the virtual drive at length: fio against its record, rehearsals, characterising (6 min)
	$(BIN)/python -m pytest -m soak tests/measure tests/end_to_end/test_characterise_lab.py

test-qemu: setup ## a campaign on an emulated NVMe drive under Linux' own driver (installs QEMU)
	@scripts/qemu_lab.sh

image: setup ## build the container image and try it; writes its SBOM (needs root and buildah)
	@scripts/image.sh

test-fresh: ## demo and test in a new minimal Debian 12, as root and as a plain user (needs root)
	@scripts/test_fresh.sh

fuzz: setup ## every fuzzer for SECONDS each (needs clang++)
	@scripts/fuzz.sh $(SECONDS)

fuzz-api: setup ## requests by the thousand, made from the service's own description (10 min)
	$(BIN)/python -m pytest -s -m soak tests/end_to_end/test_api_fuzz.py

bench: setup ## the time and memory budgets
	$(BIN)/python -m pytest -m bench -s tests/bench

soak: setup ## the service under mixed load for SOAK_SECONDS (ten minutes)
	SOAK_SECONDS=$(SOAK_SECONDS) $(BIN)/python -m pytest -m bench -s tests/bench/test_service_soak.py

siege: setup ## the same load and all known attacks beside it for SOAK_SECONDS
	SOAK_SECONDS=$(SOAK_SECONDS) $(BIN)/python -m pytest -m bench -s tests/bench/test_service_siege.py

lint: setup ## linters, types and import layers only
	@scripts/check.sh lint

# Not part of .ci/run: it needs the advisories of PyPI and npm, which mirrors of them do not have.
# --strict: a package that could not be looked up is a failure and not a pass.
audit: ## look up known vulnerabilities of what is pinned (needs pip-audit: pip install pip-audit)
	@command -v pip-audit >/dev/null || { echo "make audit needs pip-audit on the PATH: pip install pip-audit" >&2; exit 1; }
	pip-audit --strict --disable-pip --require-hashes --requirement requirements.txt
	cd api/page && npm audit --omit=dev

format: setup ## rewrite the sources the way the linters want them
	$(BIN)/ruff check --quiet --fix-only .
	$(BIN)/ruff format --quiet .

profiles: setup ## fit the shipped profiles again from the raw measurements in DATA
	$(BIN)/iojoule fit --shipped --data $(DATA)

figures: setup ## draw the committed pictures again
	@mkdir -p docs
	$(BIN)/iojoule recommend --device samsung-980-pro-1tb --workload examples/page-reads.toml \
		--plot docs/page-reads-pareto.svg
	@rm -f build/what-if-growth.parquet
	$(BIN)/iojoule what-if sweep --device samsung-980-pro-1tb --workload examples/page-reads.toml \
		--axis growth=0.25,0.5,0.75,1,1.1,1.2 --out build/what-if-growth.parquet --plot docs/what-if-growth.svg
	$(BIN)/python scripts/gallery.py

screenshots: setup ## take the pictures of the page again (docs/screens)
	$(BIN)/python scripts/screenshots.py

cards: setup ## write the model cards of the shipped profiles into build/cards
	@mkdir -p build/cards
	@for profile in datasets/profiles/*.json; do \
		$(BIN)/iojoule profile report $$profile -o build/cards || exit $$?; \
	done

docs: setup ## build the documentation site, build/docs/site, without network; broken links fail
	@$(BIN)/python scripts/build_docs.py

wheel: setup ## build dist/*.whl with the page and the manual pages
	@$(BIN)/python scripts/build_man.py
	@$(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

deb: wheel ## build dist/*.deb, iojoule with its service in /opt/iojoule (needs debhelper)
	@scripts/deb.sh

serve: setup ## the HTTP service on HOST:PORT
	$(BIN)/iojoule serve --host $(HOST) --port $(PORT)

# --universal: one file for every Python from 3.11 on. No annotations, header or index: the file
# must hold no address.
LOCK := uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	--no-annotate --no-header --no-emit-index-url --no-emit-find-links
lock: ## pin the newest versions that fit into requirements.txt (needs uv: pip install uv)
	@command -v uv >/dev/null || { echo "make lock needs uv on the PATH: pip install uv" >&2; exit 1; }
	$(LOCK) --fork-strategy fewest --all-extras pyproject.toml requirements-dev.in --output-file requirements.txt
	echo cyclonedx-bom | $(LOCK) - --output-file deploy/requirements-sbom.txt

notices: setup ## write NOTICES.md again: what is pinned, and under which licences
	@$(BIN)/python scripts/notices.py

clean: ## remove .venv, build products and caches
	rm -rf .venv build dist .hypothesis .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
