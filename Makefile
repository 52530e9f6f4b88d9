# Everything a developer runs; `make help` lists it. Needs make and a Python 3.11 or newer, nothing installed beforehand:
# the first use of a target makes .venv and installs what that target needs.

VERSIONS := 3.11 3.12 3.13
ARGS ?=
PY := .venv/bin/python
PYTEST_OPTIONS := -q

# One suite at a time, also under `make -j`: two at once on a small machine disturb each other's timing.
.NOTPARALLEL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help demo test test-all interpreters check bench clean $(addprefix test-,$(VERSIONS))
MAKEFLAGS += --no-print-directory
export PYTHON

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r name text; do \
		printf '%-18s %s\n' "$$name" "$$text"; done
	@printf '\n'
	@printf '  %s\n' 'make PYTHON=/path/to/python3.12 ...       takes that interpreter' \
		'make test ARGS="tests/test_house.py -x"   hands options on'

# `exec` leaves no shell between make and the program, so that Ctrl-C and SIGTERM reach the program itself.
demo: .venv/.ready-hub  ## see one dead target not drag the other down
	@exec $(PY) -m seawall demo $(ARGS)

test: .venv/.ready-dev  ## the whole test suite
	@exec $(PY) -m pytest $(PYTEST_OPTIONS) $(ARGS)

test-all: interpreters $(addprefix test-,$(VERSIONS))  ## the whole suite on Python 3.11, 3.12 and 3.13

check: .venv/.ready-dev  ## ruff and mypy
	@$(PY) -m ruff check .
	@exec $(PY) -m mypy

bench: .venv/.ready-bench  ## Seawall beside its peers, measured in one run
	@exec $(PY) bench/run_all.py $(ARGS)

clean:  ## remove the environments and the caches
	@rm -rf .venv .venv-3.* .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build

# Every missing interpreter is named before the first suite starts, not after ten minutes of the others.
interpreters:
	@tools/venv.sh check $(VERSIONS)

$(addprefix test-,$(VERSIONS)): test-%: .venv-%/.ready-test
	@printf 'Python %s\n' '$*'
	@exec .venv-$*/bin/python -m pytest $(PYTEST_OPTIONS) $(ARGS)

# A stamp is younger than what it was made from; a changed pyproject.toml installs again.
.venv/.ready-hub: pyproject.toml tools/venv.sh
	@tools/venv.sh make .venv any -e '.[hub]'
	@touch $@

# What `dev` installs includes what the demo needs: after `make test`, `make demo` needs no network.
.venv/.ready-dev: pyproject.toml tools/venv.sh
	@tools/venv.sh make .venv any -e '.[all]' --group test --group check
	@touch .venv/.ready-hub $@

.venv/.ready-bench: pyproject.toml tools/venv.sh
	@tools/venv.sh make .venv any -e '.[all]' --group bench
	@touch .venv/.ready-hub $@

.venv-%/.ready-test: pyproject.toml tools/venv.sh
	@tools/venv.sh make .venv-$* $* -e '.[all]' --group test
	@touch $@
