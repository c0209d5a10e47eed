#!/usr/bin/env bash
# ./test.sh several times beside one endless loop on each processor, as on a shared runner: no test may fail by load.
#   tests/beside_load.sh [TIMES]      5 by default; exit status 1 if a run failed
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
loops=() failed=0
trap 'kill "${loops[@]}" 2>/dev/null || true' EXIT
for processor in $(seq 0 $(($(nproc) - 1))); do
    taskset -c "$processor" bash -c 'while :; do :; done' &
    loops+=($!)
done
for run in $(seq "${1:-5}"); do
    begin=$SECONDS status=0
    "$root/test.sh" || status=$?
    echo "run $run beside ${#loops[@]} loops: exit status $status after $((SECONDS - begin)) s"
    failed=$((failed + (status > 0)))
done
exit $((failed > 0))
