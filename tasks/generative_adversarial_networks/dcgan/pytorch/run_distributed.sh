#!/usr/bin/env bash
# One process per device, of $DEVICE_TOTAL or as many as torch sees.
total="${DEVICE_TOTAL:-$(python -c 'import torch; print(torch.accelerator.device_count() or 1)')}" || exit
exec python -m torch.distributed.run --nproc_per_node="$total" --master_addr="${MASTER_ADDR:-127.0.0.1}" --master_port="${MASTER_PORT:-29500}" "$(dirname "${BASH_SOURCE[0]}")/main.py" "$@"
