#!/bin/sh
# Compiles the simulator's core with the tools in .venv, and nothing when it is up to date.
#
#   build_core.sh            the extension, into sim/
#   build_core.sh sanitize   the same with AddressSanitizer and UBSan, into build/core-sanitize
#   build_core.sh fuzz       the fuzzers of tests/fuzz, into build/core-fuzz (needs clang++)
set -eu
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*" >&2; }

kind=${1:-core}
case $kind in
core) build=build/core options=-DIOJOULE_INPLACE=ON ;;
sanitize) build=build/core-sanitize options="-DIOJOULE_SANITIZE=ON -DCMAKE_BUILD_TYPE=Debug -DCMAKE_COMPILE_WARNING_AS_ERROR=ON" ;;
fuzz) build=build/core-fuzz options="-DIOJOULE_FUZZ=ON -DCMAKE_CXX_COMPILER=${CXX:-clang++}" ;;
*)
    say "build_core.sh: core, sanitize or fuzz, not $kind"
    exit 2
    ;;
esac

# The lab's parts are built where these are there.
libraries() { pkg-config --modversion fuse3 nbdkit 2>/dev/null || true; }

# What makes a build folder worthless when it changes: it cannot be moved, and holds these paths.
key=$({ pwd -P; cat .venv/packages.stamp; echo "$options ${CXX:-}"; libraries; } | sha256sum | cut -c1-64)
stamp=$build/built.stamp

# The stamp is as old as the start of the last build, so that a file saved during it is newer. A
# folder is newer when a file was added to it or removed.
up_to_date() {
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$key" ] && built &&
        [ -z "$(find CMakeLists.txt sim/core datasets/traces/core measure/lab/CMakeLists.txt measure/lab/disk measure/lab/preload tests/fuzz -newer "$stamp" 2>/dev/null | head -n 1)" ]
}

built() {
    case $kind in
    core)
        set -- sim/_core.*.so
        [ -e sim/_core.pyi ] && [ -e datasets/traces/_native.pyi ] || return 1
        ;;
    sanitize) set -- "$build"/_core.*.so ;;
    esac
    [ "$kind" = fuzz ] || [ -e "$1" ]
}

if up_to_date; then exit 0; fi

exec 8<CMakeLists.txt
flock 8
if up_to_date; then exit 0; fi

[ -f "$stamp" ] && [ "$(cat "$stamp")" = "$key" ] || rm -rf "$build"
[ -f "$build/build.ninja" ] || say "set-up: compiling the native parts ($kind; one to three minutes)"
mkdir -p "$build"
printf '%s\n' "$key" >"$stamp.new"
if [ ! -f "$build/build.ninja" ]; then
    # Word splitting is meant: one option per word.
    # shellcheck disable=SC2086
    said=$(.venv/bin/cmake -S . -B "$build" -G Ninja $options \
        -DCMAKE_MAKE_PROGRAM="$PWD/.venv/bin/ninja" \
        -DPython_EXECUTABLE="$PWD/.venv/bin/python" 2>&1) || {
        say "$said"
        exit 1
    }
fi
.venv/bin/ninja -C "$build" --quiet ${JOBS:+-j "$JOBS"} >&2
mv "$stamp.new" "$stamp"
