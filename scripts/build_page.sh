#!/bin/sh
# Bundles the web page into api/page/built/, and does nothing when it is up to date.
#
#   build_page.sh         the page
#   build_page.sh check   its types and its linter
set -eu
cd "$(dirname "$0")/.."
page=api/page
modules=$page/node_modules

say() { printf '%s\n' "$*" >&2; }

sources() { find $page/src $page/package.json $page/package-lock.json $page/tsconfig.json $page/build.mjs "$@"; }

# Packages first, exactly those of the lock file by their hashes; nothing is run that one of them
# brings. The lock file names no address, so it works with any mirror (.npmrc keeps it so), and must
# hold the packages of all platforms: `npm ci` refuses one that leaves some out.
if [ ! -f $modules/installed.stamp ] || [ $page/package-lock.json -nt $modules/installed.stamp ]; then
    say "set-up: fetching the page's libraries"
    npm ci --prefix $page --ignore-scripts --no-audit --no-fund --loglevel=error >&2
    touch $modules/installed.stamp
fi

# The page's types are those of the service's own description.
description=build/openapi.json
types=$page/src/api/schema.d.ts
if [ ! -f $description ] || [ ! -f $types ] ||
    [ -n "$(find api datasets recommender -name '*.py' -newer $description | head -n 1)" ]; then
    mkdir -p build
    .venv/bin/python -m iojoule.api.http.openapi >$description.new
    if [ ! -f $types ] || ! cmp -s $description.new $description; then
        $modules/.bin/openapi-typescript $description.new --default-non-nullable false -o $types >/dev/null
    fi
    mv $description.new $description
fi

if [ "${1:-}" = check ]; then
    $modules/.bin/tsc --noEmit -p $page
    cd $page
    exec node_modules/.bin/biome ci --colors=off --error-on-warnings
fi

built=$page/built/index.html
if [ -f $built ] && [ -z "$(sources -newer $built | head -n 1)" ]; then exit 0; fi
cd $page
exec node build.mjs
