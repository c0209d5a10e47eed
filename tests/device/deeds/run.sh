#!/usr/bin/env bash
exec python "$(dirname "${BASH_SOURCE[0]}")/main.py" "$@"
