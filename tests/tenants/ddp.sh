#!/bin/sh
exec python -m torch.distributed.run --nproc_per_node="$DEVICE_TOTAL" --master_addr="$MASTER_ADDR" \
    --master_port="$MASTER_PORT" "$(dirname "$0")/ddp.py" "$@"
