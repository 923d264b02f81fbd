#!/bin/sh
# bmuf doctor on simulated hosts (namespaces.sh) with planted faults: a slow
# link, another shared folder, few open files on one host, a small /dev/shm, a
# wrong host name.
#
#   tests/hosts/doctor_test.sh BMUF        exit 77: skipped
set -eu
bmuf=$1
# shellcheck source=tests/hosts/namespaces.sh
. "$(dirname "$0")/namespaces.sh"
net_limit 250 "$@"

why=$(net_possible) || { echo "skipped: $why"; exit 77; }
work=$(mktemp -d)
trap 'net_down; rm -rf "$work"' EXIT
trap 'fail "stopped by a signal, or after its limit of time"' INT TERM HUP
cd "$work"
export TMPDIR="$work"
fail() { echo "$*"; cat out log; exit 1; }
says() { grep -q "$1" out || fail "not in the output: $1"; }
doctor() { # CODE RANKS ARGS..
    code=0 want=$1 ranks=$2
    shift 2
    net_launch "$ranks" "$bmuf" doctor "$@" >out 2>log || code=$?
    [ "$code" = "$want" ] || fail "exit code $code instead of $want"
}

net_up 3 400mbit
mkdir shared other

# All is well. 400 Mbit/s are 0.05 GB/s in each direction.
doctor 0 3 --folder shared
says '^ok .* program '
says '^ok .* folder .*other ranks see files within'
says '^ok .* clock .*clocks differ by at most'
says '^ok .* network .*3 pairs of hosts'
[ -z "$(ls -A shared)" ] || fail 'files are left in the folder'

# Its JSON is a network for bmuf scale. On a busy machine a link is measured as slower
# than it is: three times at most.
near() {
    awk '/"bandwidth"/ { gsub(/[^0-9.e-]/, "", $2); if ($2 > 0.01 && $2 < 0.06) good = 1 }
        END { exit !good }' out
}
for time in 1 2 3; do
    doctor 0 2 --folder shared --json
    ! near || break
    [ $time -lt 3 ] || fail 'the bandwidth is not near 0.05 GB/s'
done
cp out net.json
grep -q '"would_start": true' out || fail 'would_start is not true'
cat >journal.jsonl <<'END'
{"event":"start","workers":1,"ranks":1,"strategy":"bmuf","net":"linear","weights":1000000}
{"event":"block","frames":1000,"batches":10,"seconds":1,"compute_s":1,"backward_s":0.5,"stall_s":0}
{"event":"block","frames":1000,"batches":10,"seconds":1,"compute_s":1,"backward_s":0.5,"stall_s":0}
END
"$bmuf" scale . --network ./net.json --workers 1,2 >out 2>log ||
    fail 'scale does not read what doctor has measured'

# A slow link: the third host has a tenth of the bandwidth.
net_in 3 tc qdisc change dev eth0 root handle 1: tbf rate 40mbit burst 64kb \
    latency 500ms
doctor 0 3 --folder shared
says '^warning  network .*rank . on n. and rank 2 on n3: 0.00'
net_in 3 tc qdisc change dev eth0 root handle 1: tbf rate 400mbit burst 64kb \
    latency 500ms

# A host whose folder is another one of the same name; and few open files there.
cat >wrapper <<END
#!/bin/sh
if [ "\$(hostname)" = n2 ] && [ "\${OMPI_COMM_WORLD_RANK-}" = 1 ]; then
    [ "$work" = "\$PWD" ] || exit 1
    case \$FAULT in
        folder) exec unshare -m sh -c 'mount --bind other shared && exec "\$@"' \\
            sh "$bmuf" "\$@" ;;
        files) ulimit -n 60 ;;
    esac
fi
exec "$bmuf" "\$@"
END
chmod +x wrapper
plain() { # FAULT: two ranks by a plain mpirun
    FAULT=$1 net_mpirun 2 1 -x FAULT ./wrapper doctor --folder shared \
        >out 2>log
}
if plain folder; then fail 'different folders are not found'; fi
says '^error    folder .*n2.*shared is not the folder of rank 0'
if plain files; then fail 'few open files are not found'; fi
says '^error    limits .*n2: open files: limited to 60'

# A small /dev/shm, of a container for example.
code=0
# shellcheck disable=SC2016 # the inner shell's
unshare -m sh -c 'mount -t tmpfs -o size=4m none /dev/shm && exec "$0" doctor' \
    "$bmuf" >out 2>log || code=$?
[ "$code" = 0 ] || fail "exit code $code with a small /dev/shm"
says '^warning  limits   /dev/shm: 4 MB are free'

# A name that no host has. The others are not asked for anything.
code=0
"$bmuf" doctor --hosts localhost,no-such-host.invalid --json >out 2>log ||
    code=$?
[ "$code" = 69 ] || fail "exit code $code with a wrong host name"
says '"check": "start"'
says 'no-such-host.invalid'
says '"would_start": false'
echo 'doctor: six faults found on three hosts'
