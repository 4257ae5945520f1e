# UForm: each target brings what it needs. `make demo` searches, `make test` tests, `make lint` looks at the code.
# PYTHON: the interpreter that environments are made with. VENV: where the environment is.
PYTHON ?= python3
VENV ?= .venv
CXX ?= c++
export CXX

python := $(VENV)/bin/python
pip := $(python) -m pip --disable-pip-version-check install --quiet
sources := $(shell find csrc -name '*.cpp' -o -name '*.h' -o -name 'exported.*')
corpus := build/demo/programs.txt

.PHONY: help demo build test test-python test-c lint format clean
help:
	@sed -n '2,3s/^# //p' Makefile

demo: build $(corpus)
	$(python) -m uform search "play chess against the computer" $(corpus)
	$(python) -m uform search "retouch my photos" $(corpus)

test: build test-c test-python

test-python: build
	$(python) -m pytest

# Programs in C and C++ against the sources, and the quick start in C against the installed headers and library.
test-c: build
	$(MAKE) --no-print-directory -C tests/c check PYTHON=$(abspath $(python))

lint: $(VENV)/.linters build
	$(python) -m ruff check .
	$(python) -m ruff format --check .
	find csrc tests -name '*.cpp' -o -name '*.h' -o -name '*.c' | xargs $(VENV)/bin/clang-format --dry-run -Werror
	$(python) -m mypy
	$(python) -m mypy.stubtest uform._uform --allowlist .ci/stubtest.allowlist --ignore-unused-allowlist

format: $(VENV)/.linters
	$(python) -m ruff check --fix .
	$(python) -m ruff format .
	find csrc tests -name '*.cpp' -o -name '*.h' -o -name '*.c' | xargs $(VENV)/bin/clang-format -i

# What builds it is installed first: a build in an environment of pip's own would bring torch again each time.
build: $(VENV)/.built
$(VENV)/.built: $(sources) setup.py $(VENV)/.environment
	$(pip) --no-build-isolation --editable '.[cli,test]'
	@touch $@

$(VENV)/.environment: pyproject.toml
	.ci/prepare $(PYTHON)
	test -x $(python) || $(PYTHON) -m venv $(VENV)
	$(pip) $$(sed -n 's/^requires = \[\(.*\)\]$$/\1/p' pyproject.toml | tr -d '",')
	@touch $@

$(VENV)/.linters: $(VENV)/.environment
	$(pip) $$(sed -n 's/^lint = \[\(.*\)\]$$/\1/p' pyproject.toml | tr -d '",')
	@touch $@

# A line a program: those that apt knows of, or else the packages that are installed, or else the manual's pages.
programs := Section: (editors|education|games|graphics|mail|sound|text|utils|video)$$
$(corpus):
	@mkdir -p $(@D)
	@{ /usr/lib/apt/apt-helper cat-file /var/lib/apt/lists/*_Packages* 2>/dev/null | awk -F': ' \
	    '/^Package: / {name = $$2; shown = 0} sub(/^Description: /, "") {text = $$0} /^$(programs)/ {shown = 1} \
	     /^$$/ && shown && name !~ /^lib|-(data|doc|common|dev)/ {print name " - " text}' | sort -u | grep . || \
	   dpkg-query -W -f '$${Package} - $${binary:Summary}\n' 2>/dev/null || apropos .; } > $@.part
	@mv $@.part $@

clean:
	rm -rf build dist uform/lib uform/_uform.*.so *.egg-info
