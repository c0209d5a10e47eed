#!/bin/sh
# A program of a file here: `programs.sh honest Sam --number 20`.
cd "$(dirname "$0")/.." || exit 1
file=$1
shift
exec python -m "tenants.$file" "$@"
