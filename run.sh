#!/usr/bin/env bash
# Set-up and run in one command: ./run.sh [flags of the runner] [-- flags for the benchmarks]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/scripts/environment.sh"
ensure_environment run requirements.txt
# Python takes Ctrl-C when it is ready for it (cotenant/__main__.py), and so does not lose it while it starts.
start=(env --block-signal=INT,HUP)
# Before coreutils 8.31, as on RHEL 8, env cannot hold signals back.
"${start[@]}" true 2>/dev/null || start=(env)
# -E: PYTHONPATH, PYTHONHOME and the like are for the caller's own programs.
exec "${start[@]}" "$VENV/bin/python" -E "$ROOT/run.py" "$@"
