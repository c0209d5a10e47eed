#!/usr/bin/env bash
# Isolation on cgroup v2, in a virtual machine: two boots, of half an hour where it is emulated. `make vm-test` calls it.
#   tests/vm/test.sh [delegated|undelegated [ROW...]]      one image, some rows by name
# env: VENV (Python 3.11, as the guest's), VMDIR, MEM, TIMEOUT_S (of one boot), see vm.sh; MOMENTS (of each row that ends
#      launches at random moments: 20, or 3 where the processor is emulated and takes 20 s for each)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
VENV=${VENV:-$here/../../.venv} TIMEOUT_S=${TIMEOUT_S:-4500}
export MEM=${MEM:-2048} CMDLINE="loglevel=1 ${CMDLINE:-}" # The kernel tells of every process that it kills for memory.
images=${VMDIR:-${XDG_CACHE_HOME:-$HOME/.cache}/cotenant-vm}
pack=$(mktemp -d)
chmod 755 "$pack" # It becomes the folder that every user in the guest reads.
trap 'rm -rf "$pack"' EXIT

boot() { # IMAGE ROW...
    local image=$1 delegate=yes
    [ "$image" = delegated ] || delegate=no
    export VMDIR=$images/$image
    [ -e "$VMDIR/root.img" ] || DELEGATE=$delegate "$here/vm.sh" build
    echo "== $image"
    "$here/vm.sh" run -i "$pack" -t "$TIMEOUT_S" -- \
        "export PYTHONPATH=/guest/packages:/guest/cotenant/common PYTHONDONTWRITEBYTECODE=1;" \
        "MOMENTS=${MOMENTS:-} python3 cotenant/tests/vm/matrix.py $(printf ' %q' "$@")"
}

"$VENV/bin/python" "$here/pack.py" "$pack"
status=0
if [ $# -gt 0 ]; then
    boot "$@" || status=1
else
    for image in delegated undelegated; do boot "$image" || status=1; done
fi
exit $status
