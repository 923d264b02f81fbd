#!/bin/sh
# Slurm on two simulated hosts (slurm.sh): the batch script of docs/jobs/cluster.md,
# srun with PMIx and without, trainings side by side in one job. All end with the
# digest of one process; a job that is preempted ends with 75, waits in the queue
# again, and resumes.
#
#   tests/hosts/slurm_test.sh BMUF BMUF_SHARDS        exit 77: skipped
set -eu
bmuf=$1 shards=$2
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/hosts/namespaces.sh
. "$here/namespaces.sh"
# shellcheck source=tests/hosts/slurm.sh
. "$here/slurm.sh"
# shellcheck source=tests/hosts/journal.sh
. "$here/journal.sh"
net_limit 500 "$@"

why=$(net_possible) || { echo "skipped: $why"; exit 77; }
why=$(slurm_possible) || { echo "skipped: $why"; exit 77; }
work=$(mktemp -d -p /var/tmp)
trap 'slurm_down; net_down; rm -rf "$work"' EXIT
trap 'fail "stopped by a signal, or after its limit of time"' INT TERM HUP
cd "$work"
bmuf=$(net_program "$bmuf") shards=$(net_program "$shards")
fail() { echo "$*"; tail -n 20 ./*.log; exit 1; }
run() { # COMMAND..: srun on the first host, for at most 100 s
    slurm_on timeout -k 9 100 srun "$@"
}

"$shards" train 24 10 20 40 20 >shards.log
cat >my.ini <<END
[data]
train = train
[model]
net = blstm:48 linear
[train]
epochs = 24
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
"$bmuf" train my.ini --out one >one.log 2>&1 || fail 'one process'
digest=$(field digest one/journal.jsonl)
[ -n "$digest" ] || fail 'no digest in the journal of one process'
same() { # RUN
    [ "$digest" = "$(field digest "$1/journal.jsonl")" ] ||
        fail "$1: other bits than in one process"
}

net_up 2 200mbit
slurm_up "$work/slurm" || fail 'Slurm does not start'
mkdir bin
ln -s "$bmuf" bin/bmuf
export PATH="$work/bin:$PATH"

# The script of the page, with its name of the run.
sed -n '/^<!-- tests.hosts.slurm_test.sh/,/^```$/p' "$here/../../docs/jobs/cluster.md" |
    sed '1,2d; $d' >job.sh
grep -q 'bmuf train my.ini --out run/1 &' job.sh || fail 'no script in docs/jobs/cluster.md'
job=$(slurm_on sbatch --parsable -o job.log job.sh)
tries=300
until [ -e run/1/journal.jsonl ] && [ "$(events block run/1/journal.jsonl)" -ge 3 ]; do
    [ $((tries -= 1)) -gt 0 ] || fail 'the job does not train'
    sleep 0.1
done
slurm_on scancel --batch --signal=USR1 "$job"
code=$(slurm_wait "$job") || fail 'the job does not end'
[ "$code" = 0 ] || fail "the job ends with $code"
same run/1
[ "$(events start run/1/journal.jsonl)" = 2 ] || fail 'the job was not requeued once'
grep -q '"reason":"stopped"' run/1/journal.jsonl || fail 'no rank was told to stop'
grep -q '"ranks":4' run/1/journal.jsonl || fail 'not four ranks'
grep -q '"placement":"0 n1 .*; 1 n1 .*; 2 n2 .*; 3 n2 ' run/1/journal.jsonl ||
    fail 'the ranks are elsewhere'

run --mpi=pmix -N 2 -n 4 bmuf train my.ini --out run/2 \
    >srun.log 2>&1 || fail 'srun with PMIx'
same run/2
# Signals to a step: all ranks end with 75, and resume.
run --mpi=pmix -N 2 -n 2 bmuf train my.ini --out run/3 >step.log 2>&1 &
step=$!
tries=300
until [ -e run/3/journal.jsonl ] && [ "$(events block run/3/journal.jsonl)" -ge 3 ]; do
    [ $((tries -= 1)) -gt 0 ] || fail 'the step does not train'
    sleep 0.1
done
job=$(slurm_on squeue -h -o %i | tail -n 1)
slurm_on scancel --signal=USR1 "$job"
code=0
wait $step || code=$?
[ $code = 75 ] || fail "the step ends with $code, not 75"
run --mpi=pmix -N 1 -n 2 bmuf train my.ini --out run/3 >>step.log 2>&1 ||
    fail 'the step does not resume'
same run/3

# Where ranks cannot find each other nothing is trained.
refuses() { # TEXT SRUN'S OPTIONS.. -- OPTIONS..
    text=$1 code=0
    shift
    run "$@" >refused.log 2>&1 || code=$?
    [ $code = 64 ] || fail "exit $code, not 64: srun $*"
    [ "$(grep -c "$text" refused.log)" = 1 ] || fail "not one line with: $text"
    [ ! -e refused ] || fail "a run was started: srun $*"
}
refuses 'without PMIx.*srun --mpi=pmix' -N 2 -n 2 --mpi=none bmuf train my.ini \
    --out refused
refuses 'without PMIx.*srun --mpi=pmix' -N 2 -n 2 --mpi=pmi2 bmuf train my.ini \
    --out refused -n 2
refuses 'drop -n, or call bmuf train without srun' -N 2 -n 2 --mpi=pmix \
    bmuf train my.ini --out refused -n 2
# One task trains alone, with PMIx or without.
for kind in none pmix; do
    run -n 1 --mpi=$kind bmuf train my.ini --out run/$kind \
        >alone.log 2>&1 || fail "one task with $kind"
    same run/$kind
done
# Trainings side by side in a job of two hosts, each where its task is; ranks that a
# task starts stay there, too.
cat >side.sh <<'END'
#!/bin/sh
srun -N 1 -n 1 --exact --mpi=none -w n1 bmuf train my.ini --out run/4 &
first=$!
srun -N 1 -n 1 --exact --mpi=none -w n2 bmuf train my.ini --out run/5 -n 2
second=$?
wait $first && exit $second
END
job=$(slurm_on sbatch --parsable -N 2 -n 2 -o side.log side.sh)
code=$(slurm_wait "$job") || fail 'the job with two trainings does not end'
[ "$code" = 0 ] || fail "the job with two trainings ends with $code"
same run/4
same run/5
grep -q '"placement":"0 n1 [^;]*"' run/4/journal.jsonl || fail 'run/4 is not on n1'
grep -q '"placement":"0 n2 [^;]*; 1 n2 [^;]*"' run/5/journal.jsonl ||
    fail 'run/5 is not on n2'
echo "digest $digest in one process, by sbatch, after preemption, and by srun"
