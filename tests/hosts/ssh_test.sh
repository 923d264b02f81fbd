#!/bin/sh
# Three simulated hosts (namespaces.sh) with sshd: bmuf train --hosts and
# --hostfile start ranks there, with the digest of one process; what keeps a host
# from taking part is told in a line with a remedy, before anything starts.
#
#   tests/hosts/ssh_test.sh BMUF BMUF_SHARDS        exit 77: skipped
set -eu
bmuf=$1 shards=$2
# shellcheck source=tests/hosts/namespaces.sh
. "$(dirname "$0")/namespaces.sh"
# shellcheck source=tests/hosts/journal.sh
. "$(dirname "$0")/journal.sh"
net_limit 500 "$@"

why=$(net_possible) || { echo "skipped: $why"; exit 77; }
for tool in sshd ssh ssh-keygen; do
    command -v $tool >/dev/null || { echo "skipped: no $tool"; exit 77; }
done
pids=
work=$(mktemp -d -p /var/tmp)
# shellcheck disable=SC2086 # a list of numbers
end() {
    [ -z "$pids" ] || kill $pids 2>/dev/null || :
    net_down
    rm -rf "$work"
}
trap end EXIT
trap 'fail "stopped by a signal, or after its limit of time"' INT TERM HUP
cd "$work"
bmuf=$(net_program "$bmuf") shards=$(net_program "$shards")
fail() { echo "$*"; tail -n 20 ./*.log; exit 1; }

"$shards" train 24 10 20 40 20 >shards.log
cat >run.ini <<END
[data]
train = train
[model]
net = blstm:12 linear
[train]
epochs = 2
rate = 0.01
[job]
workers = 4
device = cpu
[batch]
sequences = 5
[schedule]
kind = constant
[block]
frames_total = 1800
END
net_up 3 200mbit

# Keys and configurations of this test alone. n3 allows no key: it would ask for a
# password.
ssh-keygen -q -t ed25519 -N '' -f key
ssh-keygen -q -t ed25519 -N '' -f host_key
cp key.pub allowed
: >nobody
chmod 600 allowed nobody
[ -d /run/sshd ] || mkdir -p /run/sshd
for host in 1 2 3; do
    keys=$work/allowed
    [ $host != 3 ] || keys=$work/nobody
    cat >sshd$host.conf <<END
ListenAddress 10.77.0.$host
HostKey $work/host_key
AuthorizedKeysFile $keys
PermitRootLogin yes
StrictModes no
UsePAM no
PidFile none
END
    net_exec $host "$(command -v sshd)" -D -e -f "$work/sshd$host.conf" \
        >sshd$host.log 2>&1 </dev/null &
    pids="$! $pids"
done
cat >ssh.conf <<END
IdentityFile $work/key
IdentitiesOnly yes
UserKnownHostsFile $work/known
GlobalKnownHostsFile /dev/null
StrictHostKeyChecking accept-new
END
export OMPI_MCA_plm_rsh_args="-F $work/ssh.conf"
export OMPI_MCA_btl=tcp,self # no shared memory between namespaces

on() { net_on 1 timeout -k 9 100 "$@"; }
# refuses CODE TEXT ARGS..: a command that starts nothing
refuses() {
    wanted=$1 text=$2 code=0
    shift 2
    on "$bmuf" train run.ini --out "${run-refused}" "$@" >refused.log 2>&1 || code=$?
    [ $code = "$wanted" ] || fail "exit $code, not $wanted: $*"
    grep -q -e "$text" refused.log || fail "missing text: $text"
    [ ! -e refused ] || fail "a run was started: $*"
}

for tries in $(seq 50); do
    net_on 1 ssh -F "$work/ssh.conf" -o BatchMode=yes n2 true 2>ssh.log && break
    [ "$tries" != 50 ] || fail 'sshd does not start'
    sleep 0.2
done
"$bmuf" train run.ini --out one >one.log 2>&1 || fail 'one process'
digest=$(field digest one/journal.jsonl)
[ -n "$digest" ] || fail 'no digest in the journal of one process'

on "$bmuf" train run.ini --out two --hosts n1:2,n2:2 >two.log 2>&1 ||
    fail 'two hosts'
[ "$digest" = "$(field digest two/journal.jsonl)" ] ||
    fail 'other bits on two hosts than in one process'
grep -q '"ranks":4' two/journal.jsonl || fail 'not four ranks'
[ "$(field placement two/journal.jsonl | grep -c '0 n1 .*1 n1 .*2 n2 .*3 n2')" = 1 ] ||
    fail 'the journal has other places'
for host in n1 n2; do
    left=$(find "$net_work/tmp.$host" -name 'bmuf-*' | wc -l)
    [ "$left" = 0 ] || fail "$left folders are left on $host"
done
[ -z "$(find . -maxdepth 1 -name '.bmuf-seen-*')" ] || fail 'a mark is left'

printf '# hosts of the test\nn1 slots=1 max_slots=2\n\nn2 slots=1 # the second\n' >hosts
on "$bmuf" train run.ini --out three --hostfile hosts -n 3 >three.log 2>&1 ||
    fail 'a hostfile'
[ "$digest" = "$(field digest three/journal.jsonl)" ] ||
    fail 'other bits with a hostfile'
on "$bmuf" train run.ini --out dry --hosts n1:1,n2:2 --interface 10.77.0.0/24 \
    --dry-run >dry.log 2>&1 || fail '--dry-run'
grep -q '^rank 2  *n2: CPUs ' dry.log || fail 'no place of rank 2'
grep -q '^command .*mpirun -np 3 .*--host n1:1,n2:2 .*btl_tcp_if_include 10.77.0.0/24' \
    dry.log || fail 'no command'
[ ! -e dry ] || fail '--dry-run has started a run'

# What is printed is the command that runs.
command=$(sed -n 's/^command  *//p' dry.log | sed "s/--out dry/--out by-hand/")
on sh -c "OMPI_ALLOW_RUN_AS_ROOT=1 \
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 $command" >hand.log 2>&1 ||
    fail 'the printed command does not run'
[ "$digest" = "$(field digest by-hand/journal.jsonl)" ] ||
    fail 'other bits with the printed command'

refuses 69 'nowhere: no host of this name' --hosts n1,nowhere
refuses 69 'n3: ssh asks for a password; .*ssh-copy-id n3' --hosts n1,n3
refuses 69 '2 of 3 hosts cannot take part' --hosts nowhere,n2,n3
refuses 69 '10.77.0.9: ssh fails .*No route' --hosts n1,10.77.0.9
refuses 64 '5 ranks, but the hosts have 4 slots' --hosts n1:2,n2:2 -n 5
refuses 66 'none: ' --hostfile none
refuses 64 'both name hosts' --hostfile hosts --hosts n1

# The doctor has one rank on each host, and says which hosts cannot take part.
on "$bmuf" doctor run.ini --hosts n1:2,n2:2 >doctor.log 2>&1 ||
    fail 'the doctor on two hosts'
grep -q '^ok  *network  *1 pair of hosts' doctor.log || fail 'no pair of hosts'
code=0
on "$bmuf" doctor --hosts n2,n3,nowhere >doctor.log 2>&1 || code=$?
[ $code = 69 ] || fail "exit $code of the doctor, not 69"
grep -q '^error  *start  *n3: ssh asks for a password' doctor.log ||
    fail 'the doctor has no word of the password'
grep -q '^error  *start  *nowhere: no host of this name' doctor.log ||
    fail 'the doctor has no word of the name'

# Packing: 520 numbers are 40 frames of 13. Only n1 has /tmp/only.mfc, and only its
# rank sees --out.
{ printf '\000\000\002\010'; head -c 2080 /dev/zero; } >x.mfc
cp x.mfc "$net_work/tmp.n1/only.mfc"
for i in $(seq 39); do
    printf '{"id": "%s", "feats": "x.mfc", "text": "ab"}\n' "$i"
done >same.jsonl
{ cat same.jsonl; echo '{"id": "o", "feats": "/tmp/only.mfc"}'; } >other.jsonl
"$bmuf" pack --features same.jsonl --out set-1 >pack.log 2>&1 || fail 'packing'
on "$bmuf" pack --features same.jsonl --out /tmp/set --hosts n1:2,n2:2 \
    >pack.log 2>&1 || fail 'packing on two hosts'
diff -r set-1 "$net_work/tmp.n1/set" ||
    fail 'other shards of two hosts than of one process'
for most in 1 5; do
    code=0
    on "$bmuf" pack --features other.jsonl --out /tmp/set-$most --hosts n1,n2 \
        --max-left-out $most >pack.log 2>&1 || code=$?
    [ "$code" = $((most == 1 ? 65 : 66)) ] || fail "exit $code of packing"
    grep -q 'host n2.*all hosts must see the same files' pack.log ||
        fail 'no word of the host that lacks a file'
    [ "$(grep -c ^bmuf: pack.log)" = 1 ] || fail 'more than one message'
    [ ! -e "$net_work/tmp.n1/set-$most" ] || fail 'something was packed'
done

# On n2 things are not as on n1: in folders that the hosts do not share.
net_on 1 sh -c "mkdir -p /tmp/here && cd /tmp/here && cp -r $work/run.ini $work/train . &&
    exec timeout 100 '$bmuf' train run.ini --out run --hosts n1,n2" \
    >folder.log 2>&1 && fail 'a folder that n2 does not have'
grep -q 'n2: it has no folder /tmp/here' folder.log || fail 'no word of the folder'
mkdir "$net_work/tmp.n1/runs" "$net_work/tmp.n2/runs"
run=/tmp/runs/a
refuses 69 "n2: it does not see the run's folder /tmp/runs/a" --hosts n1,n2
cp "$bmuf" "$net_work/tmp.n1/bmuf"
net_on 1 timeout 100 /tmp/bmuf train run.ini --out other --hosts n1,n2 \
    >program.log 2>&1 && fail 'a program that n2 does not have'
grep -q 'n2: it has no program /tmp/bmuf' program.log || fail 'no word of the program'
printf '#!/bin/sh\necho "{\\"version\\": \\"0.0.1\\", \\"mpi\\": \\"x\\"}"\n' \
    >"$net_work/tmp.n2/bmuf"
chmod +x "$net_work/tmp.n2/bmuf"
net_on 1 timeout 100 /tmp/bmuf train run.ini --out other --hosts n1,n2 \
    >version.log 2>&1 && fail 'another version on n2'
grep -q 'n2: its bmuf is 0.0.1, and here it is' version.log ||
    fail 'no word of the version'
code=0
net_on 1 timeout 100 /tmp/bmuf doctor --hosts n1,n2 >doctor.log 2>&1 || code=$?
[ $code = 69 ] || fail "exit $code of the doctor with another version, not 69"
grep -q '^error  *start  *.*n2: its bmuf is 0.0.1' doctor.log ||
    fail 'the doctor has no word of the version'
echo "digest $digest in one process, on two hosts, with a hostfile and by hand"
