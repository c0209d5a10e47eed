#!/bin/sh
# A launch of one rank on each of several hosts, without torch: RANK and WORLD_SIZE are what torchrun would make of the nodes.
export RANK="${PET_NODE_RANK:-0}" WORLD_SIZE="${PET_NNODES:-1}" LOCAL_WORLD_SIZE=1
exec "$(dirname "$0")/sums.py" "$@"
