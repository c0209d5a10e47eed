#!/bin/sh
exec python "$(dirname "$0")/mistakes.py" "$@"
