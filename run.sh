#!/usr/bin/env bash
# Set-up and run in one command: ./run.sh [flags of the runner] [-- flags for the benchmarks]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/scripts/environment.sh"
ensure_environment run requirements.txt
exec "$VENV/bin/python" "$ROOT/run.py" "$@"
