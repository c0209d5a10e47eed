#!/usr/bin/env bash
# One process per device: as many as --devices says, 0 for all of $DEVICE_TOTAL.
total="${DEVICE_TOTAL:-1}" devices=0 previous=
for word in "$@"; do
    if [ "$previous" = --devices ]; then devices="$word"; fi
    previous="$word"
    case "$word" in --devices=*) devices="${word#*=}" ;; esac
done
case "$devices" in '' | *[!0-9]*) devices=none ;; esac
if [ "$devices" = none ] || [ "$devices" -gt "$total" ]; then
    DEVICE_TOTAL="$total" exec python "$(dirname "${BASH_SOURCE[0]}")/main.py" "$@" # which says what is wrong with it
fi
if [ "$devices" -eq 0 ]; then devices="$total"; fi
exec python -m torch.distributed.run --nproc_per_node="$devices" --master_addr="${MASTER_ADDR:-127.0.0.1}" --master_port="${MASTER_PORT:-29500}" "$(dirname "${BASH_SOURCE[0]}")/main.py" "$@" --devices "$devices"
