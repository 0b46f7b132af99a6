#!/usr/bin/env bash
# Builds the container image of HEAD with buildah and tries it: the service must start in it as its
# plain user, with a read-only root, ask for a key and answer. Its bill of materials is kept as
# build/image/sbom.cdx.json.
#
# The base image is made here by debootstrap and not pulled, so that no registry of images is
# needed; isolation is a chroot, so that no further rights are. Everything stays in a temporary
# folder: what is built here serves to try it; docs/service.md says how to build what is run.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/debian.sh
. scripts/debian.sh

say() { printf '\n==== %s\n' "$*"; }
die() {
    printf 'image: %s\n' "$*" >&2
    exit 1
}

[ "$(id -u)" = 0 ] || die "needs root for chroot and mounts: sudo make image"
command -v buildah >/dev/null || die "needs buildah: apt-get install -y buildah"
need_debootstrap

work=$(mktemp -d "${TMPDIR:-/tmp}/iojoule-image.XXXXXXXX")
serving=
remove() {
    status=$?
    trap - EXIT
    [ -z "$serving" ] || kill "$serving" 2>/dev/null || true
    buildah rm --all >/dev/null 2>&1 || true # of the storage below, unmounts them too
    rm -rf --one-file-system "$work"
    exit "$status"
}
trap remove EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

export CONTAINERS_STORAGE_CONF=$work/storage.conf
cat >"$CONTAINERS_STORAGE_CONF" <<END
[storage]
driver = "vfs"
runroot = "$work/run"
graphroot = "$work/graph"
END

say "base image"
make_debian "$work/base"
# What pip is told by the environment of this machine, root's build is told by a file.
install -d "$work/base/root/.config/pip"
{
    echo "[global]"
    for name in $(package_settings | grep '^PIP_' | grep -v '^PIP_CONFIG_FILE$'); do
        key=$(printf '%s' "${name#PIP_}" | tr 'A-Z_' 'a-z-')
        printf '%s = %s\n' "$key" "${!name}"
    done
} >"$work/base/root/.config/pip/pip.conf"
wheels=()
for folder in ${PIP_FIND_LINKS:-}; do
    [ ! -d "$folder" ] || wheels+=(--volume "$folder:$folder:ro")
done
made=$(buildah from scratch)
buildah add --quiet "$made" "$work/base" / >/dev/null
buildah commit --quiet "$made" docker.io/library/debian:12-slim >/dev/null
buildah rm "$made" >/dev/null
rm -rf "$work/base"

say "building"
mkdir "$work/source"
git -c safe.directory='*' archive HEAD | tar -x -C "$work/source"
buildah build --format docker --isolation chroot --pull=never --layers=false "${wheels[@]}" \
    -f "$work/source/deploy/Containerfile" -t iojoule "$work/source"

say "trying"
made=$(buildah from --pull-never iojoule)
root=$(buildah mount "$made")
install -d -o 65532 -g 65532 -m 0700 "$work/state"
# in the image, as its user and with its settings; the root is read-only there by ownership
try() {
    buildah run --isolation chroot --volume "$work/state:/var/lib/iojoule" "$made" -- "$@"
}
try iojoule --version
[ "$(try id -u)" = 65532 ] || die "the image does not run as its plain user"
if try touch /opt/iojoule/written 2>/dev/null; then die "its user can write what it runs"; fi
try iojoule recommend --device samsung-980-pro-1tb --workload ycsb-a -o json >/dev/null
key=$(try iojoule key create --name image --scope read)
port=$((20000 + RANDOM % 20000))
try iojoule serve --host 127.0.0.1 --port "$port" --require-key --log json >"$work/serve.log" 2>&1 &
serving=$!
asked() { # asked PATH [HEADER]: the status
    curl --silent --output /dev/null --write-out '%{http_code}' ${2:+--header "$2"} \
        "http://127.0.0.1:$port$1" || true
}
for _ in $(seq 120); do
    [ "$(asked /healthz)" != 200 ] || break
    kill -0 "$serving" 2>/dev/null || { cat "$work/serve.log"; die "the service ended"; }
    sleep 0.5
done
[ "$(asked /healthz)" = 200 ] || { cat "$work/serve.log"; die "the service does not answer"; }
[ "$(asked /devices)" = 401 ] || die "it answers who has no key"
[ "$(asked /devices "authorization: Bearer $key")" = 200 ] || die "it does not answer its key"
[ "$(asked /ui/)" = 200 ] || die "the page is not in it"

mkdir -p build/image
install -m 644 "$root/opt/iojoule/sbom.cdx.json" build/image/sbom.cdx.json
components=$(.venv/bin/python -c 'import json, sys; print(len(json.load(sys.stdin)["components"]))' \
    <build/image/sbom.cdx.json)
say "passed: $(buildah images --format '{{.Size}}' iojoule), $components packages in build/image/sbom.cdx.json"
