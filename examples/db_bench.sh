#!/bin/sh
# Energy of a read of RocksDB on the drive that is mounted at /tmp/bench/mnt, as in pgbench.sh
# (docs/measure-command.md). Needs root and Debian's rocksdb-tools. Usage: db_bench.sh /dev/NODE
set -eu
drive=$1
db_bench --benchmarks=fillrandom --db=/tmp/bench/mnt/rocks --num=50000 --value_size=400 --compression_type=none
iojoule measure command --drive "$drive" --power powersensor3:/tmp/bench/lab/powersensor3 --rapl-root /tmp/bench/lab/powercap \
    --metric 'gets=readrandom .* ([0-9]+) operations' --work gets --unit get --idle 15 --repeat 3 --settle 10 --out /tmp/bench/t16 -- \
    db_bench --benchmarks=readrandom --use_existing_db=1 --db=/tmp/bench/mnt/rocks --num=50000 --value_size=400 \
    --compression_type=none --use_direct_reads=1 --cache_size=1048576 --threads=16 --duration=15
