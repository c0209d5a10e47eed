#!/usr/bin/env bash
# The suite ten times, uid 0..9, for a report that can give intervals over launches.
set -uo pipefail
status=0
for uid in 0 1 2 3 4 5 6 7 8 9; do
    "$(dirname "${BASH_SOURCE[0]}")/run.sh" --uid "$uid" "$@"
    ended=$?
    # Wrong usage, no isolation and an interruption will not be better the next time.
    [ "$ended" -le 1 ] || exit "$ended"
    [ "$ended" -eq 0 ] || status=$ended
done
exit "$status"
