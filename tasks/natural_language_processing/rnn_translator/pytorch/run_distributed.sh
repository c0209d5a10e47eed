#!/usr/bin/env bash
exec python -m cotenant.bench.ranks "$(dirname "${BASH_SOURCE[0]}")/main.py" "$@"
