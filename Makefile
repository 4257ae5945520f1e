# UForm: each target brings what it needs. `make demo` searches, `make test` tests, `make lint` looks at the code.
# PYTHON: the interpreter that environments are made with. VENV: where the environment is.
PYTHON ?= python3
VENV ?= .venv
CXX ?= c++
export CXX

python := $(VENV)/bin/python
pip := $(python) -m pip --disable-pip-version-check install --quiet
sources := $(shell find csrc -name '*.cpp' -o -name '*.h' -o -name 'exported.*')
programs := build/demo/programs

.PHONY: help demo build test test-python test-c lint format clean
help:
	@sed -n '2,3s/^# //p' Makefile

demo: build $(programs)
	cd $(dir $(programs)) && $(abspath $(python)) -m uform search --unit file --top 3 \
	    -q "spell checker" -q "learn foreign words" -q "text editor for programmers" $(notdir $(programs))

test: build test-c test-python

test-python: build $(VENV)/.tools
	$(python) -m pytest

# Programs in C and C++ against the sources, and the quick start in C against the installed headers and library.
test-c: build $(VENV)/.tools
	$(MAKE) --no-print-directory -C tests/c check PYTHON=$(abspath $(python))

lint: $(VENV)/.linters build
	$(python) -m ruff check .
	$(python) -m ruff format --check .
	find csrc tests benchmarks -name '*.cpp' -o -name '*.h' -o -name '*.c' | xargs $(VENV)/bin/clang-format --dry-run -Werror
	$(python) -m mypy
	$(python) -m mypy.stubtest uform._uform --allowlist .ci/stubtest.allowlist --ignore-unused-allowlist

format: $(VENV)/.linters
	$(python) -m ruff check --fix .
	$(python) -m ruff format .
	find csrc tests benchmarks -name '*.cpp' -o -name '*.h' -o -name '*.c' | xargs $(VENV)/bin/clang-format -i

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

# What the tests make their files with.
$(VENV)/.tools: $(VENV)/.environment
	.ci/prepare $(PYTHON) ffmpeg espeak-ng
	@touch $@

$(VENV)/.linters: $(VENV)/.environment
	$(pip) $$(sed -n 's/^lint = \[\(.*\)\]$$/\1/p' pyproject.toml | tr -d '",')
	@touch $@

# A file a program, named as it is, so that its name is shown and not searched: the programs that apt knows of, or else
# the packages that are installed, or else the manual's pages.
sections := Section: (editors|education|games|graphics|mail|sound|text|utils|video)$$
$(programs):
	@rm -rf $@.part && mkdir -p $@.part
	@{ /usr/lib/apt/apt-helper cat-file /var/lib/apt/lists/*_Packages* 2>/dev/null | awk -F': ' \
	    '/^Package: / {name = $$2; shown = 0} sub(/^Description: /, "") {text = $$0} /^$(sections)/ {shown = 1} \
	     /^$$/ && shown && name !~ /^lib|-(data|doc|common|dev)/ {print name " - " text}' | sort -u | grep . || \
	   dpkg-query -W -f '$${Package} - $${binary:Summary}\n' 2>/dev/null || apropos .; } | \
	 awk '{gsub("/", "-", $$1); file = "$@.part/" $$1; print substr($$0, index($$0, " - ") + 3) > file; close(file)}'
	@mv $@.part $@

clean:
	rm -rf build dist uform/lib uform/_uform.*.so *.egg-info
