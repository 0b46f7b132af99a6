#!/bin/sh
# Runs every fuzzer for a while and says how many inputs were tried. An input that fails is left in
# build/fuzz, and so is the corpus, from which the next run goes on.
#
#   fuzz.sh [SECONDS [NAME...]]   for so long each (60); parameters, trace, readers (all)
set -eu
cd "$(dirname "$0")/.."

seconds=${1:-60}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- trace parameters readers
failed=

command -v "${CXX:-clang++}" >/dev/null || {
    echo "fuzz: needs clang++: apt-get install clang libclang-rt-14-dev" >&2
    exit 1
}
scripts/build_core.sh fuzz
mkdir -p build/fuzz
cd build/fuzz

# libFuzzer's own words to one line.
run() {
    name=$1
    shift
    mkdir -p "$name"
    started=$(date +%s)
    if "$@" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=4096 -print_final_stats=1 \
        -artifact_prefix="$name-" "$name" >"$name.log" 2>&1; then
        result="none failed"
    else
        result="FAILED, see build/fuzz/$name.log"
        failed=yes
    fi
    inputs=$(awk '/stat::number_of_executed_units/ { print $2 }' "$name.log")
    echo "fuzz $name: ${inputs:-an unknown number of} inputs in $(($(date +%s) - started)) s, $result"
}

for name; do
    case $name in
    readers)
        if ../../.venv/bin/python -c 'import atheris' 2>/dev/null; then
            run readers ../../.venv/bin/python ../../tests/fuzz/fuzz_readers.py
        else
            echo "fuzz readers: left out, needs atheris: .venv/bin/pip install atheris"
        fi
        ;;
    *) run "$name" ../core-fuzz/tests/fuzz/fuzz_"$name" -max_len=4096 ;;
    esac
done
[ -z "$failed" ]
