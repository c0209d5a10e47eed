#!/bin/sh
exec python -m cotenant.bench.ranks "$(dirname "$0")/ddp.py" "$@"
