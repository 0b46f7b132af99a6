# A minimal Debian 12 with this machine's way to packages; sourced, with `die` and $work there.
# shellcheck shell=bash
#
# Packages come from wherever this machine gets them: its apt sources, pip and npm settings, proxies
# and certificates are handed in, so no address is written here.

# What this machine's apt asks for bookworm, one "address suite component" per line.
bookworm_sources() {
    # The $(...) are apt's own.
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        awk '$2 ~ /^bookworm/ && $3 == "main"' | sort -u
}

# make_debian FOLDER
make_debian() {
    new=$1
    mirror=$(bookworm_sources | awk '$2 == "bookworm" { print $1; exit }')
    # Without a mirror debootstrap takes its own default.
    debootstrap --variant=minbase bookworm "$new" ${mirror:+"$mirror"} >"$work/debootstrap.log" 2>&1 || {
        tail -20 "$work/debootstrap.log"
        die "debootstrap failed"
    }
    if [ -n "$mirror" ]; then
        bookworm_sources | sed 's/^/deb /' >"$new/etc/apt/sources.list"
    fi
    apt-config dump | grep '^Acquire::' | grep -v '^Acquire::IndexTargets' \
        >"$new/etc/apt/apt.conf.d/50acquire"
    cp -a /etc/apt/auth.conf.d/. "$new/etc/apt/auth.conf.d/" 2>/dev/null || true
    cp -L /etc/resolv.conf /etc/hosts "$new/etc/"
    copy /etc/pip.conf /etc/pip.conf
    copy "$HOME/.config/pip/pip.conf" /etc/xdg/pip/pip.conf
    copy /etc/npmrc /etc/npmrc
    copy "$HOME/.npmrc" /root/.npmrc
    mkdir -p "$new/usr/local/share/ca-certificates"
    cp -a /usr/local/share/ca-certificates/. "$new/usr/local/share/ca-certificates/" 2>/dev/null || true
    copy_certificates
}

# make_mounted_debian FOLDER, in a mount namespace of its own
make_mounted_debian() {
    make_debian "$1"
    mount -t proc proc "$new/proc"
    mkdir -p "$new/dev/shm"
    mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$new/dev/shm" # as on any running Debian
    mkdir -p "$new/dev/pts"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$new/dev/pts"
    ln -sf pts/ptmx "$new/dev/ptmx"
    bind_wheels
}

bind_wheels() {
    for folder in ${PIP_FIND_LINKS:-}; do
        [ -d "$folder" ] || continue
        mkdir -p "$new$folder"
        mount --bind "$folder" "$new$folder"
        mount -o remount,bind,ro "$new$folder"
    done
}

# in_debian USER PATH COMMAND: in the user's home, with nothing set but what leads to packages.
in_debian() {
    home=/root
    [ "$1" = root ] || home=/home/$1
    handed=()
    while IFS= read -r name; do
        handed+=("$name=${!name}")
    done < <(package_settings)
    env -i "${handed[@]}" HOME="$home" LANG=C.UTF-8 PATH="$2" \
        "$(command -v chroot)" --userspec="$1:$1" "$new" /bin/sh -c "cd && $3"
}

copy() {
    if [ -e "$1" ]; then
        mkdir -p "$new$(dirname "$2")"
        cp -L "$1" "$new$2"
    fi
}

copy_certificates() {
    for file in /etc/ssl/certs/ca-certificates.crt "${PIP_CERT:-}" "${SSL_CERT_FILE:-}" \
        "${REQUESTS_CA_BUNDLE:-}" "${NODE_EXTRA_CA_CERTS:-}"; do
        [ -z "$file" ] || copy "$file" "$file"
    done
}

# Names of the settings that lead to packages and are set here, a line each.
package_settings() {
    compgen -e | grep -E '^(PIP_[A-Z_]+|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|NODE_EXTRA_CA_CERTS|(http|https|no|all|HTTP|HTTPS|NO|ALL)_(proxy|PROXY))$'
}

need_debootstrap() {
    if ! command -v debootstrap >/dev/null; then
        say "installing debootstrap"
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq debootstrap </dev/null ||
            die "could not install debootstrap: apt-get update && apt-get install -y debootstrap"
    fi
}
