#!/usr/bin/env bash
# Makes the fake WikiText-103, or gets the real one (FAKE_DATASET=0), below $DATA_DIRECTORY, else $BASE/data, else ./workspace/data.
# Flags: --root DIR --size small|full --mirror URL --from DIR (docs/datasets.md)
set -euo pipefail
checkout=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)
export PYTHONPATH="$checkout/common${PYTHONPATH:+:$PYTHONPATH}"
for python in "${VENV:-$checkout/.venv}/bin/python" "$checkout/.venv/bin/python" python; do
    if command -v "$python" > /dev/null; then break; fi
done
exec "$python" -m cotenant.datasets wikitext_103 "$@"
