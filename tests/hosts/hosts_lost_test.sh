#!/bin/sh
# Three simulated hosts (namespaces.sh): one is cut off from the network, then
# comes back. The run goes on without it, then with it, to the digest of one
# process, and what is left on that host writes nothing.
#
#   tests/hosts/hosts_lost_test.sh BMUF BMUF_SHARDS        exit 77: skipped
set -eu
bmuf=$1 shards=$2
# shellcheck source=tests/hosts/namespaces.sh
. "$(dirname "$0")/namespaces.sh"
# shellcheck source=tests/hosts/journal.sh
. "$(dirname "$0")/journal.sh"
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
cat >run.ini <<END
[data]
train = train
[model]
net = blstm:48 linear
[train]
epochs = ${EPOCHS-400}
rate = 0.0001
checkpoint_every = 1
[job]
workers = 3
device = cpu
[batch]
sequences = 5
[schedule]
kind = constant
[block]
frames_total = 1800
END
net_up 3 200mbit
net_use_agent

count() { events "$1" run/journal.jsonl; } # EVENT
comes() { # EVENT NUMBER SECONDS
    tries=0
    while n=$(count "$1") && [ "${n:-0}" -lt "$2" ]; do
        kill -0 "$job" 2>/dev/null || fail "the job has ended before $1 $2"
        tries=$((tries + 1))
        [ $tries -lt $(($3 * 10)) ] || fail "no $1 $2 within $3 s"
        sleep 0.1
    done
}
now() { date +%s.%N; }
since() { awk "BEGIN { printf \"%.1f s\", $(now) - $1 }"; }

"$bmuf" train run.ini --out one >one.log 2>&1 || fail 'one process'
net_exec 1 "$bmuf" train run.ini --out run --hosts 10.77.0.1,10.77.0.2,10.77.0.3 >run.log 2>&1 &
job=$!
comes block 20 60
grep -q '"ranks":3' run/journal.jsonl || fail 'not three ranks'

net_cut 3
cut=$(now)
comes start 2 60
comes block "$(($(count block) + 3))" 30
echo "n3 cut off: training again after $(since "$cut"), on $(field ranks run/journal.jsonl) ranks"
grep '"event":"start"' run/journal.jsonl | tail -n 1 | grep -q '"ranks":2' ||
    fail 'not on two ranks'
grep -q 'continuing without 10.77.0.3: ' run.log || fail 'no word of n3'

net_mend 3
back=$(now)
comes start 3 90
comes block "$(($(count block) + 3))" 30
echo "n3 back: training on it after $(since "$back")"
grep '"event":"start"' run/journal.jsonl | tail -n 1 | grep -q '"ranks":3' ||
    fail 'not on three ranks'
grep -q '"reason":"hosts are back"' run/journal.jsonl || fail 'no such restart'

wait "$job" || fail "exit code $?"
job=
digest=$(field digest one/journal.jsonl)
[ "$digest" = "$(field digest run/journal.jsonl)" ] ||
    fail 'other bits than one process'
cmp one/model.safetensors run/model.safetensors || fail 'another model'
echo "digest $digest on one process, and with a host that was lost and came back"
