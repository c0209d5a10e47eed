#!/usr/bin/env bash
# One process per device of each node: as many as --devices says, 0 for all of $DEVICE_TOTAL or, where nobody set that,
# all that torch sees. With --parallel dp one process for all of them.
folder="$(dirname "${BASH_SOURCE[0]}")" devices=0 parallel=ddp previous=
for word in "$@"; do
    case "$previous" in --devices) devices="$word" ;; --parallel) parallel="$word" ;; esac
    previous="$word"
    case "$word" in --devices=*) devices="${word#*=}" ;; --parallel=*) parallel="${word#*=}" ;; esac
done
case "$devices" in '' | *[!0-9]*) devices=none ;; esac
if [ "$devices" = none ] || [ "$devices" -gt "${DEVICE_TOTAL:-$devices}" ]; then
    exec python "$folder/main.py" "$@" # which says what is wrong with it
fi
if [ "$devices" -eq 0 ]; then
    devices="${DEVICE_TOTAL:-$(python -c 'import torch; print(torch.accelerator.device_count() or 1)')}" || exit
fi
if [ "$parallel" = dp ]; then exec python "$folder/main.py" "$@" --devices "$devices"; fi
exec python -m torch.distributed.run --nproc_per_node="$devices" --master_addr="${MASTER_ADDR:-127.0.0.1}" --master_port="${MASTER_PORT:-29500}" "$folder/main.py" "$@" --devices "$devices"
