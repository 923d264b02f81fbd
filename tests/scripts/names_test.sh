#!/bin/sh
# Each layer, strategy, importer, schedule, local update and augmentation that the
# program has is on its page in docs, as `name`.
#
#   tests/scripts/names_test.sh PROGRAM
set -eu
program=$1
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=no

# check PAGE WHAT PREFIX NAMES: each name is in the page, in code.
check() {
    [ -n "$4" ] || {
        echo "the program lists no ${2}s" >&2
        failed=yes
    }
    for name in $4; do
        grep -qE "\`([^\`]* )?$3$name([^a-z0-9_]|\$)" "$1" || {
            echo "$1 does not have the $2 $name; describe it there" >&2
            failed=yes
        }
    done
}

# The words of a choice, and the keys of a section.
words() { "$program" options "$1" --json | sed -n 's/^ *"\([a-z0-9_]*\)",*$/\1/p'; }
keys() { "$program" options "$1" --json | sed -n 's/^ *"key": "\([^"]*\)",*$/\1/p'; }

printf '[model]\nnet = none\n' >"$work/config.ini"
layers=$("$program" explain "$work/config.ini" 2>&1 |
    sed -n "s/.*'none': no such layer; the layers are //p")
importers=$("$program" pack --out "$work/set" 2>&1 |
    sed -n 's/.*a FILE after one of \(.*\), or .*/\1/p' | sed 's/--//g')

check docs/layers.md layer '' "$layers"
check docs/strategies.md strategy '' "$(words train.strategy)"
check docs/data/formats.md importer -- "$importers"
check docs/sgd.md schedule '' "$(words schedule.kind)"
check docs/sgd.md 'local update' '' "$(words sgd.update)"
check docs/data/augmentation.md augmentation '' "$(keys augment)"
[ "$failed" = no ]
