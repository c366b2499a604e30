# `make` lists what there is. Everything runs in .venv, which is set up when it is first needed.
# The first that runs, since a version manager has commands of versions that it has not.
ifndef PYTHON
PYTHON := $(shell for v in 3.11 3.12 3.13; do python$$v -c "" 2>&- && echo python$$v && break; done)
PYTHON := $(or $(PYTHON),python3)
endif
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install -c envs/constraints.txt

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup all report test test-others test-slurm nightly one-of-nightly lint format regenerate regenerate-figure accept images notebooks \
	site train-mini bench bench-gpu fuzz plan profile clean FORCE

help: ## list what there is
	@echo "make figures/fig9.pdf     one figure of the default study (also .svg, .png)"
	@echo "make figures/paper/fig9.pdf   the same from the published checkpoints"
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/make \1|\2/' \
		| awk -F'|' '{printf "%-25s %s\n", $$1, $$2}'
	@echo "With the environment active (. $(BIN)/activate): snakemake, snakemake figures/figD1.svg"

setup: $(VENV)/.installed ## set up .venv with exact versions

$(VENV)/bin/python:
	@$(PYTHON) -c "import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))" || { \
		echo "vitscope: $(PYTHON) is no Python 3.11 to 3.13: name one, as in make setup PYTHON=python3.12" >&2; \
		exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml envs/constraints.txt | $(VENV)/bin/python
	@echo "Setting up $(VENV): two minutes and 1.7 GB on disk with the CPU build of PyTorch; where pip"
	@echo "takes the build for NVIDIA GPUs, as on most Linux machines, several GB are downloaded."
	$(PIP) -e '.[workflow,slurm]'
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "Adding what the tests need to $(VENV): half a minute, and 0.6 GB on disk."
	$(PIP) -e '.[workflow,slurm,dev]'
	@touch $@

figures/% results/%: $(VENV)/.installed FORCE
	$(BIN)/vitscope make $@

all: $(VENV)/.installed ## every figure and table of the default study
	$(BIN)/vitscope make

report: $(VENV)/.installed ## report-STUDY.html: figures, claims, provenance on one page (STUDY=...)
	$(BIN)/vitscope report $(STUDY)

PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

ifdef CHANGED
test: $(VENV)/.installed-dev
	@# Where all that are reached are of the night, none runs (5).
	files=$$($(BIN)/python -m tests.changed $(CHANGED)) && \
	{ [ -z "$$files" ] || $(PYTEST) $$files || [ $$? = 5 ]; }
else
test: $(VENV)/.installed-dev ## run the tests of every change (CHANGED=1: those that yours reaches)
	@# Those of packages beside them: both wait now and then.
	for package in snakemake-executor-plugin-prefork vitscope-scans; do \
		(cd packages/$$package && OMP_NUM_THREADS=1 $(abspath $(BIN))/python -m pytest -q) || exit; \
	done & $(PYTEST); code=$$?; wait $$! && exit $$code
endif

test-others: $(VENV)/.installed-dev ## run those of Slurm, wheels, notebooks and killed runs
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "others and not nightly"

test-slurm: $(VENV)/.installed-dev ## run on a Slurm of two nodes, with faults (Debian, as root)
	tests/slurm/install.sh
	$(BIN)/python -m pytest -m "" tests/slurm

nightly: $(VENV)/.installed-dev ## run all other tests: kills, full disks, dead nodes (some hours)
	tests/slurm/install.sh
	cd packages/snakemake-executor-plugin-prefork && $(abspath $(BIN))/python -m pytest -q -m nightly
	$(BIN)/python -m tests.nightly

one-of-nightly: $(VENV)/.installed-dev ## run one of the eight parts of those, today's, for three minutes
	$(BIN)/python -m tests.nightly --one-for 3

lint: $(VENV)/.installed-dev ## check style, types, the order of imports and workflow
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow rules
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/snakemake --lint

format: $(VENV)/.installed-dev ## format the code, write the generated parts of the docs
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile workflow rules
	VITSCOPE_NO_PACKAGES=1 $(BIN)/python -m vitscope.manual.pages

regenerate-figure: $(VENV)/.installed-dev
	$(BIN)/snakemake figures/$(FIGURE).pdf
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m last_run --mpl --mpl-results-path=results/pixels \
		tests/pixels -k "test_figure and $(FIGURE)]"

ifdef FIGURE
regenerate: regenerate-figure
else
regenerate: $(VENV)/.installed-dev ## make all mini figures, compare tables and pixels (one: FIGURE=fig9)
	$(BIN)/vitscope make
	$(BIN)/snakemake --report report.html
	@# Both are told, whichever fails.
	$(BIN)/python -m tests.compare; tables=$$?; \
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m last_run --mpl --mpl-results-path=results/pixels \
		tests/pixels tests/scopes/test_tables.py && exit $$tables
endif

accept: $(VENV)/.installed-dev ## make the tables and figures of the last run the expected ones
	$(BIN)/python -m tests.compare --accept
	$(BIN)/python -m pytest -q -m last_run --mpl-generate-path=tests/pixels/expected tests/pixels

images: $(VENV)/.installed-dev ## draw the pictures of README.md and docs/ that another study has, and the videos
	$(BIN)/vitscope make figures/cifar100/fig9.png figures/cifar100/overview.png \
		figures/cifar100/without_scale.png figures/walk.webp figures/walk_tokens.webp
	cp figures/cifar100/fig9.png figures/cifar100/without_scale.png docs/images/
	cp figures/cifar100/overview.png docs/images/overview_cifar100.png
	cp figures/walk.webp figures/walk_tokens.webp docs/images/

notebooks: $(VENV)/.installed-dev ## run the notebooks, write what they show
	$(BIN)/python -m tests.notebooks

site: $(VENV)/.installed-dev ## make the documentation as a site: site/index.html
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --fresh-env --write-all -c docs . site

train-mini: $(VENV)/.installed ## train the bundled models again (about an hour on two cores)
	$(BIN)/snakemake train_mini
	$(BIN)/snakemake train_mini_buildup

bench: $(VENV)/.installed-dev ## measure speed and memory, write docs/benchmarks.md
	$(BIN)/python -m bench.run

bench-gpu: $(VENV)/.installed-dev ## measure a CUDA device, write its part of docs/benchmarks.md
	$(BIN)/python -m bench.gpu

fuzz: $(VENV)/.installed-dev ## throw damaged files at every reader, write docs/security.md
	$(BIN)/python -m tests.security.fuzz

plan: $(VENV)/.installed ## tell what all figures cost before anything runs (STUDY=paper, or a file)
	$(BIN)/vitscope plan $(STUDY)

profile: $(VENV)/.installed-dev ## tell where the time of the default study goes
	$(BIN)/python -m bench.profile

clean: ## remove results, figures, logs, the site and Snakemake's records
	rm -rf results figures logs benchmarks site .snakemake report*.html report*.zip

FORCE:
