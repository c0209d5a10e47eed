# Sourced by run.sh and test.sh: makes an environment with the pinned packages, once.
#   VENV=DIR    its directory (default: .venv in the checkout); several checkouts may share one
#   TORCH_BUILD=cu126  which build of torch (default: what the host's devices and driver need; for tests without any
#               device that of their null device)
#   PYTHON=EXE  the interpreter it is made with (default: the first of python3.13 .. python3.11, python3 that fits)
# If gpu-wheels/ exists (make gpu-wheels), nothing is fetched: its wheels are added to an interpreter that has torch.

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
VENV="${VENV:-$ROOT/.venv}"
CARRIED="$ROOT/gpu-wheels"
# The set-up changes to the checkout, so a relative VENV becomes absolute first.
[[ $VENV == /* ]] || VENV="$PWD/$VENV"

say() {
    echo "$(basename "$0"): $*" >&2
}

fail() {
    say "$*"
    exit 2
}

# find_python [MODULE]: prints an interpreter of a supported version that has this module.
find_python() {
    local candidate fits="import sys; from importlib.util import find_spec as has; \
sys.exit(not ((3, 11) <= sys.version_info < (3, 14) and has('${1:-sys}')))"
    local -a candidates=(python3.13 python3.12 python3.11 python3)
    if [ -n "${PYTHON:-}" ]; then candidates=("$PYTHON"); fi
    for candidate in "${candidates[@]}"; do
        if "$candidate" -c "$fits" 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    fail "Python 3.11, 3.12 or 3.13${1:+ with $1} is needed and none was found. Name one with PYTHON=/path/to/python\
${1:+, or an environment that has it with VENV=/path}."
}

make_venv() {
    local python
    if [ -d "$CARRIED" ]; then
        python="$(find_python torch)" || exit 2
        "$python" -m venv --system-site-packages --without-pip "$VENV" || fail "$python cannot make $VENV."
        return
    fi
    python="$(find_python)" || exit 2
    if command -v uv >/dev/null; then
        uv venv --quiet --allow-existing --python "$python" "$VENV" || fail "uv could not make $VENV."
    elif ! "$python" -m venv "$VENV"; then
        fail "$python cannot make $VENV. On Debian: apt-get install python3-venv. Is the disk full?"
    fi
}

# Whether the environment can take packages. One whose making failed has a Python, and no pip.
is_made() {
    [ -x "$VENV/bin/python" ] && { command -v uv || "$VENV/bin/python" -m pip --version; } >/dev/null 2>&1
}

# Installs packages; shows progress on a terminal only.
packages() {
    local -a quiet=(--quiet)
    if [ -t 2 ]; then quiet=(); fi
    if command -v uv >/dev/null; then
        uv pip install ${quiet[@]+"${quiet[@]}"} --python "$VENV/bin/python" "$@" >&2
    else
        "$VENV/bin/python" -m pip install ${quiet[@]+"${quiet[@]}"} --disable-pip-version-check "$@" >&2
    fi
}

there() {
    if command -v uv >/dev/null; then uv pip freeze --python "$VENV/bin/python"; else "$VENV/bin/python" -m pip freeze; fi
}

# name_build [WORD]: sets the build of torch, its index and size by machine/wheels.py, and says why it is that one.
name_build() {
    local why
    { read -r build && read -r index && read -r size && read -r why; } \
        < <("$VENV/bin/python" "$ROOT/common/cotenant/machine/wheels.py" "$@") ||
        fail "$ROOT/common/cotenant/machine/wheels.py names no build of torch."
    say "torch for $build: $why.${size:+ All packages are $size.}"
}

# install_torch KIND FILE...: the build for this host, or of tests for their null device; the pinned pair is that of PyPI.
install_torch() {
    local build index size version vision there kind=$1
    local -a others asked=(${TORCH_BUILD:-})
    shift
    if [ -z "${TORCH_BUILD:-}" ] && [ "$kind" = test ]; then asked=(--null-device); fi
    name_build ${asked[@]+"${asked[@]}"}
    version="$(sed -n 's/^torch==//p' requirements.txt)" vision="$(sed -n 's/^torchvision==//p' requirements.txt)"
    there="$(there 2>/dev/null | sed -n 's/^torch==//p')"
    # Every build also runs without devices.
    if [ "$build" = cpu ] && [ "${there%+*}" = "$version" ]; then return; fi
    if [ "$index" != pinned ]; then
        mapfile -t others < <(grep -hv -e '^#' -e '^torch' "$@")
        # A host that cannot reach this index must not wait for long.
        packages "${others[@]}" &&
            PIP_RETRIES=1 PIP_TIMEOUT=15 UV_HTTP_TIMEOUT=15 packages --index-url "$index" \
                "torch==$version+$build" "torchvision==$vision+$build" && return
        say "torch $version for $build cannot be had from $index: the pinned pair is installed instead."
        name_build --pinned
    fi
    # To pip another build of this version is as good as the pinned one.
    if [[ $there == "$version"+* ]]; then packages --force-reinstall --no-deps "torch==$version" "torchvision==$vision"; fi
}

# Installs the carried wheels of missing packages; torch, torchvision, numpy and Pillow are not among the wheels.
install_carried() {
    local -a names
    mapfile -t names < <(cd "$CARRIED" && printf '%s\n' *.whl | cut -d- -f1 | sort -u)
    say "adding what is missing of ${names[*]} from gpu-wheels to $VENV."
    packages --no-index --find-links "$CARRIED" --no-deps "${names[@]}" || fail "The wheels of $CARRIED do not fit."
}

# install KIND FILE...
install() {
    if [ -d "$CARRIED" ]; then
        install_carried
        return
    fi
    local -a files=()
    local file same kind=$1
    shift
    for file in "$@"; do files+=(-r "$file"); done
    same="$(grep -h == "$@" | grep -cixFf - <(there 2>/dev/null) || true)"
    say "installing the pinned packages into $VENV, once: $same of them are there."
    { install_torch "$kind" "$@" && packages "${files[@]}" && packages --no-deps --no-build-isolation -e "$ROOT"; } ||
        fail "The packages could not be installed. Is the network there, and room on the disk?"
}

# Fails where the packages are those of another checkout that still has other pins; its stamps become void otherwise.
take_over() {
    local other file
    other="$(cat "$VENV/.cotenant-checkout" 2>/dev/null || true)"
    if [ "${other:-$ROOT}" = "$ROOT" ]; then return; fi
    for file in requirements.txt requirements-test.txt; do
        if [ -e "$other/$file" ] && ! cmp -s "$other/$file" "$ROOT/$file"; then
            fail "$VENV has the packages that $other pins, and $ROOT pins others ($file). Give one of them another VENV=DIR."
        fi
    done
    rm -f "$VENV"/.cotenant-{run,test}
}

# Removes an environment whose packages its Python cannot find.
remove_broken() {
    if [ ! -e "$VENV/pyvenv.cfg" ] || works; then return; fi
    say "the Python of $VENV is gone, or of another version than its packages (was the system upgraded?): it is made anew."
    rm -rf "$VENV"/{bin,include,lib,lib64,share,pyvenv.cfg,.cotenant-run,.cotenant-test}
}

works() {
    # site-packages is on the path only where it exists for this version.
    "$VENV/bin/python" -I -c 'import sys
sys.exit(not any(place.startswith(sys.prefix) and place.endswith("-packages") for place in sys.path))' >/dev/null 2>&1
}

# ensure_environment KIND FILE...: does nothing if the stamp of KIND (run, test) says that exactly these pins are there.
ensure_environment() {
    [ "$(uname)" = Linux ] || fail "Measurements are made on Linux, and this is $(uname)."
    local kind=$1 stamp="$VENV/.cotenant-$1" pins
    shift
    pins="$(cd "$ROOT" && sha256sum "$@")${TORCH_BUILD:+ $TORCH_BUILD}"
    if [ -d "$CARRIED" ]; then pins="$(cd "$CARRIED" && sha256sum *.whl)"; fi
    is_current() { [ "$(cat "$stamp" 2>/dev/null)" = "$pins" ] && works; }
    if ! is_current; then
        mkdir -p "$VENV" || fail "$VENV cannot be made."
        (
            if command -v flock >/dev/null; then flock 9; fi
            # What the caller's variables add to an interpreter is no part of the environment.
            unset PYTHONPATH PYTHONHOME
            # Another process may have made it while this one waited for the lock.
            if ! is_current; then
                remove_broken
                take_over
                is_made || make_venv
                cd "$ROOT" && install "$kind" "$@"
                echo "$ROOT" >"$VENV/.cotenant-checkout"
                echo "$pins" >"$stamp.new" && mv "$stamp.new" "$stamp"
            fi
        ) 9>"$VENV/.cotenant-lock" || exit 2
    fi
}
