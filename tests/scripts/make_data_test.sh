#!/bin/sh
# scripts/make_data: the folder of a data set from a clone of its source. Small clones are
# made here; where $BMUF_DATA has fsdd and an4, clones of them give the same manifest and
# the same files.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
data=${BMUF_DATA:-$top/../shared/data}/speech
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
command -v python3 >/dev/null || {
    echo 'python3 is missing'
    exit 77
}
fault() {
    echo "$*"
    cat "$work/said"
    exit 1
}
make_data() { BMUF_DATA=$work/made "$top/scripts/make_data" "$@" >"$work/said" 2>&1; }
# refused CODE TEXT ARGUMENT...: make_data ends with CODE and says TEXT in one line.
refused() {
    code=$1 text=$2
    shift 2
    status=0
    make_data "$@" || status=$?
    [ $status = "$code" ] || fault "make_data $*: exit $status, not $code"
    [ "$(wc -l <"$work/said")" = 1 ] || fault "make_data $*: not one line"
    grep -qF "$text" "$work/said" || fault "make_data $*: another message"
}
# wav FILE RATE SAMPLES: silence.
wav() {
    python3 -c '
import sys, wave
with wave.open(sys.argv[1], "wb") as file:
    file.setparams((1, 2, int(sys.argv[2]), 0, "NONE", ""))
    file.writeframes(bytes(2 * int(sys.argv[3])))' "$@"
}
# columns NAME...: of the manifest of $set.
columns() {
    awk -F '\t' -v names="$*" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; n = split(names, name, " "); next }
        { for (i = 1; i <= n; i++) printf "%s%s", $at[name[i]], i < n ? "|" : "\n" }
    ' "$work/made/speech/$set/manifest.tsv"
}

refused 64 'usage: ' fsdd
refused 64 'usage: ' other "$work"
refused 66 "$work/none is not a folder" fsdd "$work/none"

set=fsdd
mkdir -p "$work/fsdd/recordings"
refused 66 'has no *.wav' fsdd "$work/fsdd"
wav "$work/fsdd/recordings/7_ann_4.wav" 8000 30
wav "$work/fsdd/recordings/0_ann_5.wav" 8000 40
wav "$work/fsdd/recordings/3_bob_10.wav" 8000 50
wav "$work/fsdd/recordings/3_bob.wav" 8000 50
refused 65 '3_bob.wav: not DIGIT_SPEAKER_TAKE.wav' fsdd "$work/fsdd"
rm "$work/fsdd/recordings/3_bob.wav"
: >"$work/fsdd/recordings/1_bob_1.wav"
refused 65 'damaged file' fsdd "$work/fsdd"
rm "$work/fsdd/recordings/1_bob_1.wav"
make_data fsdd "$work/fsdd" || fault 'fsdd: failed'
columns id split samples text >"$work/got"
printf '%s\n' 'ann-0-05|dev|40|zero' 'bob-3-10|train|50|three' 'ann-7-04|test|30|seven' |
    cmp - "$work/got" || fault 'fsdd: another manifest'
refused 73 'has a manifest.tsv; remove' fsdd "$work/fsdd"

set=an4
mkdir -p "$work/an4/feat/an4_clstk" "$work/an4/feat/an4test_clstk/zed" "$work/an4/etc"
i=100
while [ $i -lt 203 ]; do # 103 utterances of training by 3 speakers, two frames each
    mkdir -p "$work/an4/feat/an4_clstk/s$((i % 3))"
    python3 -c 'import struct, sys; sys.stdout.buffer.write(struct.pack(">i", 26) + bytes(104))' \
        >"$work/an4/feat/an4_clstk/s$((i % 3))/an$i-s$((i % 3))-b.mfc"
    echo "<s> GO $i </s> (an$i-s$((i % 3))-b)"
    i=$((i + 1))
done >"$work/an4/etc/an4_train.transcription"
cp "$work/an4/feat/an4_clstk/s1/an100-s1-b.mfc" "$work/an4/feat/an4test_clstk/zed/cen1-zed-b.mfc"
refused 65 'cen1-zed-b.mfc: no text in' an4 "$work/an4"
echo 'ONE  TWO (cen1-zed-b)' >"$work/an4/etc/an4_test.transcription"
make_data an4 "$work/an4" || fault 'an4: failed'
[ "$(columns split | uniq -c | tr -s ' ' | tr '\n' ';')" = ' 100 dev; 1 test; 3 train;' ] ||
    fault 'an4: other splits'
columns id split frames text | sed -n '1p;$p;/zed/p' >"$work/got"
printf '%s\n' 's0-an102-b|dev|2|GO 102' 'zed-cen1-b|test|2|ONE TWO' 's2-an200-b|train|2|GO 200' |
    cmp - "$work/got" || fault 'an4: another manifest'

# 104 speakers for training, of whom 101 are taken; sox is a stub that copies.
set=so762
clone=$work/so762
mkdir -p "$clone/train" "$clone/test" "$clone/resource" "$clone/WAVE" "$work/bin"
cat >"$work/bin/sox" <<'END'
#!/bin/sh
cp "$2" "$7"
END
chmod +x "$work/bin/sox"
PATH=$work/bin:$PATH
wav "$clone/WAVE/all.WAV" 8000 60
python3 - "$top/scripts/make_data" >"$work/speakers" <<'END'
import re, sys
text = open(sys.argv[1], encoding="utf-8").read()
for name in "DEV", "TEST":
    print(*re.search(rf'SO762_{name} = """(.*?)"""', text, re.S)[1].split(), sep="\n")
for i in range(104):
    print(f"{i + 4000}")
END
[ "$(wc -l <"$work/speakers")" = 153 ] || fault 'so762: another number of speakers'
while read -r speaker; do
    part='test'
    [ "$speaker" -lt 4000 ] || [ "$speaker" -ge 4050 ] || part=train
    for n in 1 2; do
        printf '%s%s\tWE  GO\n' "$speaker" $n >>"$clone/$part/text"
        printf '%s%s\tWAVE/all.WAV\n' "$speaker" $n >>"$clone/$part/wav.scp"
        printf '%s%s\t%s\n' "$speaker" $n "$speaker" >>"$clone/$part/utt2spk"
        printf '%s%s.0\tW_B IY0_E\n%s%s.1\tG_B OW1_E\n' "$speaker" $n "$speaker" $n >>"$clone/resource/text-phone"
    done
    printf '%s\t6\n' "$speaker" >>"$clone/$part/spk2age"
    printf '%s\tf\n' "$speaker" >>"$clone/$part/spk2gender"
done <"$work/speakers"
mv "$clone/test/spk2age" "$work/spk2age"
refused 66 'test/spk2age: No such file' so762 "$clone"
grep -v 0811 "$work/spk2age" >"$clone/test/spk2age"
refused 65 "nothing about '0811'" so762 "$clone"
mv "$work/spk2age" "$clone/test/spk2age"
make_data so762 "$clone" || fault 'so762: failed'
[ "$(columns split | uniq -c | tr -s ' ' | tr '\n' ';')" = ' 40 dev; 58 test; 202 train;' ] ||
    fault 'so762: other splits'
columns id file spk age gender split official samples text phones | sed -n '1p;$p' >"$work/got"
printf '%s\n' '0811-08111|wav/08111.wav|0811|6|f|dev|test|60|WE GO|W IY G OW' \
    '4100-41002|wav/41002.wav|4100|6|f|train|test|60|WE GO|W IY G OW' |
    cmp - "$work/got" || fault 'so762: another manifest'
tar -t -f "$work/made/speech/so762/so762-wav.tar.gz" | sort >"$work/got"
columns file | sort | cmp - "$work/got" || fault 'so762: other files'

# The real sets.
for set in fsdd an4; do
    [ -e "$data/$set/manifest.tsv" ] || {
        echo "skipped: no $data/$set"
        continue
    }
    rm -rf "$work/made" "${work:?}/$set"
    mkdir -p "$work/$set/etc" "$work/unpacked"
    tar -x -f "$data/$set"/*.tar.* -C "$work/$set"
    [ $set = fsdd ] || awk -F '\t' 'NR > 1 { n = split($2, part, /[\/.]/); print $6 " (" part[n - 1] ")" }' \
        "$data/$set/manifest.tsv" >"$work/$set/etc/all.transcription"
    make_data $set "$work/$set" || fault "$set: failed"
    cmp "$data/$set/manifest.tsv" "$work/made/speech/$set/manifest.tsv" || fault "$set: another manifest"
    rm -rf "${work:?}/$set/etc"
    tar -x -f "$work/made/speech/$set"/*.tar.gz -C "$work/unpacked"
    diff -r "$work/$set" "$work/unpacked" >"$work/said" || fault "$set: other files"
    rm -rf "$work/unpacked"
done
