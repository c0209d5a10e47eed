#!/bin/sh
# A program that never says hello: `plain.sh SECONDS [STATUS]`; the runner appends --seed.
echo "plain in $PWD with $OMP_NUM_THREADS threads"
sleep "$1"
case $2 in
--*) exit 0 ;;
*) exit "$2" ;;
esac
