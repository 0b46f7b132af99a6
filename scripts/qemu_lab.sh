#!/bin/sh
# Measures an emulated NVMe drive under Linux' own driver: gets what that needs beyond set-up and
# runs tests/qemu. Installed are QEMU and mke2fs; the guest's kernel is Debian's cloud kernel (nvme
# and ext4 built in), which is only unpacked, into build/qemu, and never installed.
#
#   qemu_lab.sh [PYTEST OPTION ...]
set -eu
cd "$(dirname "$0")/.."

KERNEL=build/qemu/vmlinuz

say() { printf '%s\n' "$*" >&2; }
die() {
    say "test-qemu: $*"
    exit 1
}

missing_packages() {
    command -v qemu-system-x86_64 >/dev/null || echo qemu-system-x86
    [ -x /sbin/mke2fs ] || echo e2fsprogs
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        DEBIAN_FRONTEND=noninteractive "$@" </dev/null
    else
        sudo -n env DEBIAN_FRONTEND=noninteractive "$@" </dev/null
    fi
}

apt_install() { as_root apt-get install -y -qq --no-install-recommends "$@"; }

ensure_packages() {
    # Word splitting is meant: one package name per word.
    # shellcheck disable=SC2046
    set -- $(missing_packages)
    [ $# -gt 0 ] || return 0
    say "test-qemu: installing Debian packages: $*"
    apt_install "$@" >/dev/null 2>&1 ||
        { as_root apt-get update -qq >&2 && apt_install "$@" >&2; } ||
        die "as root, run:  apt-get update && apt-get install -y --no-install-recommends $*"
}

# Where a kernel is there already, any will do.
ensure_kernel() {
    [ ! -s "$KERNEL" ] || return 0
    [ "$(uname -m)" = x86_64 ] || die "the guest has an x86-64 kernel and this host's programs"
    say "test-qemu: unpacking Debian's cloud kernel into build/qemu"
    # Lists that are missing or out of date make the first try fail; an update mends both.
    fetch_kernel || { as_root apt-get update -qq >&2 && fetch_kernel; } ||
        die "apt-get could not download the package that linux-image-cloud-amd64 depends on"
    dpkg-deb --fsys-tarfile build/qemu/package/*.deb |
        tar -xO --wildcards './boot/vmlinuz-*' >"$KERNEL.new"
    [ -s "$KERNEL.new" ] || die "the package holds no kernel"
    mv "$KERNEL.new" "$KERNEL"
    rm -rf build/qemu/package
}

fetch_kernel() {
    rm -rf build/qemu/package
    mkdir -p build/qemu/package
    package=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null |
        awk '$1 == "Depends:" && $2 ~ /^linux-image-/ { print $2; exit }')
    [ -n "$package" ] || return 1
    (cd build/qemu/package && apt-get download -qq "$package" >/dev/null 2>&1)
}

ensure_packages
ensure_kernel
exec .venv/bin/python -m pytest -m qemu tests/qemu "$@"
