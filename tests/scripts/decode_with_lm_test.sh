#!/bin/sh
# scripts/decode_with_lm: the model is of the characters of the training texts, and
# the test set is decoded once, with the weights that are best on dev. IRSTLM is real,
# bmuf is simulated but for `bmuf lm`, and in a folder with a blank.
set -eu
bmuf=$1
scripts=$(cd "$(dirname "$0")/../../scripts" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

mkdir -p data run 'a b' 'my run' shards/dev shards/test
: >data/dev.jsonl
: >data/test.jsonl
# Fields in any order, without a speaker, and escapes as Python writes them.
cat >data/train.jsonl <<'END_OF_TEXTS'
{"speaker": "a", "text":"\u00e9t\u00E9 \"là\"", "id": "1", "image": "1.png"}
{"id": "text", "image": "2.png", "custom": [{"text": "no"}], "text" : "l\\a\ud83d\ude00"}
{"id": "3", "image": "3.png", "text": null}
END_OF_TEXTS
# Errors on dev are least with 0.5 and 1.
cat >'a b/fake' <<END_OF_PROGRAM
#!/bin/sh
echo "\$*" >>calls
case "\$*" in
    lm*) exec "$bmuf" "\$@" ;;
    decode*) echo "\$*" ;;
    score*dev*) awk '
        { print "char errors  " (/weight 0.5 --word-score 1\$/ ? "9.50" : "10.25") " %" }' "\$3" ;;
    score*) cat "\$3" "\$4" ;;
esac
END_OF_PROGRAM
chmod +x 'a b/fake'
BMUF="$work/a b/fake" "$scripts/decode_with_lm" run data shards >said

cat >wanted <<'END_OF_OUTPUT'
dev: 9.50 % of the characters with --lm-weight 0.5 --word-score 1
decode run shards/test --quiet --format trn
decode run shards/test --quiet --format trn --beam 30 --lm run/lm/lm --lm-weight 0.5 --word-score 1
END_OF_OUTPUT
diff wanted said
[ "$(grep -c 'decode run shards/dev' calls)" = 15 ]
# <s>, </s>, <unk>, and é t space " l à \ a 😀.
grep -q '^1-grams *12$' run/lm/lm.txt || {
    cat run/lm/lm.txt
    exit 1
}
printf '%s\n' 'é t é <space> " l à "' 'l \ a 😀' >text
"$bmuf" lm run/lm/lm --score text --json | grep -q '"words": 12, "unknown": 0,'

BMUF="$work/a b/fake" "$scripts/decode_with_lm" 'my run' data shards >said
cmp -s 'my run/lm/lm.arpa' run/lm/lm.arpa
code=0
BMUF="$work/a b/fake" "$scripts/decode_with_lm" none data shards 2>said || code=$?
[ $code = 66 ]
grep -q 'none is missing' said
[ ! -e none ]

echo '{"id": "1", "sentence": "a"}' >data/train.jsonl
if BMUF="$work/a b/fake" "$scripts/decode_with_lm" run data shards 2>said; then
    exit 1
fi
grep -q 'no "text" in data/train.jsonl' said
