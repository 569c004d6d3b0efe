# Every target sets up what it needs in .venv: Python 3.11 or later and git are enough.
PYTHON ?= python3
BIN := .venv/bin
# Many small matrices: one BLAS thread is faster than several.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: demo test check bench docs browser browser-ready spark spark-ready clean

demo: .venv/.demo
	$(BIN)/ocelad demo

test: check
	$(BIN)/python -m pytest -n auto --dist worksteal

check: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/.test
	$(BIN)/python benchmarks/speed.py

# The page of ocelad serve in a real browser; Debian's, where it is not there yet.
browser: browser-ready
	$(BIN)/python -m pytest tests/test_serve_browser.py

browser-ready: .venv/.test .venv/.browser
	@command -v chromium chromium-browser google-chrome > /dev/null \
	  || { apt-get update -qq && apt-get install -y -qq chromium > /dev/null; } \
	  || echo "There is no Chromium, and it cannot be installed here: tests of the page are skipped."

# Trackers on Spark itself; Debian's Java, where there is none yet.
spark: spark-ready
	$(BIN)/python -m pytest tests/test_spark.py

spark-ready: .venv/.test .venv/.spark
	@command -v java > /dev/null \
	  || { apt-get update -qq && apt-get install -y -qq default-jre-headless > /dev/null; } \
	  || echo "There is no Java, and it cannot be installed here: the test that runs Spark itself is skipped."

docs: .venv/.docs
	$(BIN)/sphinx-build -q -W -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

.venv/.demo: EXTRAS = cli,plots
.venv/.test: EXTRAS = test,check
.venv/.docs: EXTRAS = docs
.venv/.browser: EXTRAS = browser
.venv/.spark: EXTRAS = spark

.venv/.%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[$(EXTRAS)]"
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("ocelad needs Python 3.11 or later, %s is %s: try make PYTHON=python3.12 ..." \
	  % (sys.executable, sys.version.split()[0]) if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv

clean:
	rm -rf .venv build dist docs/_build demo benchmarks/*.json
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
