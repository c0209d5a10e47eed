#!/usr/bin/env bash
# Fetch into gpu-wheels/ the wheels that `./test.sh -m gpu` and `./run.sh` need on a machine that has only torch. They
# travel with the checkout, where scripts/environment.sh finds them. ARCH and PYTHONS choose the machines.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PYTHON=${PYTHON:-python3} ARCH=${ARCH:-x86_64} PYTHONS=${PYTHONS:-3.11 3.12 3.13} TO=gpu-wheels MOST_MIB=50
PACKAGES="msgspec gymnasium ale-py Farama-Notifications psutil nvidia-ml-py cloudpickle typing_extensions
    rich markdown-it-py mdurl Pygments packaging
    pytest pytest-timeout pluggy iniconfig hypothesis sortedcontainers"

pinned=()
for package in $PACKAGES; do
    pinned+=("$(grep -ih "^$package==" requirements.txt requirements-test.txt)") || { echo "No pin of $package."; exit 1; }
done
platforms=()
for version in 39 35 34 31 28 27 26 24 17 12 5; do platforms+=(--platform "manylinux_2_${version}_$ARCH"); done
for year in 2014 2010 1; do platforms+=(--platform "manylinux${year}_$ARCH"); done

rm -rf "$TO.new"
for version in $PYTHONS; do
    "$PYTHON" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
        --implementation cp --python-version "$version" "${platforms[@]}" --dest "$TO.new" "${pinned[@]}"
done
size=$(du -sm "$TO.new" | cut -f1)
if [ "$size" -ge "$MOST_MIB" ]; then
    echo "They take $size MiB, and at most $MOST_MIB may travel: choose fewer PYTHONS." >&2
    exit 1
fi
rm -rf "$TO"
mv "$TO.new" "$TO"
echo "$(find "$TO" -name '*.whl' | wc -l) wheels, $size MiB, for Python $PYTHONS on $ARCH, in $TO/."
