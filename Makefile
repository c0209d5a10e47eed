# Targets for those who work on Cotenant; those who use it need ./run.sh alone.
VENV ?= .venv

.PHONY: check test test-all vm-test bench gpu-wheels

check: ## format, lint, types
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy

test: ## the checks and the fast tier in three processes, on a machine that has only Python
	./test.sh

test-all: ## the fast tier and the long loops: kills, fuzzing, simulations
	./test.sh -n 2 --dist loadscope --no-loadscope-reorder -m "slow or not slow"

vm-test: ## isolation on cgroup v2 and systemd, in a virtual machine (CONTRIBUTING.md)
	VENV=$(VENV) tests/vm/test.sh

bench: ## what the harness itself costs, side by side (docs/benchmarks.md)
	$(VENV)/bin/python benchmarks/run.py

gpu-wheels: ## packages that a borrowed machine with torch alone lacks, as wheels (docs/gpu.md)
	PYTHON=$(firstword $(wildcard $(VENV)/bin/python) python3) scripts/gpu_wheels.sh
