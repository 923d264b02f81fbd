#!/bin/sh
# A search whose trials run on three simulated hosts (namespaces.sh), one of which is
# cut off from the network: the same results as on one host.
#
#   tests/hosts/tune_hosts_test.sh BMUF BMUF_SHARDS        exit 77: skipped
set -eu
bmuf=$1 shards=$2
# shellcheck source=tests/hosts/namespaces.sh
. "$(dirname "$0")/namespaces.sh"
net_limit 250 "$@"

why=$(net_possible) || { echo "skipped: $why"; exit 77; }
work=$(mktemp -d -p /var/tmp)
job=
end() {
    [ -z "$job" ] || kill -9 "$job" 2>/dev/null || :
    net_down
    rm -rf "$work"
}
trap end EXIT
trap 'fail "stopped by a signal, or after its limit of time"' INT TERM HUP
cd "$work"
bmuf=$(net_program "$bmuf") shards=$(net_program "$shards")
fail() { echo "$*"; tail -n 30 ./*.log; exit 1; }

"$shards" train 24 10 20 40 20 >shards.log
cat >tune.ini <<END
[data]
train = train
dev = train
[model]
net = stack:4 linear:16 tanh linear
[train]
epochs = ${EPOCHS-40}
rate = 0.001
[job]
workers = 2
device = cpu
[batch]
sequences = 5
[tune]
rungs = 2
seeds = 2
finalists = 1
END
net_up 3 200mbit
net_use_agent

# search DIR OPTION..: on n1
search() {
    out=$1
    shift
    net_exec 1 "$bmuf" tune tune.ini --out "$out" --trials 5 "$@"
}
(search one --jobs 2) >one.log 2>&1 || fail 'one host'

code=0
(search few --hosts 10.77.0.2 -n 2) >few.log 2>&1 || code=$?
[ $code = 64 ] || fail "exit $code with too few slots"
grep -q 'host 10.77.0.2 has 1 slot, but a trial has 2 ranks' few.log || fail 'no remedy'

search many --hosts 10.77.0.1:2,10.77.0.2,10.77.0.3 >many.log 2>&1 &
job=$!
tries=0
until grep -qs 'starting: .*10.77.0.3:1' many/trials/*.log &&
    grep -ls '"event":"block"' many/trials/*/journal.jsonl >trained; do
    kill -0 "$job" 2>/dev/null || fail 'the search has ended before it used n3'
    tries=$((tries + 1))
    [ $tries -lt 600 ] || fail 'n3 is not used'
    sleep 0.1
done
net_cut 3
wait "$job" || fail "exit $?"
job=
grep -q '4 at a time on 3 hosts' many.log || fail 'not four places'
grep -q 'has lost its host 10.77.0.3 and goes on elsewhere' many.log || fail 'no word of n3'

for host in n1 n2; do
    grep -qs "\"placement\":\"0 $host " many/trials/*/journal.jsonl ||
        fail "no trial ran on $host"
done
rows() { # all but the seconds
    cut -f 1-8,10- "$1/trials.tsv" | sort
}
rows one >one.rows
rows many >many.rows
diff one.rows many.rows || fail 'other results than on one host'
cmp one/best.ini many/best.ini || fail 'another best.ini'
echo "$(wc -l <many.rows) rows, the same on one host and on three, one of which was lost"
