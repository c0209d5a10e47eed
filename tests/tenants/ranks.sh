#!/bin/sh
# `ranks.sh N ...`: one launch of N processes, as torchrun starts them. The status is that of the first that fails.
world=$1
shift
pids=""
rank=0
while [ "$rank" -lt "$world" ]; do
    RANK=$rank WORLD_SIZE=$world "$(dirname "$0")/rogue.py" "$@" &
    pids="$pids $!"
    rank=$((rank + 1))
done
status=0
for pid in $pids; do
    wait "$pid" || status=$?
done
exit "$status"
