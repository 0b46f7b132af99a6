#!/usr/bin/env bash
# The first answer of a newcomer: a minimal Debian 12 in a temporary folder, the wheel of this
# checkout installed there as README.md says, and then what the program itself says to type next,
# from a folder of fio results to a recommendation. Prints every command with its seconds.
#
# Needs root. Usage: newcomer.sh [FOLDER]; default: examples/gallery/fio-results.
# Packages come from wherever this machine gets them (debian.sh). As in test_fresh.sh all mounts
# live in a namespace of the second half (--inside).
set -euo pipefail
# shellcheck source=scripts/debian.sh
. "$(dirname "$0")/debian.sh"

say() { printf '==== %s\n' "$*"; }
die() {
    printf 'newcomer: %s\n' "$*" >&2
    exit 1
}

outside() {
    [ "$(id -u)" = 0 ] || die "needs root for chroot and mounts"
    results=$(realpath "${1:-examples/gallery/fio-results}")
    need_debootstrap
    make --no-print-directory wheel
    work=$(mktemp -d "${TMPDIR:-/tmp}/iojoule-newcomer.XXXXXXXX")
    trap 'rm -rf --one-file-system "$work"' EXIT
    cp dist/iojoule-*.whl "$work/"
    cp -R "$results" "$work/results"
    unshare --mount --propagation private --pid --fork --kill-child --mount-proc \
        "$0" --inside "$work" </dev/null
}

# typed COMMAND: as a plain user in the home folder, in bash as it comes; sets `printed`.
typed() {
    printf '$ %s\n' "$1"
    start=$(date +%s.%N)
    printed=$(in_debian reader "${activated:+/home/reader/ij/bin:}/usr/bin:/bin" \
        "export COLUMNS=100 && $1" 2>&1) || {
        printf '%s\n' "$printed"
        die "failed: $1"
    }
    took=$(awk -v from="$start" -v to="$(date +%s.%N)" 'BEGIN { printf "%.1f", to - from }')
    total=$(awk -v a="${total:-0}" -v b="$took" 'BEGIN { printf "%.1f", a + b }')
    count=$((${count:-0} + 1))
    printf '%s\n-- %s s\n' "$printed" "$took"
}

next_command() { printf '%s\n' "$printed" | sed -n 's/^note: next: //p' | tail -1; }

inside() {
    work=$1
    new=$work/debian
    say "a minimal Debian 12"
    make_mounted_debian "$new"
    chroot "$new" useradd --create-home --shell /bin/bash reader
    cp -R "$work"/iojoule-*.whl "$work/results" "$new/home/reader/"
    chroot "$new" chown -R reader: /home/reader
    say "as root: apt-get install python3-venv"
    start=$(date +%s)
    chroot "$new" sh -c "apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq python3-venv ca-certificates >/dev/null 2>&1"
    copy_certificates
    say "$(($(date +%s) - start)) s"

    say "as a plain user"
    typed "python3 -m venv ij && . ij/bin/activate && pip install --quiet 'iojoule[all]' --find-links ."
    activated=yes
    typed "iojoule import fio results -o runs"
    command=$(next_command)
    typed "${command//MODEL/my-drive}"
    typed "$(next_command)"
    say "$count commands, $total s, the first answer is above"
}

if [ "${1:-}" = --inside ]; then
    inside "$2"
else
    cd "$(dirname "$0")/.."
    outside "$@"
fi
