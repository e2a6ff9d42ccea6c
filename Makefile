# Everything here works on a fresh machine with python3 (3.11 or newer, with venv and headers), make and a C++ compiler.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt $(wildcard kernels/*.cmake kernels/common/* kernels/count/* kernels/model/* kernels/records/*)
CMAKE   := $(shell command -v cmake || echo $(BIN)/cmake)
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: help setup demo test test-engines test-validators docs-blocks lint types audit coverage sanitize test-kernels bench quality wheel check-wheel types-elsewhere man pictures site lock clean

help:
	@echo "make demo    set up and make a synthetic table from sample data"
	@echo "make test    set up, lint, type-check and test"
	@echo "make test-kernels  the kernels' headers by themselves"
	@echo "make test-engines  every method on every database, and what happens when one fails (needs their servers' programs)"
	@echo "make test-validators  what is published, by the validators of its formats, in an environment of their own"
	@echo "make setup   set up .venv and build the kernels"
	@echo "make audit   the long privacy audits"
	@echo "make coverage  which lines the tests reach; fails below a floor"
	@echo "make sanitize  the tests and random calls on kernels with address and undefined-behaviour sanitizers"
	@echo "make bench   speed side by side with peers"
	@echo "make quality error of every method on the field's tables (needs them; long)"
	@echo "make wheel   wheels that install without a compiler, and the sources, in dist/"
	@echo "make check-wheel  those, installed into an empty environment of every Python of this machine"
	@echo "make types-elsewhere  types as Windows and macOS have them"
	@echo "make man     the manual page, completions and the page of all commands, from what the commands say"
	@echo "make docs-blocks  every command and piece of Python in docs/, also those that take long"
	@echo "make pictures  the pictures of README and docs/, from made-up tables (needs Chromium)"
	@echo "make site    the site of docs/ in build/site/, with every link checked"
	@echo "make lock    refresh requirements/*.lock"
	@echo "make clean   remove .venv and everything that was built"

# One recipe for every lock file: a marker stands while an environment is being made, so that a half-made one is noticed.
$(VENV)/ready-%: requirements/%.lock $(SOURCES)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Hedgerow needs python3 3.11 or newer; $(PYTHON) is older. Hint: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@if [ -e $(VENV)/half-made ] || { [ -e $(VENV) ] && ! $(BIN)/python -m pip --version >/dev/null 2>&1; }; then \
	  echo "==> $(VENV) is half made; starting over"; rm -rf $(VENV); fi
	@[ -e $(VENV) ] || { echo "==> making $(VENV)"; $(PYTHON) -m venv $(VENV) \
	  || { rm -rf $(VENV); echo "python3 cannot make a virtual environment; install its venv package"; exit 1; }; }
	@touch $(VENV)/half-made
	@echo "==> installing locked packages ($<)"
	@$(BIN)/python -m pip install -qq --require-hashes -r $<
	@echo "==> building the kernels"
	@$(BIN)/python -m pip install -qq --no-build-isolation --no-deps --editable .
	@rm $(VENV)/half-made
	@touch $@

setup: $(VENV)/ready-run

demo: $(VENV)/ready-run
	@$(BIN)/hedgerow demo

test: $(VENV)/ready-test lint types test-kernels
	@echo "==> tests"
	@{ command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null \
	  || echo "    no Chromium on the path: the tests that open the pages in a browser are skipped"
	@$(BIN)/python -c 'import duckdb, ibis, psycopg, pyspark' 2>/dev/null \
	  || echo "    hedgerow[engines] is not installed: the tests of databases are skipped (make test-engines installs it)"
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null \
	  || echo "    no PostgreSQL server on this machine: its tests are skipped"
	@command -v java >/dev/null || echo "    no Java on the path: the tests of Spark are skipped"
	@$(BIN)/python -m pytest -n 2

test-kernels: $(VENV)/ready-test
	@echo "==> tests of the kernels' headers"
	@mkdir -p build && $(CMAKE) -S kernels/tests -B build/kernel-tests >build/kernel-tests.log && \
	  $(CMAKE) --build build/kernel-tests >>build/kernel-tests.log 2>&1 || { cat build/kernel-tests.log; exit 1; }
	@build/kernel-tests/kernel_tests

test-engines: $(VENV)/ready-engines
	@echo "==> tests of every method on every database"
	@$(BIN)/python -m pytest -n 2 --dist loadfile -m '' -rs tests/private/engines tests/private/sources/test_stores.py tests/private/sources/test_lakes.py tests/laws/test_identity.py

test-validators:
	@$(MAKE) --no-print-directory VENV=build/validators-venv build/validators-venv/ready-validators
	@echo "==> what is published, by the validators of its formats"
	@build/validators-venv/bin/python -m pytest -n 2 -rs tests/publish -k "validators or portals or own_library"

docs-blocks: $(VENV)/ready-engines
	@echo "==> every block of the pages"
	@$(BIN)/python -m pytest -n 2 -m '' tests/docs/test_blocks.py tests/cli/test_habits.py

lint: $(VENV)/ready-test
	@echo "==> lint"
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@if clang-format --version 2>/dev/null | grep -q 'version 14\.'; then \
	  find kernels -name '*.h' -o -name '*.cpp' | xargs clang-format --dry-run --Werror; \
	  else echo "    no clang-format 14 on the path: the format of the kernels is not checked"; fi
	@$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports

types: $(VENV)/ready-test
	@echo "==> types"
	@$(BIN)/mypy

audit: $(VENV)/ready-test
	@$(BIN)/hedgerow audit -o docs/understand/audit.md --overwrite
	@$(BIN)/python -m pytest -n 2 -m audit -v

# In one process, so without what commands do in processes of their own: the floor is below the truth.
coverage: $(VENV)/ready-test
	@$(BIN)/coverage run -m pytest $(COVERED) && $(BIN)/coverage report

# TESTS names other files, CALLS and INPUTS other numbers; SANITIZER=thread looks for data races instead.
# Left out: what starts a browser, a database server or Java, which do not run under a sanitizer's runtime.
SANITIZER ?= address
TESTS     ?= tests --ignore tests/pages/test_browser.py --ignore tests/private/engines/test_databases.py
CALLS     ?= 1000000
INPUTS    ?= 100000
sanitize: $(VENV)/ready-test
	@echo "==> building the kernels with sanitizers ($(SANITIZER))"
	@kernels/sanitized $(SANITIZER) -c 'from hedgerow import _count, _model, _records'
	@echo "==> tests of the kernels' headers"
	@$(CMAKE) -S kernels/tests -B build/sanitize-$(SANITIZER)/tests -DHEDGEROW_SANITIZE=$(SANITIZER) >/dev/null
	@$(CMAKE) --build build/sanitize-$(SANITIZER)/tests >/dev/null && build/sanitize-$(SANITIZER)/tests/kernel_tests
	@echo "==> tests"
	@kernels/sanitized $(SANITIZER) -m pytest -p no:cacheprovider $(TESTS)
	@echo "==> $(CALLS) random calls of the kernels"
	@kernels/sanitized $(SANITIZER) tests/support/kernel_calls.py $(CALLS)
	@echo "==> $(INPUTS) releases of a stranger"
	@kernels/sanitized $(SANITIZER) tests/support/fuzz_releases.py $(INPUTS)

bench: $(VENV)/ready-bench $(VENV)/ready-engines
	@$(BIN)/python -m bench

quality: $(VENV)/ready-test
	@$(BIN)/python -m bench.quality

wheel:
	@$(PYTHON) packaging/wheels.py build

# ONLY=3.12 checks with that Python alone
check-wheel:
	@$(PYTHON) packaging/wheels.py check $(ONLY)

# What mypy sees where the system is another: calls and constants that are missing there.
types-elsewhere: $(VENV)/ready-test
	@for system in win32 darwin; do echo "==> types on $$system"; \
	  $(BIN)/mypy --platform $$system --cache-dir .mypy_cache/$$system -p hedgerow || exit 1; done

man: $(VENV)/ready-run
	@$(BIN)/python -m hedgerow.cli.manual .

pictures: $(VENV)/ready-test
	@$(BIN)/python docs/pictures/make.py

# An environment of its own: what builds the site is no part of Hedgerow.
SITE_VENV := build/site-venv
$(SITE_VENV)/ready: requirements/site.lock
	@rm -rf $(SITE_VENV) && $(PYTHON) -m venv $(SITE_VENV)
	@echo "==> installing locked packages ($<)"
	@$(SITE_VENV)/bin/python -m pip install -qq --require-hashes -r $<
	@touch $@

site: $(SITE_VENV)/ready
	@echo "==> building the site"
	@$(SITE_VENV)/bin/python docs/site/build.py

# needs uv
lock:
	uv pip compile -q pyproject.toml requirements/build.in --extra studio --universal --generate-hashes --no-annotate --no-header --python-version 3.11 -o requirements/run.lock
	uv pip compile -q pyproject.toml requirements/build.in --extra test --universal --generate-hashes --no-annotate --no-header --python-version 3.11 -o requirements/test.lock
	uv pip compile -q pyproject.toml requirements/build.in --extra test --extra bench --universal --generate-hashes --no-annotate --no-header --python-version 3.11 -o requirements/bench.lock
	uv pip compile -q pyproject.toml requirements/build.in --extra test --extra validators --universal --generate-hashes --no-annotate --no-header --python-version 3.11 -o requirements/validators.lock
	uv pip compile -q requirements/site.in --universal --generate-hashes --no-annotate --no-header --python-version 3.11 -o requirements/site.lock
	uv pip compile -q pyproject.toml requirements/build.in --extra test --extra engines --extra lakes --extra servers --universal --generate-hashes --no-annotate --no-header --python-version 3.11 -o requirements/engines.lock
	uv pip compile -q requirements/wheel.in requirements/build.in --universal --generate-hashes --no-annotate --no-header --python-version 3.11 -o requirements/wheel.lock
	uv pip compile -q pyproject.toml requirements/lowest.in --resolution lowest-direct --generate-hashes --no-annotate --no-header --python-version 3.11 -o requirements/lowest.lock

clean:
	rm -rf $(VENV) build dist demo
