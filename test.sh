#!/usr/bin/env bash
# Set-up and tests in one command. Without arguments: the checks and the fast tier, in three processes. Arguments go to
# pytest, which is one process then.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/scripts/environment.sh"
ensure_environment test requirements.txt requirements-test.txt
# A shared environment has the package of one checkout installed; this checkout's must come first.
export VENV PATH="$VENV/bin:$PATH" PYTHONPATH="$ROOT/common"
unset PYTHONHOME
# The null device of tests/device is C; where nothing else compiles it, zig does.
if [ ! -d gpu-wheels ] && ! command -v gcc cc clang >/dev/null && ! "$VENV/bin/python" -c "import ziglang" 2>/dev/null; then
    packages ziglang==0.16.0 || fail "There is no C compiler, and ziglang could not be installed: install gcc."
fi
cd "$ROOT"
if [ $# -eq 0 ]; then
    ruff format --check .
    ruff check .
    mypy
    # Hundreds of processes import the package: without bytecode each of them would compile it.
    python -m compileall -q common
    # Tests of the machine are one group (tests/conftest.py), the longest: it begins first, and waits for a fifth of its
    # time, in which a third process can work.
    set -- -n 3 --dist loadscope --no-loadscope-reorder
fi
exec "$VENV/bin/python" -m pytest "$@"
