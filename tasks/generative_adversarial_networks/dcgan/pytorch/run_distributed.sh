#!/usr/bin/env bash
exec python -m torch.distributed.run --nproc_per_node="${DEVICE_TOTAL:-1}" --master_addr="${MASTER_ADDR:-127.0.0.1}" --master_port="${MASTER_PORT:-29500}" "$(dirname "${BASH_SOURCE[0]}")/main.py" "$@"
