#!/usr/bin/env bash
# Set-up and tests in one command. Without arguments: the checks and the fast tier. Arguments go to pytest.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/scripts/environment.sh"
ensure_environment test requirements.txt requirements-test.txt
cd "$ROOT"
if [ $# -eq 0 ]; then
    ruff format --check .
    ruff check .
    mypy
fi
exec "$VENV/bin/python" -m pytest "$@"
