#!/bin/sh
# Reads of a drive at 4 to 64 KiB and depth 1 to 64; these results are of the virtual drive
# (`iojoule lab up`). Usage: run.sh /dev/nvme0n1 [SECONDS]
set -eu
for bytes in 4k 16k 64k; do
    for depth in 1 4 16 64; do
        fio --name=reads --filename="$1" --readonly --direct=1 --ioengine=libaio --rw=randread \
            --bs="$bytes" --iodepth="$depth" --time_based --runtime="${2:-30}" \
            --output-format=json --output="randread-$bytes-$depth.json"
    done
done
