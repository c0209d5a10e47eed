#!/usr/bin/env bash
# Set-up and tests in one command. Without arguments: the checks and the fast tier, in two processes. Arguments go to
# pytest, which is one process then.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/scripts/environment.sh"
ensure_environment test requirements.txt requirements-test.txt
cd "$ROOT"
if [ $# -eq 0 ]; then
    ruff format --check .
    ruff check .
    mypy
    # Tests of the machine are one group (tests/conftest.py), the longest: it begins first.
    set -- -n 2 --dist loadscope --no-loadscope-reorder
fi
exec "$VENV/bin/python" -m pytest "$@"
