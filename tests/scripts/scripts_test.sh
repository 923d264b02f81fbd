#!/bin/sh
# The scripts around the program: manifests are JSON for any text; the quick
# start's sets are large, varied, disjoint and reproducible; files are made again
# if and only if their inputs change; of two calls at once, one makes them. espeak-ng,
# the noise and the program are replaced by stubs here.
set -eu
scripts=$(cd "$(dirname "$0")/../../scripts" && pwd)
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
cmp "$work/got" "$work/wanted" || fault 'tsv_to_manifest: the manifest differs'
sed 's/$/\r/' "$work/manifest.tsv" | "$scripts/tsv_to_manifest" audio train >"$work/got"
cmp "$work/got" "$work/wanted" || fault 'tsv_to_manifest: lines that end with CR LF'
printf 'id\tfile\tspk\tsplit\ttext\na\tb\tc\ttrain\n' |
    "$scripts/tsv_to_manifest" audio train 2>"$work/error" && fault 'tsv_to_manifest: a line without a text'
grep -q 'line 2 has 4 columns' "$work/error" || fault 'tsv_to_manifest: another message'
! "$scripts/tsv_to_manifest" audio dev <"$work/manifest.tsv" 2>"$work/error" ||
    fault 'tsv_to_manifest: accepts a split without rows'
grep -q 'no rows of split dev' "$work/error"

# Called as espeak-ng -v VOICE -p PITCH -s SPEED -w FILE TEXT.
mkdir "$work/bin"
cat >"$work/bin/espeak-ng" <<'END'
#!/bin/sh
[ "$1" = --version ] || echo "$2 $4 $6 $9" >"$8"
END
echo '#!/bin/sh' >"$work/bin/noise"
chmod +x "$work"/bin/*
export PATH="$work/bin:$PATH" BMUF_NOISE="$work/bin/noise"
for name in one again; do
    "$scripts/make_speech" "$work/$name" 7 2>/dev/null
done
diff -r "$work/one" "$work/again" || fault 'make_speech: the same seed makes other speech'

# Voice, pitch, speed and words of all recordings of one/SET.
spoken() { find "$work/one/$1" -name '*.wav' -exec cat {} +; }
count() { wc -l <"$work/one/$1.jsonl"; }
voices() { spoken "$1" | cut -d ' ' -f 1 | sort -u; }
[ "$(count train)" -ge 1000 ] || fault 'fewer than 1000 recordings in train'
[ "$(count test)" -ge 200 ] || fault 'fewer than 200 recordings in test'
[ "$(voices train | wc -l)" -ge 6 ] || fault 'fewer than 6 voices'
shared=$({ voices train; voices dev; voices test; } | sort | uniq -d)
[ -z "$shared" ] || fault "voices in two sets: $shared"
for set in train dev test; do
    sed 's/.*"text": "\([^"]*\)", "speaker": "\([^"]*\)".*/\2 \1/' \
        "$work/one/$set.jsonl" | sort >"$work/written"
    spoken $set | cut -d ' ' -f 1,4- | sort | cmp - "$work/written" ||
        fault "$set: the manifest has other voices or words than were spoken"
done
# Voices differ in mean pitch and speed, rounded to multiples of five, which is
# more than the variation within a voice.
manners=$(spoken train | awk '
    { n[$1]++; pitch[$1] += $2; speed[$1] += $3 }
    END {
        for (v in n)
            printf "%d %d\n", 5 * int(pitch[v] / n[v] / 5 + 0.5),
                5 * int(speed[v] / n[v] / 5 + 0.5)
    }' | sort -u)
[ "$(echo "$manners" | wc -l)" -ge 6 ] || fault 'fewer than 6 combinations of pitch and speed'
for column in 1 2; do
    [ "$(echo "$manners" | cut -d ' ' -f $column | sort -u | wc -l)" -ge 6 ] ||
        fault "of pitch and speed, number $column is the same in most voices"
done
sed 's/.*"text": "\([^"]*\)".*/\1/' "$work"/one/*.jsonl | awk '
    NF < 1 || NF > 7 { print "not 1 to 7 words: " $0; bad = 1 }
    { length_seen[NF] = 1; for (i = 1; i <= NF; i++) word[$i] = 1 }
    END {
        for (i in length_seen) lengths++
        for (i in word) words++
        if (lengths != 7 || words != 10) { print lengths, words; bad = 1 }
        exit bad
    }' || fault 'the texts are not strings of 1 to 7 digits'

# A copy of the scripts to modify; the stub program reports what it packs.
tree=$work/tree
mkdir -p "$tree/build/release" "$work/archives/some"
cp -r "$scripts" "$tree/scripts"
sed -i 's/ 1200 / 3 /; s/ 120 / 2 /; s/ 240 / 2 /' "$tree/scripts/make_speech"
cat >"$tree/build/release/bmuf" <<END
#!/bin/sh
# Called as bmuf pack --KIND MANIFEST --out DIR ..
: >"$work/begun"
mkdir "\$5"
[ ! -e "$work/slow" ] || sleep 0.3
[ ! -e "$work/fail" ] || exit 1
echo packed >&2
END
chmod +x "$tree/build/release/bmuf"
change() { echo '#' >>"$1"; }
speech_and_shards() {
    "$tree/scripts/make_speech" "$work/again" "$seed"
    "$tree/scripts/pack_sets" audio "$work/again" "$work/shards" --units "$units"
}
data() { BMUF_DATA=$work/archives "$tree/scripts/pack_data" some some audio; }
made_and_packed() {
    awk '/ recordings$|^unpacking / { made++ } /^packed$/ { packed++ }
        END { print made + 0, packed + 0 }' "$@"
}
# makes COMMAND MADE PACKED WHY: the command makes or unpacks MADE sets and packs
# PACKED; a second call does nothing.
makes() {
    for wanted in "$2 $3" '0 0'; do
        "$1" >"$work/said" 2>&1 || fault "$4: $(cat "$work/said")"
        found=$(made_and_packed "$work/said")
        [ "$found" = "$wanted" ] || fault "$4: $found, not $wanted"
    done
}
seed=7 units=words
makes speech_and_shards 3 3 'another script than the one above'
[ "$(find "$work/again" -name '*.wav' | wc -l)" = 7 ] || fault 'speech of an earlier run remains'
units=characters
makes speech_and_shards 0 3 'other options'
seed=8
makes speech_and_shards 3 3 'another seed'
change "$BMUF_NOISE"
makes speech_and_shards 3 3 'other noise'
echo '[ $# != 1 ] || echo 1.52' >>"$work/bin/espeak-ng"
makes speech_and_shards 3 3 'another espeak-ng'
change "$tree/scripts/make_speech"
makes speech_and_shards 3 3 'another make_speech'
change "$tree/scripts/pack_sets"
makes speech_and_shards 0 3 'another pack_sets'
change "$tree/build/release/bmuf"
makes speech_and_shards 0 3 'another program'
echo '{}' >>"$work/again/dev.jsonl"
makes speech_and_shards 0 3 'another manifest'

printf 'id\tfile\tspk\tsplit\ttext\n' >"$work/archives/some/manifest.tsv"
for set in train dev test; do
    printf '%s-1\tf/1.wav\tann\t%s\tone\n' $set $set
done >>"$work/archives/some/manifest.tsv"
tar -c -f "$work/archives/some/f.tar.gz" -C "$work" manifest.tsv
makes data 1 3 'nothing is there'
touch -d yesterday "$work/archives/some/f.tar.gz"
makes data 1 3 'another archive'
change "$tree/scripts/pack_data"
makes data 1 3 'another pack_data'
sed -i 's/\tone/\ttwo/' "$work/archives/some/manifest.tsv"
makes data 0 3 'another manifest of the archives'

# at_once COMMAND MADE PACKED: two calls make and pack so much together; the second
# begins while a stub of the first is at work.
at_once() {
    rm -f "$work/begun"
    : >"$work/slow"
    "$1" >"$work/first" 2>&1 &
    first=$! code=0
    until [ -e "$work/begun" ] || ! kill -0 $first 2>/dev/null; do sleep 0.05; done
    "$1" >"$work/second" 2>&1 || code=$?
    wait $first || code=$?
    found=$(made_and_packed "$work/first" "$work/second")
    [ "$code $found" = "0 $2 $3" ] ||
        fault "$1, twice at once: $code $found, not 0 $2 $3: $(cat "$work/first" "$work/second")"
    rm "$work/slow"
}
cat >"$BMUF_NOISE" <<END
#!/bin/sh
# Called as noise SEED LOW HIGH FILE..
: >"$work/begun"
[ ! -e "$work/slow" ] || sleep 0.3
shift 3
for file; do
    echo noise >>"\$file"
done
END
at_once speech_and_shards 3 3
for file in "$work"/again/*/*.wav; do
    [ "$(grep -c noise "$file")" = 1 ] || fault "$file: not noise once"
done
change "$tree/scripts/pack_sets"
at_once speech_and_shards 0 3
cat >"$work/bin/tar" <<END
#!/bin/sh
: >"$work/begun"
[ ! -e "$work/slow" ] || sleep 0.3
exec $(command -v tar) "\$@"
END
chmod +x "$work/bin/tar"
change "$tree/scripts/pack_data"
at_once data 1 3

# What was there stays until what replaces it is complete.
units=words
: >"$work/fail"
! speech_and_shards 2>/dev/null || fault 'pack_sets: success without shards'
[ -d "$work/shards/train" ] || fault 'pack_sets: the old shards went before the new ones came'
rm "$work/fail"
makes speech_and_shards 0 3 'packing failed'
sed -i '/^dev-1/d' "$work/archives/some/manifest.tsv"
! data 2>/dev/null || fault 'pack_data: success without rows of dev'
[ -s "$tree/data/some/dev.jsonl" ] || fault 'pack_data: the old manifest went before the new one came'

# What cannot work ends before anything is made or removed.
# ends CODE WORDS COMMAND...: the message has the words.
ends() {
    code=$1 words=$2 status=0
    shift 2
    "$@" >"$work/said" 2>&1 || status=$?
    [ $status = "$code" ] || fault "$*: exit $status, not $code: $(cat "$work/said")"
    grep -qF -- "$words" "$work/said" || fault "$*: another message: $(cat "$work/said")"
}
before=$(cd "$work/again" && find . -type f | sort)
ends 64 'SEED abc is not a whole number' "$tree/scripts/make_speech" "$work/again" abc
ends 64 'unknown option --help' "$tree/scripts/make_speech" --help
BMUF_NOISE=$work/none ends 69 "$work/none is missing; build it" "$tree/scripts/make_speech" "$work/again" 8
[ "$(cd "$work/again" && find . -type f | sort)" = "$before" ] || fault 'make_speech: what was complete is gone'
ends 64 'KIND sound is not audio' "$tree/scripts/pack_sets" sound "$work/again" "$work/new"
ends 64 'KIND sound is not audio' env BMUF_DATA="$work/archives" "$tree/scripts/pack_data" new some sound
rm "$tree/build/release/bmuf"
ends 69 'bmuf is missing; build it' "$tree/scripts/pack_sets" audio "$work/again" "$work/new"
rm "$work"/archives/some/*.tar.*
ends 66 'has no archives' env BMUF_DATA="$work/archives" "$tree/scripts/pack_data" new some audio
for folder in "$work/new" "$tree/data/new"; do
    [ ! -e "$folder" ] || fault "$folder was made for nothing"
done
