#!/bin/sh
# The whole way on a machine without an NVMe drive: a virtual one is set up, measured with the real
# fio and nvme-cli and a PowerSensor3's protocol, and what was measured is compared with what really
# happened in it; a profile is fitted and asked for a recommendation, and its predictions, also
# between the measured sizes, and what it recommends are compared with the drive's true physics.
# Leaves nothing behind but its results.
#
#   lab_demo.sh [FOLDER]    where the results go (default build/lab-demo; made anew)
set -eu
cd "$(dirname "$0")/.."

out=${1:-build/lab-demo}
iojoule=.venv/bin/iojoule
rm -rf "$out"
mkdir -p "$out"
lab=$(mktemp -d)/lab

trap '"$iojoule" lab down --dir "$lab" || true; rmdir "${lab%/lab}" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM

step() { printf '\n== %s\n' "$*"; }

step "a virtual drive: iojoule lab up"
"$iojoule" lab up --dir "$lab" >"$out/lab.json"
field() { sed -n "s/^  \"$1\": \"\(.*\)\".*/\1/p" "$out/lab.json"; }

step "measure it: iojoule measure run --plan quick-lab"
IOJOULE_JOURNALS="$(cd "$out" && pwd)/state" "$iojoule" lab run --dir "$lab" -- "$PWD/$iojoule" measure run \
    --drive "$(field drive)" --controller "$(field controller)" \
    --power "powersensor3:$(field powersensor3)" --rapl-root "$(field rapl_root)" \
    --plan quick-lab --out "$out/campaign" --serial "$(field serial)"

step "the verdict on each run: iojoule measure check"
"$iojoule" measure check "$out/campaign"

step "compare with what really happened: iojoule lab compare"
"$iojoule" lab compare "$out/campaign" --dir "$lab"
"$iojoule" lab compare "$out/campaign" --dir "$lab" -o json >"$out/compared.json"

step "fit it: iojoule fit"
"$iojoule" fit "$out/campaign" -o "$out/profile.json"

step "ask: iojoule recommend"
"$iojoule" recommend --profile "$out/profile.json" --workload examples/lab.toml
"$iojoule" recommend --profile "$out/profile.json" --workload examples/lab.toml -o json \
    >"$out/recommendation.json" 2>/dev/null

step "compare predictions and the recommendation with the true physics: iojoule lab judge"
judge() {
    "$iojoule" lab judge "$out/profile.json" --recommendation "$out/recommendation.json" \
        --workload examples/lab.toml "$@"
}
judge
judge -o json >"$out/judged.json"
