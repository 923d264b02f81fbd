#!/bin/sh
# What the scripts around the program promise: manifests are JSON whatever the
# text, and the quick start's sets are large, varied, apart, and repeatable.
# Speech itself is not made here: espeak-ng and the noise are stood in for.
set -eu
scripts=$(cd "$(dirname "$0")/../scripts" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fault() {
    echo "$*"
    exit 1
}

# Quotes, a backslash, a control character, UTF-8; columns in any order.
printf 'text\tid\tfile\tspk\tsplit\n%s\n%s\n' \
    "$(printf 'a "q" \\ b\001c \303\251\tx1\tf/1.wav\tann\ttrain')" \
    "$(printf 'other\tx2\tf/2.wav\tbob\ttest')" >"$work/manifest.tsv"
"$scripts/tsv_to_manifest" audio train <"$work/manifest.tsv" >"$work/got"
printf '{"id": "x1", "audio": "f/1.wav", "text": "%s", "speaker": "ann"}\n' \
    "$(printf 'a \\"q\\" \\\\ b\\u0001c \303\251')" >"$work/wanted"
cmp "$work/got" "$work/wanted" || fault 'tsv_to_manifest: see above'
! "$scripts/tsv_to_manifest" audio dev <"$work/manifest.tsv" 2>"$work/error" ||
    fault 'tsv_to_manifest: a split without rows is not told'
grep -q 'no row of split dev' "$work/error"

# Called as espeak-ng -v VOICE -p PITCH -s SPEED -w FILE TEXT.
mkdir "$work/bin"
# shellcheck disable=SC2016 # for the stand-in
printf '#!/bin/sh\necho "$2 $4 $6 $9" >"$8"\n' >"$work/bin/espeak-ng"
chmod +x "$work/bin/espeak-ng"
for name in one again; do
    PATH=$work/bin:$PATH BMUF_NOISE=true \
        "$scripts/make_speech" "$work/$name" 7 2>/dev/null
done
diff -r "$work/one" "$work/again" || fault 'the same seed, other speech'

count() { wc -l <"$work/one/$1.jsonl"; }
voices() { sed 's/.*"speaker": "\([^"]*\)".*/\1/' "$work/one/$1.jsonl" | sort -u; }
[ "$(count train)" -ge 1000 ] || fault 'fewer than 1000 to train on'
[ "$(count test)" -ge 200 ] || fault 'fewer than 200 to test on'
[ "$(voices train | wc -l)" -ge 6 ] || fault 'fewer than 6 voices'
apart=$({ voices train; voices dev; voices test; } | sort | uniq -d)
[ -z "$apart" ] || fault "in two sets: $apart"
sed 's/.*"text": "\([^"]*\)".*/\1/' "$work"/one/*.jsonl | awk '
    NF < 1 || NF > 7 { print "not 1 to 7 words: " $0; bad = 1 }
    { length_seen[NF] = 1; for (i = 1; i <= NF; i++) word[$i] = 1 }
    END {
        for (i in length_seen) lengths++
        for (i in word) words++
        if (lengths != 7 || words != 10) { print lengths, words; bad = 1 }
        exit bad
    }' || fault 'the texts are not strings of 1 to 7 digits'
