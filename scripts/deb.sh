#!/bin/sh
# Builds dist/iojoule_VERSION_ARCH.deb from the wheel in dist and the pinned packages, with
# debhelper; the packages come from wherever pip gets them, each checked against its hash.
set -eu
cd "$(dirname "$0")/.."

die() {
    printf 'deb: %s\n' "$*" >&2
    exit 1
}
command -v dh >/dev/null || die "needs debhelper: apt-get install -y debhelper"

version=$(.venv/bin/python -c 'import iojoule; print(iojoule.__version__)')
work=build/deb/iojoule-$version
rm -rf build/deb
mkdir -p "$work"
cp -R deploy/debian "$work/debian"
cp dist/iojoule-"$version"-*.whl NOTICES.md "$work/"
cp deploy/iojoule.service deploy/iojoule-exporter.service deploy/iojoule-govern.service "$work/"
.venv/bin/iojoule completion bash >"$work/completion.bash"
PYTHONPATH=scripts .venv/bin/python -c 'import notices; print(notices.hashed_pins("service"))' \
    >"$work/requirements.txt"
cat >"$work/debian/changelog" <<END
iojoule ($version) unstable; urgency=medium

  * See CHANGELOG.md.

 -- iojoule <root@localhost>  $(git log -1 --format=%aD 2>/dev/null || date -R)
END
(cd "$work" && dpkg-buildpackage --build=binary --no-sign --no-check-builddeps) >build/deb/log 2>&1 || {
    tail -30 build/deb/log
    die "dpkg-buildpackage failed; build/deb/log has all it said"
}
cp build/deb/iojoule_"$version"_*.deb dist/
ls dist/iojoule_"$version"_*.deb
