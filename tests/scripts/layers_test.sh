#!/bin/sh
# tools/check_layers on a small tree: no output for a valid tree; each kind of
# violation, planted alone, is reported with its file and exit status 1.
set -eu
check=$(cd "$(dirname "$0")/../../tools" && pwd)/check_layers
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# file PATH INCLUDE...: writes a file of the tree with these includes.
file() {
    path=$1
    shift
    mkdir -p "tree/$(dirname "$path")"
    printf '#include <stdio.h>\n' >"tree/$path"
    for name; do printf '#include "%s"\n' "$name" >>"tree/$path"; done
}
plain() {
    rm -rf tree
    file core/status.h
    file core/status.c core/status.h
    file compute/backend.h core/status.h
    file compute/backend_ops.h compute/backend.h
    file compute/backend.c compute/backend.h compute/backend_ops.h
    file compute/cuda/lstm/lstm.cu compute/backend_ops.h
    file comm/comm.h core/status.h
    file io/shard/shard.h compute/backend.h
    file bmuf/filter.h core/status.h
    file bmuf/strategy.h bmuf/filter.h
    file bmuf/strategies/average.c bmuf/strategy.h
    file cli/main.c bmuf/strategy.h
    file tests/core/test_status.c core/status.h cli/main.h
    file build/generated.c cli/main.h
}
# must_report TEXT: check_layers must fail on the current tree, with this text.
must_report() {
    ! "$check" tree >output || { echo "not reported: $1"; exit 1; }
    grep -qF -- "$1" output || { echo "want: $1"; echo "got:"; cat output; exit 1; }
}

plain
"$check" tree >output || { echo 'a valid tree is rejected:'; cat output; exit 1; }
[ ! -s output ]

plain; file core/up.c compute/backend.h
must_report 'core/up.c:2: core (floor 0) may not include compute/backend.h'
plain; file compute/beside.c core/status.h comm/comm.h
must_report 'compute/beside.c:3: compute (floor 1) may not include comm/comm.h'
plain; file compute/cuda/lstm/deep.cu cli/main.h
must_report 'compute/cuda/lstm/deep.cu:2: compute/cuda/lstm (floor 1.5) may not include cli/main.h'
plain; file compute/cuda/x.c compute/cpu/cpu.h
must_report 'compute/cuda/x.c:2: compute/cuda (floor 3) may not include compute/cpu/cpu.h'
plain; file bmuf/strategy.c bmuf/strategies/average.h
must_report 'bmuf/strategy.c:2: bmuf/strategy. (floor 8) may not include bmuf/strategies/average.h'
plain; file compute/cuda/kernel.h tests/emulation/device.h
must_report 'compute/cuda/kernel.h:2: compute/cuda (floor 3) may not include tests/emulation/device.h'
plain; file attic/old.c core/status.h
must_report 'attic/old.c: no floor for this folder'
plain; file common/new.c core/status.h
must_report 'common/new.c: no floor for this folder'
plain; echo '#include <cli/main.h>' >>tree/core/status.c
must_report 'core/status.c:3: core (floor 0) may not include cli/main.h'
plain; file core/lost.c attic/old.h
must_report 'core/lost.c:2: includes "attic/old.h", which has no floor'
plain; file io/shard/a.h io/shard/b.h; file io/shard/b.h io/shard/c.h
file io/shard/c.c io/shard/c.h io/shard/a.h
must_report 'circle: io/shard/'
plain; file compute/backend_ops.h compute/backend.h compute/plugin.h
file compute/plugin.h compute/backend.h
must_report 'circle: compute/'
