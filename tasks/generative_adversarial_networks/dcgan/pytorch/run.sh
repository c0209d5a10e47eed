#!/usr/bin/env bash
# One process, or, where it has the machine for itself, one per device: as many as --ngpu says, never more than $DEVICE_TOTAL.
folder="$(dirname "${BASH_SOURCE[0]}")" devices=1 previous=
for word in "$@"; do
    if [ "$previous" = --ngpu ]; then devices="$word"; fi
    previous="$word"
    case "$word" in --ngpu=*) devices="${word#*=}" ;; esac
done
case "$devices" in '' | *[!0-9]*) devices=1 ;; esac
total="${DEVICE_TOTAL:-$devices}"
if [ "${COTENANT_GROUP:-all}" != all ] || [ "$devices" -lt 2 ] || [ "$total" -lt 2 ]; then exec python "$folder/main.py" "$@"; fi
if [ "$devices" -gt "$total" ]; then
    echo "dcgan: --ngpu $devices, but there are $total: those are used." >&2
    devices="$total"
fi
export DEVICE_TOTAL="$devices"
exec "$folder/run_distributed.sh" "$@"
