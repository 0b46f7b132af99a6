#!/bin/sh
# Runs the linters and, beside them, the tests; shows both, the tests last, so that whoever reads
# only the end sees pytest's own closing line. `check.sh lint` leaves the tests out.
set -eu
cd "$(dirname "$0")/.."
mkdir -p build
log=build/pytest.log
tests=
failed=

# What passes is one line; what fails shows all it said.
step() {
    name=$1
    shift
    if said=$("$@" 2>&1); then
        printf '== %s: passed\n' "$name"
    else
        printf '== %s: FAILED\n%s\n' "$name" "$said"
        failed="$failed [$name]"
    fi
}

stop_tests() { [ -z "$tests" ] || kill "$tests" 2>/dev/null || true; }
trap stop_tests EXIT
trap 'exit 130' INT TERM

if [ "${1:-}" != lint ]; then
    # Folders of which tests/conftest.py marks every test are not even imported, in three workers each.
    .venv/bin/python -m pytest -n 3 --dist loadfile -m "not slow and not bench and not qemu and not soak" \
        --ignore=tests/end_to_end --ignore=tests/bench --ignore=tests/qemu >"$log" 2>&1 &
    tests=$!
fi

step "lint (ruff)" .venv/bin/ruff check --quiet .
step "format (ruff)" .venv/bin/ruff format --quiet --check .
step "types (mypy)" .venv/bin/mypy
step "page (tsc, biome)" scripts/build_page.sh check
step "import layers (import-linter)" .venv/bin/lint-imports --no-cache --no-logo

[ -z "$failed" ] || printf '== FAILED:%s\n' "$failed"
if [ -n "$tests" ]; then
    echo "== pytest"
    tail -n +1 -f --pid="$tests" "$log"
    wait "$tests" || failed="$failed pytest"
fi
[ -z "$failed" ]
