# Every target sets up what it needs in .venv: Python 3.11 or later and git are enough; on Windows, GNU make in Git Bash.
# make test DEPS=oldest tests the oldest versions that pyproject.toml allows, in an environment of their own.
DEPS ?= newest
VENV := .venv$(if $(filter oldest,$(DEPS)),-oldest)
ifeq ($(OS),Windows_NT)
SHELL := sh.exe
PYTHON ?= python
BIN := $(VENV)/Scripts
PY := $(BIN)/python.exe
else
PYTHON ?= python3
BIN := $(VENV)/bin
PY := $(BIN)/python
endif
# Many small matrices: one BLAS thread is faster than several.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

# Which tests to run, if not all: make test TESTS=tests/test_ocelad.py
TESTS ?=

.PHONY: demo test check bench docs dist browser browser-ready spark spark-ready clean

demo: $(VENV)/.demo
	$(BIN)/ocelad demo

# Old packages warn of what newer ones, which they were not written for, have in mind.
ifeq ($(DEPS),oldest)
test: $(VENV)/.oldest
	$(PY) -m pytest -n auto --dist worksteal -W default $(TESTS)
else
test: check
	$(PY) -m pytest -n auto --dist worksteal $(TESTS)
endif

check: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.test
	$(PY) benchmarks/speed.py

# The page of ocelad serve in a real browser; Debian's, where it is not there yet.
browser: browser-ready
	$(PY) -m pytest tests/test_serve_browser.py

browser-ready: $(VENV)/.test $(VENV)/.browser
	@command -v chromium chromium-browser google-chrome > /dev/null \
	  || { apt-get update -qq && apt-get install -y -qq chromium > /dev/null; } \
	  || echo "There is no Chromium, and it cannot be installed here: tests of the page are skipped."

# Trackers on Spark itself; Debian's Java, where there is none yet.
spark: spark-ready
	$(PY) -m pytest tests/test_spark.py

spark-ready: $(VENV)/.test $(VENV)/.spark
	@command -v java > /dev/null \
	  || { apt-get update -qq && apt-get install -y -qq default-jre-headless > /dev/null; } \
	  || echo "There is no Java, and it cannot be installed here: the test that runs Spark itself is skipped."

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -q -W -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

# Wheel and source distribution in dist/, checked, and tried in an environment of their own.
dist: $(VENV)/.dist
	rm -rf dist
	$(PY) -m build
	$(PY) -m twine check --strict dist/*
	$(PY) .ci/check_dist.py dist

$(VENV)/.demo: EXTRAS = cli,plots
$(VENV)/.test: EXTRAS = test,check
$(VENV)/.docs: EXTRAS = docs
$(VENV)/.dist: EXTRAS = dist
$(VENV)/.browser: EXTRAS = browser
$(VENV)/.spark: EXTRAS = spark

$(VENV)/.oldest: pyproject.toml | $(PY)
	$(PY) -m pip install --quiet uv
	$(PY) -m uv pip compile --quiet --python $(PY) --resolution lowest-direct --no-build --extra test pyproject.toml -o $(VENV)/oldest.txt
	$(PY) -m uv pip install --quiet --python $(PY) --no-build --requirements $(VENV)/oldest.txt
	$(PY) -m pip install --quiet --no-deps --editable .
	@touch $@

$(VENV)/.%: pyproject.toml | $(PY)
	$(PY) -m pip install --quiet --editable ".[$(EXTRAS)]"
	@touch $@

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit("ocelad needs Python 3.11 or later, %s is %s: try make PYTHON=python3.12 ..." \
	  % (sys.executable, sys.version.split()[0]) if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf .venv .venv-oldest build dist docs/_build demo benchmarks/*.json
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
