#!/bin/sh
# No two files of the product define one function: of two static libraries the
# linker would take the first it meets, and say nothing.
#
#     symbols_test.sh LIBRARY..
set -eu
if ! command -v nm >/dev/null; then
    echo 'symbols_test: nm is not there' >&2
    exit 77
fi
twice=$(nm -g --defined-only "$@" |
    awk '$2 ~ /^[TDRB]$/ && $3 ~ /^bm_/ { print $3 }' | sort | uniq -d)
if [ -n "$twice" ]; then
    printf 'defined twice: %s\n' "$twice" >&2
    exit 1
fi
