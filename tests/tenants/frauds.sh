#!/bin/sh
exec python "$(dirname "$0")/frauds.py" "$@"
