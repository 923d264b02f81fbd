#!/bin/sh
# No source escapes the checks: every tracked .c file is compiled (so clang-tidy
# sees it too), every header is compiled alone, every source is formatted, and
# every test program is registered. A new sub-folder needs no new pattern. No two
# headers of the product define one type, so that any of them go together.
#
#   tests/scripts/sources_test.sh BUILD
set -eu
build=$1
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git ls-files >"$work/tracked" 2>/dev/null || {
    echo 'this tree is not a git checkout'
    exit 77
}
failed=no

# missing WHAT PATTERN EXCEPTIONS: tracked files that match PATTERN, but neither
# EXCEPTIONS nor a line of $work/seen.
missing() {
    grep -E "$2" "$work/tracked" | grep -vE "$3" | while read -r file; do
        [ ! -e "$file" ] || grep -qxF "$file" "$work/seen" || echo "$1: $file"
    done >"$work/missing"
    [ ! -s "$work/missing" ] || { cat "$work/missing"; failed=yes; }
}

# One of a pair that excludes the other, another project's programs, and what
# takes a CUDA toolkit or cuDNN.
cuda='^compute/cuda/|^tests/(emulation|fakes)/|^tests/compute/cuda/|/test_(device|exchange)\.c$'
! grep -q compute/cuda/ "$build/compile_commands.json" || cuda='cudnn|nvtx|/cuda_plugin\.c$'
sed -n "s|^  \"file\": \"$PWD/\(.*\)\",*\$|\1|p" "$build/compile_commands.json" |
    sort -u >"$work/seen"
speech='^tools/speech/|test_made_speech(\.c)?$' # take espeak-ng
! grep -q tools/speech/main "$build/compile_commands.json" || speech='^$'
missing 'not compiled' '\.c$' \
    "(onednn|onednn_absent)\.c\$|^tests/consumer/|$cuda|$speech"

find "$build/tests/headers" -name '*.c*' -exec sed -n 's/^#include "\(.*\)"$/\1/p' \
    {} + >"$work/seen"
cuda='^compute/cuda/|^tests/(emulation|fakes)/'
! grep -q compute/cuda/ "$build/compile_commands.json" || cuda=cudnn
missing 'not compiled alone' '\.h$' "$cuda"

if grep -q 'clang-format.* -i ' "$build/build.ninja"; then
    sed -n '/clang-format[^ ]* .*-i /{s| |\n|g;p;}' "$build/build.ninja" |
        sed -n "s|^$PWD/||p" >"$work/seen"
    missing 'not formatted' '\.([ch]|cu|cpp)$' '^$'
fi

ctest --test-dir "$build" -N -V 2>/dev/null |
    grep -oE 'test_[a-z0-9_]+' | sort -u >"$work/tests"
cuda='^tests/compute/cuda/|/test_(device|exchange)\.c$'
! grep -q compute/cuda/ "$build/compile_commands.json" || cuda='^$'
grep -vE "$cuda|$speech" "$work/tracked" | sed -n 's|.*/\(test_[a-z0-9_]*\)\.c$|\1|p' |
    while read -r test; do
        grep -qxF "$test" "$work/tests" || echo "not registered: $test"
    done >"$work/missing"
[ ! -s "$work/missing" ] || { cat "$work/missing"; failed=yes; }
# The types that a header defines: "name NAME", and "body NAME" of a struct.
defined() {
    sed -nE 's/^\} (bm_[a-z0-9_]+);.*/name \1/p
             s/^typedef [^()]*[ *](bm_[a-z0-9_]+)[(;].*/name \1/p
             s/^typedef [^()]*\(\*(bm_[a-z0-9_]+)\).*/name \1/p
             s/^(typedef )?(struct|union|enum) (bm_[a-z0-9_]+) \{.*/body \3/p' "$1" |
        sort -u | sed "s|\$| $1|"
}
grep '\.h$' "$work/tracked" | grep -v '^tests/' | while read -r file; do
    [ ! -e "$file" ] || defined "$file"
done | sort >"$work/defined"
cut -d ' ' -f 1,2 "$work/defined" | uniq -d | while read -r name; do
    echo "defined in several headers: $(grep "^$name " "$work/defined" | tr '\n' ',')"
done >"$work/missing"
[ ! -s "$work/missing" ] || { cat "$work/missing"; failed=yes; }
[ $failed = no ]
