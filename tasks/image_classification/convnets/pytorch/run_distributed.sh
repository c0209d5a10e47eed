#!/usr/bin/env bash
# One process per device, of $DEVICE_TOTAL or as many as torch sees; with --parallel dp one process for all of them.
parallel=ddp previous=
for word in "$@"; do
    if [ "$previous" = --parallel ]; then parallel="$word"; fi
    previous="$word"
    case "$word" in --parallel=*) parallel="${word#*=}" ;; esac
done
if [ "$parallel" = dp ]; then exec python "$(dirname "${BASH_SOURCE[0]}")/main.py" "$@"; fi
total="${DEVICE_TOTAL:-$(python -c 'import torch; print(torch.accelerator.device_count() or 1)')}" || exit
exec python -m torch.distributed.run --nproc_per_node="$total" --master_addr="${MASTER_ADDR:-127.0.0.1}" --master_port="${MASTER_PORT:-29500}" "$(dirname "${BASH_SOURCE[0]}")/main.py" "$@"
