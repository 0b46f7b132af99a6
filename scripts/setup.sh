#!/bin/sh
# Makes .venv hold what requirements.txt and pyproject.toml ask for, compiles the native parts,
# bundles the page, and does nothing when all that is done already.
#
# The one rule that keeps this safe: a stamp is the last thing written and the first thing removed.
# Packages without their stamp were never finished, so .venv is made anew and not repaired;
# concurrent runs wait for each other.
#
# PYTHON  the interpreter to build on (default /usr/bin/python3: others that come first on a
#         developer's PATH would hide a missing Debian package)
set -eu
cd "$(dirname "$0")/.."

PYTHON=${PYTHON:-/usr/bin/python3}
VENV=.venv
PACKAGES_STAMP=$VENV/packages.stamp
PROJECT_STAMP=$VENV/project.stamp

say() { printf '%s\n' "$*" >&2; }
die() {
    say "set-up: $*"
    exit 1
}

# --- Debian packages -----------------------------------------------------------------------------

# One line per package: what to try, and which package makes it work. Later needs are added here.
missing_packages() {
    if [ "$PYTHON" = /usr/bin/python3 ]; then
        [ -x "$PYTHON" ] || echo python3
        # venv can be imported without the package; ensurepip, which fills a venv, cannot.
        "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
        set -- /usr/include/python3*/Python.h
        [ -e "$1" ] || echo python3-dev
    fi
    command -v "${CXX:-c++}" >/dev/null || echo g++
    # The lab: its disk, and what is measured with.
    command -v pkg-config >/dev/null || echo pkg-config
    [ -e /usr/include/fuse3/fuse_lowlevel.h ] || echo libfuse3-dev
    command -v fusermount3 >/dev/null || echo fuse3
    command -v fio >/dev/null || echo fio
    [ -x /usr/sbin/nvme ] || command -v nvme >/dev/null || echo nvme-cli
    [ -x /usr/sbin/hdparm ] || command -v hdparm >/dev/null || echo hdparm
    # Not installed: tuned and ansible-core, which read exported recommendations, for their size, and
    # prometheus, whose service would listen at once. Without them these tests are skipped.
    # Clocks that are set in tests, without setting the machine's.
    set -- /usr/lib/*/faketime/libfaketimeMT.so.1
    [ -e "$1" ] || echo libfaketime
    # What the service keeps is tested in PostgreSQL too.
    set -- /usr/lib/postgresql/*/bin/initdb
    [ -x "$1" ] || echo postgresql
    # The settings that are printed for it are held against the server itself.
    [ -x /usr/sbin/mariadbd ] || echo mariadb-server-core
    [ -e /etc/ssl/certs/ca-certificates.crt ] || echo ca-certificates
    # The lines of the documents that ask the service.
    command -v curl >/dev/null || echo curl
    # The page: bundled with npm's tools, tried in a browser.
    command -v node >/dev/null || echo nodejs
    command -v npm >/dev/null || echo npm
    command -v chromium >/dev/null || echo chromium
}

install_packages() {
    say "set-up: installing Debian packages: $*"
    # Lists that are missing or out of date make the first try fail; an update mends both.
    apt_install "$@" >/dev/null 2>&1 || { as_root apt-get update -qq >&2 && apt_install "$@" >&2; }
}

apt_install() { as_root apt-get install -y -qq --no-install-recommends "$@"; }

as_root() {
    if [ "$(id -u)" = 0 ]; then
        DEBIAN_FRONTEND=noninteractive "$@" </dev/null
    else
        sudo -n env DEBIAN_FRONTEND=noninteractive "$@" </dev/null
    fi
}

ensure_packages() {
    # Word splitting is meant: one package name per word.
    # shellcheck disable=SC2046
    set -- $(missing_packages)
    [ $# -gt 0 ] || return 0
    if command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }; then
        install_packages "$@" || die "apt-get could not install: $*"
        # shellcheck disable=SC2046
        set -- $(missing_packages)
        [ $# -gt 0 ] || return 0
    fi
    say "set-up: missing Debian packages: $*"
    say "As root, run:  apt-get update && apt-get install -y $*"
    exit 1
}

# --- the virtual environment ---------------------------------------------------------------------

# Two keys, because a changed pin asks for a new environment and a changed link or entry point only
# for installing this project again. The path counts: an environment cannot be moved.
environment_key() {
    { pwd -P; echo "$PYTHON"; "$PYTHON" -V; cat requirements.txt; } | sha256sum | cut -c1-64
}

project_key() {
    {
        cat pyproject.toml src/iojoule/__init__.py
        for link in src/iojoule/*; do
            if [ -L "$link" ]; then echo "$link $(readlink "$link")"; fi
        done
    } | sha256sum | cut -c1-64
}

# Turns pip's many lines into a count, so that a first run shows that it moves.
show_progress() {
    count=0
    total=$(grep -c '==' requirements.txt)
    while read -r word name _; do
        case $word in
        Collecting)
            count=$((count + 1))
            if [ -t 2 ]; then
                printf '\r\033[K  %d/%d %s' "$count" "$total" "${name%%==*}" >&2
            elif [ $((count % 25)) = 0 ]; then
                say "  $count of up to $total packages found"
            fi
            ;;
        Installing) if [ -t 2 ]; then printf '\r\033[K' >&2; fi; say "  unpacking them" ;;
        esac
    done
}

make_environment() {
    say "set-up: making $VENV with the pinned packages (first time: one to three minutes)"
    rm -rf "$VENV"
    "$PYTHON" -m venv "$VENV" || die "$PYTHON could not make a virtual environment"
    # A pipe hides the status of its left side, so the left side writes the stamp itself.
    # PYTHONUNBUFFERED: progress should appear while it happens.
    {
        PYTHONUNBUFFERED=1 "$VENV/bin/python" -m pip install --disable-pip-version-check \
            --no-input --progress-bar off --require-hashes -r requirements.txt &&
            write_stamp "$PACKAGES_STAMP" "$environment"
    } | show_progress
    holds "$PACKAGES_STAMP" "$environment" ||
        die "pip could not install the pinned packages (its message is above); nothing else was changed, run the same command again"
}

install_project() {
    # What an interrupted installation left would stop pip from installing over it.
    rm -rf "$VENV"/lib/python3*/site-packages/*iojoule*
    "$VENV/bin/python" -m pip install --disable-pip-version-check --no-input --quiet --no-index \
        --no-deps --no-build-isolation -e . || die "pip could not install iojoule itself"
}

holds() { [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]; }

# Renaming is atomic: a stamp is whole or absent.
write_stamp() { printf '%s\n' "$2" >"$1.new" && mv "$1.new" "$1"; }

up_to_date() {
    [ -x "$VENV/bin/python" ] && [ -x "$VENV/bin/iojoule" ] &&
        holds "$PROJECT_STAMP" "$environment $project"
}

# What is built from the sources and not installed: nothing is done where nothing has changed.
build_parts() {
    scripts/build_core.sh
    exec scripts/build_page.sh
}

ensure_packages
command -v "$PYTHON" >/dev/null || die "there is no interpreter $PYTHON (name one with PYTHON=...)"
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    die "$PYTHON is $("$PYTHON" -V 2>&1); 3.11 or newer is needed (name one with PYTHON=...)"

environment=$(environment_key)
project=$(project_key)
if up_to_date; then build_parts; fi

exec 9<scripts/setup.sh
if ! flock -n 9; then
    say "set-up: waiting for another set-up of this checkout"
    flock 9
fi
if up_to_date; then build_parts; fi

rm -f "$PROJECT_STAMP"
if ! holds "$PACKAGES_STAMP" "$environment" || ! "$VENV/bin/python" -m pip --version >/dev/null 2>&1
then
    make_environment
fi
install_project
write_stamp "$PROJECT_STAMP" "$environment $project"
build_parts
