#!/usr/bin/env bash
# Isolation on cgroup v2 and systemd, in a virtual machine that is booted once. `make vm-test` and .ci/run call it.
#   tests/vm/test.sh [core|all|ROW...]      the rows of every CI run, all of them (by default), or some by name
# Without qemu it is skipped, with a word; where CI=true its packages are installed, and their absence is an error.
# env: VENV (Python 3.11, as the guest's), VMDIR, MEM, TIMEOUT_S (of the guest), see vm.sh; MOMENTS (of each row that ends
#      launches of a design at random moments: 20, or 6, one of each kind, where the processor is emulated and takes 20 s
#      and more for each; 1 of `core`)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
VENV=$(realpath "${VENV:-$here/../../.venv}") TIMEOUT_S=${TIMEOUT_S:-7200}
export MEM=${MEM:-3072} CMDLINE="loglevel=1 ${CMDLINE:-}" # The kernel tells of every process that it kills for memory.
[ $# -gt 0 ] || set -- all
[ "$*" != core ] || MOMENTS=${MOMENTS:-1}

if ! "$here/vm.sh" check; then
    if [ "${CI:-}" = true ]; then
        "$here/vm.sh" setup
    else
        echo "tests/vm/test.sh: skipped, nothing was tested. As root, once: tests/vm/vm.sh setup"
        exit 0
    fi
fi
"$here/vm.sh" build
pack=$(mktemp -d)
chmod 755 "$pack" # It becomes the folder that every user in the guest reads.
trap 'rm -rf "$pack"' EXIT
"$VENV/bin/python" "$here/pack.py" "$pack"
packages=$("$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
"$here/vm.sh" run -i "$pack" -s "$packages" -t "$TIMEOUT_S" -- \
    "export PYTHONPATH=/guest/cotenant/common:/share PYTHONDONTWRITEBYTECODE=1;" \
    "MOMENTS=${MOMENTS:-} python3 cotenant/tests/vm/matrix.py $(printf ' %q' "$@")"
