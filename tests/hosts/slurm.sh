# shellcheck shell=sh
#
# Slurm on two simulated hosts (namespaces.sh) of two cores each. To be sourced by
# root, after namespaces.sh.
#
#   slurm_possible   prints the reason and fails if this machine cannot
#   slurm_up FOLDER  starts it, with its key, its configuration and its state in
#                    FOLDER; exports SLURM_CONF
#   slurm_on COMMAND..  runs a command of Slurm on the first host
#   slurm_wait JOB   waits until a job has ended; prints its exit code
#   slurm_down       ends all that slurm_up started; for a trap, before net_down

slurm_possible() {
    for tool in munged slurmctld slurmd sbatch srun scontrol; do
        command -v $tool >/dev/null || { echo "$tool is not installed"; return 1; }
    done
}

slurm_start() { # NAME HOST COMMAND..: in the background
    slurm_name=$1 slurm_host=$2
    shift 2
    # slurmd looks for control groups, which it does not use here.
    # shellcheck disable=SC2016
    net_exec "$slurm_host" sh -c 'mount -t tmpfs none /sys/fs/cgroup; exec "$@"' \
        sh "$@" >"$slurm_folder/$slurm_name.out" 2>&1 </dev/null &
    slurm_pids="$! $slurm_pids"
}

slurm_up() { # FOLDER
    slurm_folder=$1 slurm_pids=
    mkdir -p "$slurm_folder/state" "$slurm_folder/spool"
    chmod 755 "$slurm_folder"
    (umask 077 && head -c 1024 /dev/urandom >"$slurm_folder/munge.key")
    cat >"$slurm_folder/slurm.conf" <<END
ClusterName=simulated
SlurmctldHost=n1(10.77.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$slurm_folder/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation=$slurm_folder/state
SlurmdSpoolDir=$slurm_folder/spool/%n
SlurmctldPidFile=$slurm_folder/slurmctld.pid
SlurmdPidFile=$slurm_folder/slurmd.%n.pid
SlurmctldLogFile=$slurm_folder/slurmctld.log
SlurmdLogFile=$slurm_folder/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=${SLURM_TASK_PLUGIN:-task/none}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=2,sched_min_interval=0
KillWait=10
ReturnToService=2
NodeName=n1 NodeAddr=10.77.0.1 CPUs=2 CoresPerSocket=2 State=UNKNOWN
NodeName=n2 NodeAddr=10.77.0.2 CPUs=2 CoresPerSocket=2 State=UNKNOWN
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
END
    echo CgroupPlugin=cgroup/v1 >"$slurm_folder/cgroup.conf" # it is not used
    export SLURM_CONF="$slurm_folder/slurm.conf"
    slurm_start munged 1 munged --foreground --force \
        --key-file="$slurm_folder/munge.key" \
        --socket="$slurm_folder/munge.socket" \
        --pid-file="$slurm_folder/munged.pid" \
        --log-file="$slurm_folder/munged.log" \
        --seed-file="$slurm_folder/munge.seed"
    slurm_start slurmctld 1 slurmctld -D -f "$SLURM_CONF"
    slurm_start slurmd.n1 1 slurmd -D -N n1 -f "$SLURM_CONF"
    slurm_start slurmd.n2 2 slurmd -D -N n2 -f "$SLURM_CONF"
    slurm_tries=100
    while [ $((slurm_tries -= 1)) -gt 0 ]; do
        [ "$(slurm_on sinfo -h -o %T 2>/dev/null)" != idle ] || return 0
        sleep 0.3
    done
    tail -n 20 "$slurm_folder"/*.log "$slurm_folder"/*.out
    return 1
}

slurm_on() { net_on 1 "$@"; }

slurm_wait() { # JOB
    slurm_tries=400
    while [ $((slurm_tries -= 1)) -gt 0 ]; do
        slurm_state=$(slurm_on scontrol show job "$1") || return 1
        case $slurm_state in
            *JobState=PENDING* | *JobState=RUNNING* | *JobState=COMPLETING*) ;;
            *) echo "$slurm_state" | sed -n 's/.* ExitCode=\([0-9]*\):.*/\1/p'
                return 0 ;;
        esac
        sleep 0.3
    done
    return 1
}

# shellcheck disable=SC2086 # a list of numbers
slurm_down() {
    [ -n "${slurm_pids-}" ] || return 0
    slurm_on scancel --user=root --full 2>/dev/null || :
    sleep 1
    kill $slurm_pids 2>/dev/null || :
    sleep 1 # net_down ends what is left
    slurm_pids=
}
