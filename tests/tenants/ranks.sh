#!/bin/bash
# `ranks.sh N ...`: one launch of N processes, as torchrun starts them: the first that fails ends the others.
world=$1
shift
for ((rank = 0; rank < world; rank++)); do
    RANK=$rank WORLD_SIZE=$world "$(dirname "$0")/rogue.py" "$@" &
done
status=0
for ((rank = 0; rank < world; rank++)); do
    wait -n && continue
    status=$?
    # shellcheck disable=SC2046  # one word a process
    kill $(jobs -p) 2>/dev/null
    break
done
wait
exit "$status"
