#!/bin/sh
# Three simulated hosts (namespaces.sh) with links of 200 Mbit/s: the models of
# bmuf and ssgd equal those of one rank, and the traffic of ranks uses the links.
#
#   tests/hosts/namespaces_test.sh BMUF BMUF_SHARDS        exit 77: skipped
set -eu
bmuf=$1 shards=$2
# shellcheck source=tests/hosts/namespaces.sh
. "$(dirname "$0")/namespaces.sh"
# shellcheck source=tests/hosts/journal.sh
. "$(dirname "$0")/journal.sh"
net_limit 140 "$@"

why=$(net_possible) || { echo "skipped: $why"; exit 77; }
work=$(mktemp -d)
trap 'net_down; rm -rf "$work"' EXIT
trap 'fail "stopped by a signal, or after its limit of time"' INT TERM HUP
cd "$work"
export TMPDIR="$work"
fail() { echo "$*"; tail -n 20 ./*.log; exit 1; }

"$shards" train 24 10 20 40 20 >shards.log
cat >run.ini <<END
[data]
train = train
[model]
net = blstm:48 linear
[train]
epochs = 2
rate = 0.01
[job]
workers = 3
device = cpu
trace = blocks 1:3
[batch]
sequences = 5
[sgd]
clip = 5
[schedule]
kind = constant
[block]
frames_total = 1800
END
net_up 3 200mbit
echo "three hosts, 200mbit, delay: $net_delay"

sent() { echo $(($(net_sent 1) + $(net_sent 2) + $(net_sent 3))); }

# 200 Mbit/s are 0.025 GB/s; the burst of the filter adds little.
net_launch 3 "$bmuf" bench --only link --quick --json >link.log 2>&1 ||
    fail 'bench --only link fails'
awk '/gb_per_s/ { good = $2 > 0 && $2 < 0.026 } END { exit !good }' link.log ||
    fail 'the measured rate of the link is not near 200 Mbit/s'

for strategy in bmuf ssgd; do
    "$bmuf" train run.ini --out "$strategy-1" --set train.strategy=$strategy \
        >$strategy-1.log 2>&1 || fail "$strategy on one rank"
    before=$(sent)
    net_launch 3 "$bmuf" train run.ini --out "$strategy-3" \
        --set train.strategy=$strategy >$strategy-3.log 2>&1 ||
        fail "$strategy on three hosts"
    bytes=$(($(sent) - before))
    journal=$strategy-3/journal.jsonl
    one=$(field digest $strategy-1/journal.jsonl)
    three=$(field digest $journal)
    [ "digest $one" != 'digest ' ] || fail "$strategy: no digest in the journal"
    [ "$one" = "$three" ] ||
        fail "$strategy: digest $one on one rank, $three on three hosts"
    # A sum of M bytes over N ranks moves at least 2 (N - 1) M.
    least=$(($(field blocks $journal) * 2 * 2 * 4 * $(field weights $journal)))
    [ "$bytes" -ge "$least" ] ||
        fail "$strategy: $bytes bytes on the link, of at least $least"
    "$bmuf" trace $strategy-3 >table.log || fail "$strategy: no trace"
    for host in 1 2 3; do
        grep -q "\"rank $((host - 1)) on n$host\"" $strategy-3/trace.json ||
            fail "$strategy: no trace of n$host"
    done
    echo "$strategy: digest $one, $bytes bytes on the link"
done
