#!/usr/bin/env bash
# Makes, or gets, the data of the tasks: runs every tasks/*/*/download_dataset.sh, all at once, each line with its task's name.
#
#   ./download_datasets.sh [NAME-glob...] [--root DIR] [--size small|full] [--mirror URL] [--from DIR]
#
# A NAME is a task, a model, or task/model, such as image_loading, loader or 'image_*'. Flags go to every script.
# FAKE_DATASET=0 gets the real sets instead of making fake ones; --mirror and --from are for these (docs/datasets.md).
# Environment: DATA_DIRECTORY, BASE, DATASET_SIZE, FAKE_DATASET, USE_VALIDATION, COTENANT_MIRROR, COTENANT_DATA_FROM,
# VENV. Exit status: 0; 1 a script failed; 2 wrong usage.
set -euo pipefail
checkout=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

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

for model in "${chosen[@]}"; do
    # sed outlives Ctrl-C, so that the scripts' last words are seen.
    { "$checkout/tasks/$model/download_dataset.sh" "$@" 2>&1 < /dev/null \
        | (trap '' INT && exec sed -u "s|^|[$model] |") >&2; } &
    jobs[$model]=$!
done

failed=()
for model in "${chosen[@]}"; do
    wait "${jobs[$model]}" || failed+=("$model")
done
if ((${#failed[@]} > 0)); then
    echo "error: The data could not be made for: ${failed[*]}. The lines above say why." >&2
    exit 1
fi
