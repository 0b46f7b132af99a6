#!/bin/sh
# Runs the linters and, beside them, the tests; shows both, the tests last, so that whoever reads
# only the end sees pytest's own closing line. `check.sh lint` leaves the tests out.
set -eu
cd "$(dirname "$0")/.."
mkdir -p build
log=build/pytest.log
tests=
failed=

step() {
    name=$1
    shift
    printf '== %s\n' "$name"
    "$@" || failed="$failed $name"
}

stop_tests() { [ -z "$tests" ] || kill "$tests" 2>/dev/null || true; }
trap stop_tests EXIT
trap 'exit 130' INT TERM

if [ "${1:-}" != lint ]; then
    .venv/bin/python -m pytest -m "not slow and not bench" >"$log" 2>&1 &
    tests=$!
fi

step "ruff check" .venv/bin/ruff check --quiet .
step "ruff format" .venv/bin/ruff format --quiet --check .
step "mypy" .venv/bin/mypy
step "import layers" .venv/bin/lint-imports --no-cache --verbose

[ -z "$failed" ] || printf '== FAILED:%s\n' "$failed"
if [ -n "$tests" ]; then
    echo "== pytest"
    tail -n +1 -f --pid="$tests" "$log"
    wait "$tests" || failed="$failed pytest"
fi
[ -z "$failed" ]
