#!/bin/sh
# The whole quick start in a temporary directory: with seed 1 the error rate is
# low, and the files that it names exist; a WAV file becomes words by the command
# that it prints; a second run reuses all files. Takes
# less than a minute; scripts/test runs it. Exit 77: espeak-ng is missing.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
if ! command -v espeak-ng >/dev/null; then
    echo 'skipped: espeak-ng is not installed'
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fault() {
    tail -n 40 "$work"/*.err
    echo "$*"
    exit 1
}
# quickstart NAME: its results into NAME.out, its messages into NAME.err.
quickstart() {
    "$top/scripts/quickstart" --seed 1 --out "$work/home" >"$work/$1.out" \
        2>"$work/$1.err" || fault "$1: exit $?"
}
error_rate() {
    sed -n 's/^label error rate on the test voices: \(.*\) %$/\1/p' "$work/$1.out"
}
# Sizes and modification times of speech and shards, and the model's checksum.
made() {
    find "$work/home/speech" "$work/home/data" -type f -printf '%p %s %T@\n' |
        sort
    cksum "$work/home/run-1/model.safetensors"
}

quickstart first
rate=$(error_rate first)
cat "$work/first.out"
awk -v rate="$rate" 'BEGIN { exit !(rate ~ /^[0-9.]+$/ && rate < 5) }' ||
    fault "the label error rate is not below 5 %, but '$rate'"
sed -n 's/^  [a-z]*  *\(\/.*\)$/\1/p' "$work/first.out" >"$work/named"
[ "$(wc -l <"$work/named")" = 6 ] || fault 'the output does not name six paths'
while read -r path; do
    [ -d "$path" ] || [ -s "$path" ] || fault "$path does not exist"
done <"$work/named"

# Words of one recording, and of all of them by their manifest.
bmuf=$top/build/release/bmuf
grep -qF "  build/release/bmuf decode $work/home/run-1 my.wav" "$work/first.out" ||
    fault 'the output does not say how to decode a recording'
said=$("$bmuf" decode "$work/home/run-1" "$work/home/speech/test/test-0001.wav" -q)
# Models of other processors have other bits, and may get a word of it wrong.
[ "$said" = "$(sed -n 's/ (test-0001)$//p' "$work/home/run-1/test.trn")" ] ||
    fault "test-0001.wav: '$said', and eval has other words"
[ "$(echo "$said" | wc -w)" -ge 5 ] || fault "test-0001.wav: '$said'"
"$bmuf" decode "$work/home/run-1/model.safetensors" "$work/home/speech/test.jsonl" \
    --format trn >"$work/decoded.trn" 2>"$work/decode.err" ||
    fault 'the recordings cannot be decoded'
cmp "$work/decoded.trn" "$work/home/run-1/test.trn" ||
    fault 'decode and eval write other words'
grep -q '240 decoded: .* real-time factor 0[.]0' "$work/decode.err" ||
    fault 'no real-time factor'

made >"$work/before"
quickstart second
made >"$work/after"
cmp "$work/before" "$work/after" || fault 'the second run changed files'
[ "$(error_rate second)" = "$rate" ] || fault 'the second run has another rate'
# It reports each set as present and no work.
[ "$(grep -c ': up to date$' "$work/second.err")" = 6 ] ||
    fault 'the second run does not list the sets that it reuses'
! grep -E 'installing|Building|recordings$|epoch [0-9]' "$work/second.err" ||
    fault 'the second run reports work'
! grep -q '^[0-9]* sequences' "$work/second.out" || fault 'the second run packs again'
