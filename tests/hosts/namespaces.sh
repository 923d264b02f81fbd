# shellcheck shell=sh
#
# Simulated hosts: network namespaces, connected by a bridge, with ranks in them.
# To be sourced by root.
#
#   net_limit 280 "$@"  ends this script, with its traps, after 280 s: a killed one
#                       would leave hosts, and processes that are no children
#   net_possible        prints the reason and fails if this machine cannot
#   net_program FILE    prints a path of a program that all hosts see: the program, or
#                       a copy in the current folder if it is in /tmp
#   net_up 3 200mbit    starts hosts n1 n2 n3 with 10.77.0.1, .2, .3; limits the
#                       rate of each, with a delay of 1 ms if the kernel can
#   net_on 2 COMMAND..    runs it on n2, with a /tmp of that host; all hosts know
#                         the names n1, n2, .. and share /var/tmp
#   net_exec 2 COMMAND..  the same in place of the shell: `net_exec 2 sshd -D &`
#   net_launch 3 PROGRAM ARGS..       runs it with -n 3, one rank on each host;
#                       killed after 100 s
#   net_mpirun 2 4 PROGRAM ARGS..     runs it by mpirun, with 4 ranks on each of
#                       2 hosts; killed after 300 s
#   net_use_agent       mpirun starts ranks on hosts by an agent in place of ssh
#   net_cut 3           cuts n3 off from the network: the agent does not reach it
#   net_mend 3          and connects it again
#   net_sent 2          prints the bytes that n2 has sent
#   net_down            removes all hosts and ends what runs there; for a trap
#   $net_delay          the delay that net_up has set, as text
#
# All names contain the number of the process; net_down removes them.

net_name=bmuf$$

net_limit() { # SECONDS ARGUMENTS..
    [ -z "${net_limited-}" ] || return 0
    net_seconds=$1
    shift
    net_limited=yes exec timeout -k 30 "$net_seconds" "$0" "$@"
}

net_possible() {
    [ "$(id -u)" = 0 ] || { echo 'network namespaces need root'; return 1; }
    for tool in ip tc unshare hostname mpirun; do
        command -v $tool >/dev/null || { echo "$tool is not installed"; return 1; }
    done
    unshare -n -u true 2>/dev/null ||
        { echo 'namespaces are not permitted'; return 1; }
    ip netns add "$net_name-try" 2>/dev/null ||
        { echo 'ip netns add is not permitted'; return 1; }
    why=
    net_in try ip link add one type veth peer name two 2>/dev/null ||
        why='the kernel has no veth'
    [ -n "$why" ] || net_in try ip link add three type bridge 2>/dev/null ||
        why='the kernel has no bridge'
    [ -n "$why" ] || net_in try tc qdisc add dev one root tbf rate 1mbit \
        burst 64kb latency 9ms 2>/dev/null || why='the kernel has no tbf'
    ip netns del "$net_name-try"
    [ -z "$why" ] || { echo "$why"; return 1; }
}

net_program() { # FILE
    case $1 in
        /tmp/*) mkdir -p programs && cp "$1" programs && echo "$PWD/programs/${1##*/}" ;;
        *) echo "$1" ;;
    esac
}

net_in() { # NAME COMMAND..
    space=$net_name-$1
    shift
    ip netns exec "$space" "$@"
}

net_host() { # NUMBER
    ip netns add "$net_name-$1"
    net_in switch ip link add "port$1" type veth peer name eth0 \
        netns "$net_name-$1"
    net_in switch ip link set "port$1" master bridge up
    net_in "$1" ip address add "10.77.0.$1/24" dev eth0
    net_in "$1" ip link set lo up
    net_in "$1" ip link set eth0 up
}

net_shape() { # NUMBER RATE
    net_in "$1" tc qdisc add dev eth0 root handle 1: tbf rate "$2" burst 64kb \
        latency 500ms
    net_in "$1" tc qdisc add dev eth0 parent 1:1 handle 2: netem delay 1ms \
        limit 10000 2>/dev/null || net_delay='no delay: this kernel has no netem'
}

net_up() { # HOSTS RATE
    # shellcheck disable=SC2034
    net_delay='1 ms'
    net_work=$(mktemp -d -p /var/tmp)
    ip netns add "$net_name-switch"
    net_in switch ip link add bridge type bridge
    net_in switch ip link set bridge up
    echo 127.0.0.1 localhost >"$net_work/names"
    for net_k in $(seq "$1"); do
        net_host "$net_k"
        net_shape "$net_k" "$2"
        echo "10.77.0.$net_k n$net_k" >>"$net_work/names"
        mkdir -m 1777 "$net_work/tmp.n$net_k"
    done
    cat >"$net_work/agent" <<END
#!/bin/sh
host=\$1
shift
[ ! -e $net_work/cut.\${host##*.} ] || { echo 'No route to host' >&2; exit 255; }
exec ip netns exec $net_name-\${host##*.} unshare -u sh -c \
    'hostname "\$0"; exec sh -c "\$1"' "n\${host##*.}" "\$*"
END
    chmod +x "$net_work/agent"
}

net_down() {
    for net_k in $(ip netns list | awk '{ print $1 }'); do
        case $net_k in
            "$net_name"-*)
                # What still runs on a host was started there by the test.
                ip netns pids "$net_k" | xargs -r kill -9 2>/dev/null || :
                ip netns del "$net_k"
                ;;
        esac
    done
    [ -z "${net_work-}" ] || rm -rf "$net_work"
}

net_launch() { # RANKS PROGRAM ARGS..
    net_ranks=$1
    shift
    seq -f '10.77.0.%g slots=1' "$net_ranks" >"$net_work/hosts"
    net_in 1 env OMPI_MCA_orte_default_hostfile="$net_work/hosts" \
        OMPI_MCA_rmaps_base_mapping_policy=node \
        OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent="$net_work/agent" \
        OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=eth0 \
        OMPI_MCA_oob_tcp_if_include=eth0 \
        unshare -u sh -c 'hostname n1; exec "$@"' sh \
        timeout -k 9 100 "$@" -n "$net_ranks"
}

net_exec() { # NUMBER COMMAND..
    net_k=$1
    shift
    # shellcheck disable=SC2016
    exec ip netns exec "$net_name-$net_k" unshare -u sh -c '
        hostname "$0"
        mount --bind "$1/names" /etc/hosts
        mount --bind "$1/tmp.$0" /tmp
        shift
        exec "$@"' "n$net_k" "$net_work" "$@"
}

net_on() { # NUMBER COMMAND..
    (net_exec "$@")
}

# Messages go as with -n: docs/scaling.md.
net_mpirun() { # HOSTS RANKS PROGRAM ARGS..
    net_ranks=$(($1 * $2))
    seq -f "10.77.0.%g slots=$2" "$1" >"$net_work/hosts"
    shift 2
    net_in 1 env OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent="$net_work/agent" \
        OMPI_MCA_btl=tcp,vader,self OMPI_MCA_btl_tcp_if_include=eth0 \
        OMPI_MCA_oob_tcp_if_include=eth0 \
        OMPI_MCA_btl_tcp_eager_limit=8388608 \
        OMPI_MCA_btl_tcp_rndv_eager_limit=8388608 \
        OMPI_MCA_btl_tcp_max_send_size=8388608 \
        OMPI_MCA_mpi_yield_when_idle=1 \
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        unshare -u sh -c 'hostname n1; exec "$@"' sh timeout -k 9 300 \
        mpirun -np "$net_ranks" --hostfile "$net_work/hosts" --bind-to none \
        -x TMPDIR "$@"
}

net_use_agent() {
    export OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent="$net_work/agent"
    export OMPI_MCA_btl=tcp,self # no shared memory between namespaces
}

net_cut() { # NUMBER
    : >"$net_work/cut.$1"
    net_in switch ip link set "port$1" down
}

net_mend() { # NUMBER
    rm "$net_work/cut.$1"
    net_in switch ip link set "port$1" up
}

net_sent() { # NUMBER
    net_in "$1" cat /sys/class/net/eth0/statistics/tx_bytes
}
