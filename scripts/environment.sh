# Sourced by run.sh and test.sh: an environment with the pinned packages, made once.
#   VENV=DIR    where it lies (default: .venv in the checkout); several checkouts may share one
#   PYTHON=EXE  the interpreter it is made with (default: the first of python3.13 .. python3.11, python3 that fits)

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
VENV="${VENV:-$ROOT/.venv}"

fail() {
    echo "$(basename "$0"): $*" >&2
    exit 2
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3.13 python3.12 python3.11 python3}; do
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    fail "Python 3.11, 3.12 or 3.13 is needed and none was found. Install one, or name it with PYTHON=/path/to/python."
}

make_venv() {
    local python
    python="$(find_python)" || exit 2
    if command -v uv >/dev/null; then
        uv venv --quiet --allow-existing --python "$python" "$VENV" || fail "uv could not make $VENV."
    elif ! "$python" -m venv "$VENV"; then
        fail "$python cannot make $VENV. On Debian: apt-get install python3-venv. Is the disk full?"
    fi
}

install() {
    local -a files=()
    local file
    for file in "$@"; do files+=(-r "$file"); done
    echo "$(basename "$0"): installing the pinned packages into $VENV (about 6 GB, once)" >&2
    if command -v uv >/dev/null; then
        uv pip install --quiet --python "$VENV/bin/python" "${files[@]}" &&
            uv pip install --quiet --python "$VENV/bin/python" --no-deps --no-build-isolation -e "$ROOT"
    else
        "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check "${files[@]}" &&
            "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e "$ROOT"
    fi || fail "The packages could not be installed. Is the network there, and 8 GB of disk?"
}

# ensure_environment STAMP FILE...: nothing to do where the stamp says that exactly these pins are installed.
ensure_environment() {
    local stamp="$VENV/.cotenant-$1" pins
    shift
    pins="$(cd "$ROOT" && sha256sum "$@")"
    if [ "$(cat "$stamp" 2>/dev/null)" != "$pins" ]; then
        mkdir -p "$VENV" || fail "$VENV cannot be made."
        (
            if command -v flock >/dev/null; then flock 9; fi
            # Somebody else may have finished while we waited.
            if [ "$(cat "$stamp" 2>/dev/null)" != "$pins" ]; then
                [ -x "$VENV/bin/python" ] || make_venv
                cd "$ROOT" && install "$@"
                echo "$pins" >"$stamp.new" && mv "$stamp.new" "$stamp"
            fi
        ) 9>"$VENV/.cotenant-lock" || exit 2
    fi
    # A shared environment knows one checkout's package; this one's comes first.
    export VENV PATH="$VENV/bin:$PATH" PYTHONPATH="$ROOT/common${PYTHONPATH:+:$PYTHONPATH}"
}
