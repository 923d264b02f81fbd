#!/bin/sh
# What a page says that the program prints is what it prints: in each block
#
#     $ bmuf scale ..
#     ..
#     lines
#
# the command is run from the top folder, and a line of two dots stands for any
# lines.
#
#   tests/scripts/pages_test.sh PROGRAM PAGE..
set -eu
program=$1
shift
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=no found=0

# One file for each command: the command, then what is expected.
for page; do
    awk -v to="$work/case" '
        /^```/ { inside = !inside; out = ""; next }
        inside && /^\$ bmuf / { out = to "." ++n; sub(/^\$ bmuf /, "") }
        inside && out != "" { print >out }' "$page"
    for case in "$work"/case.*; do
        [ -e "$case" ] || continue
        found=$((found + 1))
        # shellcheck disable=SC2046 # words are meant
        "$program" $(head -n 1 "$case") >"$work/printed" || failed=yes
        tail -n +2 "$case" | awk -v printed="$work/printed" '
            BEGIN { while ((getline line < printed) > 0) is[++n] = line; i = 1 }
            $0 == ".." { any = 1; next }
            {
                while (any && i <= n && is[i] != $0) i++
                any = 0
                if (i > n || is[i] != $0) { print "not printed: " $0; bad = 1; exit }
                i++
            }
            END { if (!bad && !any && i <= n) { print "also: " is[i]; bad = 1 }
                  exit bad }' || {
            echo "$page: bmuf $(head -n 1 "$case")"
            failed=yes
        }
        rm "$case"
    done
done
[ "$found" -gt 0 ] || { echo 'the pages have no commands'; exit 1; }
[ $failed = no ]
