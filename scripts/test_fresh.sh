#!/usr/bin/env bash
# Proves the promise of the README on a machine that has nothing: makes a minimal Debian 12 in a
# temporary folder, installs git and make there, clones HEAD and runs `make demo` and `make test`,
# first as root and then, in a clone of its own, as a plain user.
#
# Needs root. Packages come from wherever this machine gets them (debian.sh).
#
# All mounts live in a mount namespace of the second half of this script (--inside). They end with
# its last process, so the folder is never deleted through a mount, not even after Ctrl-C.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/debian.sh
. scripts/debian.sh

say() { printf '\n==== %s\n' "$*"; }
die() {
    printf 'test-fresh: %s\n' "$*" >&2
    exit 1
}

# --- outside: temporary folder, namespace, removal -----------------------------------------------

outside() {
    [ "$(id -u)" = 0 ] || die "needs root for chroot and mounts: sudo make test-fresh"
    need_debootstrap
    work=$(mktemp -d "${TMPDIR:-/tmp}/iojoule-fresh.XXXXXXXX")
    inner=
    trap remove EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    # HEAD is what a stranger would clone; local changes stay out on purpose.
    git -c safe.directory='*' bundle create --quiet "$work/head.bundle" HEAD
    # In the background, because only then does a signal reach the traps at once. --kill-child:
    # with unshare dies everything it started.
    unshare --mount --propagation private --pid --fork --kill-child --mount-proc \
        "$PWD/scripts/test_fresh.sh" --inside "$work" </dev/null &
    inner=$!
    wait "$inner"
}

remove() {
    status=$?
    trap - EXIT
    trap '' INT TERM HUP
    if [ -n "$inner" ]; then
        kill -KILL "$inner" 2>/dev/null || true
        wait "$inner" 2>/dev/null || true
    fi
    if grep -qF " $work/" /proc/self/mountinfo; then
        echo "test-fresh: $work still holds a mount and is left as it is" >&2
        exit 1
    fi
    rm -rf --one-file-system "$work"
    exit "$status"
}

# --- inside: the new Debian ----------------------------------------------------------------------

# as USER COMMAND: a clean environment but for what leads to the packages.
as() {
    user=$1
    shift
    in_debian "$user" /usr/sbin:/usr/bin:/sbin:/bin "$*"
}

seconds() { date +%s.%N; }

# No `|| die` here: it would switch off `set -e` in everything called.
timed() {
    label=$1
    shift
    say "$label"
    start=$(seconds)
    "$@"
    report+=("$(awk -v label="$label" -v from="$start" -v to="$(seconds)" \
        'BEGIN { printf "%8.1f s  %s", to - from, label }')")
}

# A plain user without these packages cannot be helped, but must be told what to install.
check_refusal() {
    say "plain user, packages missing: must be told so"
    as "$plain" "git -c advice.detachedHead=false clone -q /srv/head.bundle refused"
    if as "$plain" "make --no-print-directory -C refused demo" >"$work/refusal.log" 2>&1; then
        die "make demo succeeded without a compiler and python3-venv"
    fi
    cat "$work/refusal.log"
    for package in python3-venv python3-dev g++; do
        grep -q "apt-get install -y .*$package" "$work/refusal.log" ||
            die "make demo does not say that $package is missing"
    done
}

check_user() {
    as "$1" "git -c advice.detachedHead=false clone -q /srv/head.bundle iojoule"
    timed "$1: make demo, first run" as "$1" "make --no-print-directory -C iojoule demo"
    timed "$1: make demo again" as "$1" "make --no-print-directory -C iojoule demo >/dev/null"
    timed "$1: make test" as "$1" "make --no-print-directory -C iojoule test"
    timed "$1: make setup with nothing to do (target: under 2 s)" as "$1" "make --no-print-directory -C iojoule setup"
}

inside() {
    work=$1
    new=$work/debian
    plain=reader
    report=()
    label=start
    trap '[ $? = 0 ] || echo "test-fresh: failed in: $label" >&2' EXIT
    timed "debootstrap" make_mounted_debian "$new"
    cp "$work/head.bundle" "$new/srv/head.bundle"
    timed "apt-get install git make" as root \
        "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq git make >/dev/null"
    # Installing ca-certificates, which git recommends, wrote the bundle anew.
    copy_certificates
    as root "useradd --create-home --shell /bin/sh $plain"
    check_refusal
    check_user root
    check_user "$plain"
    say "passed"
    printf '%s\n' "${report[@]}"
}

if [ "${1:-}" = --inside ]; then
    inside "$2"
else
    outside
fi
