#!/usr/bin/env bash
# Makes, or gets, the data of the tasks: runs every tasks/*/*/download_dataset.sh, all at once, each line with its task's name;
# on a terminal one after the other, each with a bar.
#
#   ./download_datasets.sh [NAME-glob...] [--sequential] [--root DIR] [--size small|full] [--mirror URL] [--from DIR]
#
# A NAME is a task, a model, or task/model, such as image_loading, loader or 'image_*'. --sequential runs one after the
# other; all other flags go to every script.
# FAKE_DATASET=0 gets the real sets instead of making fake ones; --mirror and --from are for these (docs/datasets.md).
# Environment: DATA_DIRECTORY, BASE, DATASET_SIZE, FAKE_DATASET, USE_VALIDATION, COTENANT_MIRROR, COTENANT_DATA_FROM,
# VENV. Exit status: 0; 1 a script failed; 2 wrong usage, no environment, or too little room for all of it.
set -euo pipefail
checkout=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

sequential=0
flags=()
for word in "$@"; do
    if [[ $word == --sequential ]]; then sequential=1; else flags+=("$word"); fi
done
set -- ${flags[@]+"${flags[@]}"}

names=()
while (($# > 0)) && [[ $1 != -* ]]; do
    names+=("$1")
    shift
done
if [[ ${1:-} == -h || ${1:-} == --help ]]; then
    sed -n '2,/^set/{/^set/d; s/^# \{0,1\}//; p}' "${BASH_SOURCE[0]}"
    exit 0
fi

shopt -s nullglob
known=()
for script in "$checkout"/tasks/*/*/download_dataset.sh; do
    model=${script%/download_dataset.sh}
    known+=("${model#"$checkout"/tasks/}")
done

chosen=()
for name in "${names[@]:-*}"; do
    found=0
    for model in "${known[@]}"; do
        # Unquoted on the right: a glob.
        if [[ $model == $name || ${model%/*} == $name || ${model#*/} == $name ]]; then
            found=1
            [[ " ${chosen[*]:-} " == *" $model "* ]] || chosen+=("$model")
        fi
    done
    if ((!found)); then
        echo "error: No task with data is called '$name'. The tasks: ${known[*]}." >&2
        exit 2
    fi
done

# Each script sees to room for its own set; several at once also need room together.
sets=$(for model in "${chosen[@]}"; do
    sed -n 's/.* -m cotenant\.datasets \([a-z0-9_]*\) .*/\1/p' "$checkout/tasks/$model/download_dataset.sh"
done | sort -u)
if [[ $sets && " $* " != *" --list "* ]]; then
    for python in "${VENV:-$checkout/.venv}/bin/python" "$checkout/.venv/bin/python" python; do
        if command -v "$python" > /dev/null; then break; fi
    done
    command -v "$python" > /dev/null || {
        echo "error: There is no environment yet: ./run.sh --version makes it." >&2
        exit 2
    }
    # Unquoted: a word for each set.
    PYTHONPATH="$checkout/common${PYTHONPATH:+:$PYTHONPATH}" "$python" -m cotenant.datasets $sets --check-room "$@"
fi

# Job control: each script gets its own process group, which hears of Ctrl-C through the trap.
set -m
declare -A jobs=()
stop() {
    trap '' INT TERM
    for pid in "${jobs[@]}"; do kill -s INT -- "-$pid" 2> /dev/null || true; done
    wait
    exit "$1"
}
trap 'stop 130' INT
trap 'stop 143' TERM

failed=()
finish() {
    wait "${jobs[$1]}" || failed+=("$1")
    unset "jobs[$1]"
}
for model in "${chosen[@]}"; do
    script=$checkout/tasks/$model/download_dataset.sh
    if [[ -t 2 ]]; then
        echo "[$model]" >&2
        "$script" "$@" < /dev/null >&2 &
        jobs[$model]=$!
        finish "$model"
    else
        # sed outlives Ctrl-C, so that the scripts' last words are seen.
        { "$script" "$@" 2>&1 < /dev/null | (trap '' INT && exec sed -u "s|^|[$model] |") >&2; } &
        jobs[$model]=$!
        if ((sequential)); then finish "$model"; fi
    fi
done
for model in "${chosen[@]}"; do
    if [[ ${jobs[$model]:-} ]]; then finish "$model"; fi
done

if ((${#failed[@]} > 0)); then
    echo "error: The data could not be made for: ${failed[*]}. The lines above say why." >&2
    exit 1
fi
