#!/bin/sh
# Energy of a transaction of PostgreSQL, on the virtual drive (docs/measure-command.md). On a real
# drive leave out `iojoule lab` and name its node in $drive and its instrument in --power.
# Needs root and Debian's postgresql and postgresql-contrib.
set -eu
mkdir -p /tmp/bench
iojoule lab up --dir /tmp/bench/lab
drive=$(python3 -c 'import json; print(json.load(open("/tmp/bench/lab/lab.json"))["drive"])')
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
mkfs.ext4 -q -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 "$drive"
mkdir /tmp/bench/mnt /tmp/bench/socket && mount "$drive" /tmp/bench/mnt
mkdir /tmp/bench/mnt/cluster && chown postgres /tmp/bench/mnt/cluster /tmp/bench/socket
as="runuser -u postgres --"
$as $bin/initdb -D /tmp/bench/mnt/cluster/data -A trust
$as $bin/pg_ctl -D /tmp/bench/mnt/cluster/data -w -l /tmp/bench/socket/log \
    -o "-c listen_addresses='' -c unix_socket_directories=/tmp/bench/socket" start
$as pgbench -h /tmp/bench/socket -q -i -s 3 postgres

iojoule measure command --drive "$drive" --power powersensor3:/tmp/bench/lab/powersensor3 --rapl-root /tmp/bench/lab/powercap \
    --metric 'transactions=actually processed: ([0-9]+)' --metric 'latency=latency average = ([0-9.]+ ms)' \
    --work transactions --unit transaction --idle 15 --repeat 3 --settle 10 --sync --out /tmp/bench/c8 -- \
    $as pgbench -h /tmp/bench/socket -c 8 -T 20 postgres

$as $bin/pg_ctl -D /tmp/bench/mnt/cluster/data -m fast -w stop
umount /tmp/bench/mnt && iojoule lab down --dir /tmp/bench/lab
