#!/bin/sh
# The scripts of experiments/, with a stub of the program: images have folders by their
# source; a table begins with its header; a program that fails adds no row; a script that
# was stopped goes on; names of folders may be relative. Nothing is trained.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fault() {
    echo "$*"
    cat "$work/said"
    exit 1
}
tree=$work/tree
mkdir -p "$tree/build/release" "$tree/run" "$work/bin" "$work/raw"
cp -r "$top/scripts" "$top/experiments" "$tree"
export PATH="$work/bin:$PATH" BMUF_DATA="$work/raw"

# Stubs write their calls to `calls`, and fail if a line of `fail` matches the call.
cat >"$work/begin" <<END
#!/bin/sh
work=$work call="\${0##*/} \$*"
echo "\$call" >>"\$work/calls"
! echo "\$call" | grep -qf "\$work/fail" || exit 1
END
stub() {
    { cat "$work/begin"; cat; } >"$1"
    chmod +x "$1"
}
stub "$tree/build/release/bmuf" <<'END'
value() { # OPTION ARGUMENT...: what follows the option
    option=$1
    shift
    while [ "$1" != "$option" ]; do shift; done
    echo "$2"
}
case $1 in
    pack)
        out=$(value --out "$@")
        case $call in
            *--force*) ;;
            *) [ ! -d "$out" ] || exit 73 ;;
        esac
        mkdir -p "$out"
        [ ! -e "$work/slow" ] || sleep 0.3
        ;;
    train)
        out=$(value --out "$@")
        mkdir -p "$out"
        : >"$out/config.ini"
        : >"$out/model-best.safetensors"
        : >"$out/model.safetensors"
        printf '{"event": "%s", "ler": 0.5, "epochs": 2, "blocks": 3, "seconds": 4, "digest": "d"}\n' \
            eval end >"$out/journal.jsonl"
        ;;
    eval) echo '{"labels": 10, "substitutions": 1, "deletions": 1, "insertions": 1, "ler": 0.3, "ler_95": [0.1, 0.5]}' ;;
    align)
        case $call in
            *--targets*) mkdir -p "$(value --targets "$@")" ;;
        esac
        ;;
    tune)
        out=$(value --out "$@")
        mkdir -p "$out/trials/t000" "$out/trials/t001"
        printf 't%03d\t1\ttrain.rate=0.%d\t-\n' 0 1 1 2 >"$out/trials.tsv"
        case $out in
            *search-100h* | *search-strings* | *search-registers*) # t001 is best on dev with the seed that all have
                printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' trial seed state ler seconds \
                    train.rate sgd.momentum t000 1 done 0.15 9 0.1 0.9 \
                    t001 1 done 0.14 9 0.2 0.8 t002 1 diverged '' 9 0.3 0.95 \
                    t000-s2 2 done 0.13 9 0.1 0.9 >"$out/trials.tsv"
                ;;
        esac
        echo 'Mean over seeds'
        echo 't001     4.00 % (3.00 % to 5.00 %), 3 of 3 seeds'
        echo 't000     5.00 % (4.00 % to 6.00 %), 3 of 3 seeds'
        ;;
esac
END
stub "$tree/build/release/bmuf_noise" </dev/null
stub "$tree/build/release/bmuf_speech" </dev/null
stub "$work/bin/espeak-ng" <<'END'
[ "$1" = --version ] || echo "$9" >"$8"
END
stub "$work/bin/python3" <<'END'
case ${1-} in
    *strings.py)
        mkdir "$3" || exit 1
        [ ! -e "$work/slow" ] || sleep 0.3
        ;;
    *train_in_torch.py)
        [ -e "$2" ] || exit 1
        echo '{"wrong": 2, "labels": 10, "seconds": 5}'
        ;;
esac
END
stub "$tree/experiments/images/make_images" <<'END'
mkdir -p "$1"
for name in train-images-idx3 train-labels-idx1 test-images-idx3 test-labels-idx1; do
    echo made >"$1/$name-ubyte.gz"
done
END
# Their data are not under test.
for name in digits hybrid pendigits finetune lectaurep an4 so762; do
    stub "$tree/experiments/$name/prepare" </dev/null
done
stub "$tree/experiments/lines/prepare_columns" </dev/null

# ends CODE COMMAND...: it does, and leaves what it printed in `said`, its calls in `calls`.
ends() {
    wanted=$1 code=0
    shift
    : >"$work/calls"
    "$@" >"$work/said" 2>&1 || code=$?
    [ "$code" = "$wanted" ] || fault "$*: exit $code, not $wanted"
}
# fails PATTERN COMMAND...: it does, where a stub fails whose call has the pattern.
fails() {
    echo "$1" >"$work/fail"
    shift
    code=0
    : >"$work/calls"
    "$@" >"$work/said" 2>&1 || code=$?
    : >"$work/fail"
    [ $code != 0 ] || fault "$*: success, although a program failed"
}
called() { grep -q -e "$1" "$work/calls" || fault "no call of $1: $(cat "$work/calls")"; }
calls() { grep -c -e "$1" "$work/calls" || true; }
: >"$work/fail"
cd "$tree"

# ---- images -------------------------------------------------------------------

ends 66 env IDX="$work/nothing" experiments/images/prepare
[ ! -e data ] || fault 'images: a folder for images that are not there'
mkdir -p "$work/here/few"
for name in train-images-idx3 train-labels-idx1 t10k-images-idx3 t10k-labels-idx1; do
    echo few >"$work/here/few/$name-ubyte.gz"
done
cd "$work/here"
ends 0 env IDX=few/ "$tree/experiments/images/run" 3
called "pack --idx $work/here/few/t10k-images-idx3-ubyte.gz --out $tree/data/images-few/test "
called 'train experiments/presets/alexnet-small.ini --out run/images-few-alexnet-3 .*=data/images-few/train'
called 'eval run/images-few-resnet-3/model.safetensors data/images-few/test'
cd "$tree"
ends 0 experiments/images/run 3
called "pack --idx $tree/data/images/made/train-images-idx3-ubyte.gz --out $tree/data/images/train"
called 'train experiments/presets/alexnet-small.ini --out run/images-alexnet-3 .*=data/images/train'
ends 0 experiments/images/prepare
[ "$(calls 'bmuf pack')" = 0 ] || fault 'images: packed again'
echo other >>"$work/here/few/train-labels-idx1-ubyte.gz"
fails 'pack.*few/t10k' env IDX="$work/here/few" experiments/images/prepare
ends 0 env IDX="$work/here/few" experiments/images/prepare
[ "$(calls 'bmuf pack')" = 2 ] || fault 'images: others, or a stopped packing, are not packed'
cd "$work/here"
ends 0 env IDX=few "$tree/experiments/images/run_mnist" 3
called "pack --idx $work/here/few/train-images-idx3-ubyte.gz --out $tree/data/mnist/train"
cd "$tree"

# ---- tables -------------------------------------------------------------------

# table NAME ROWS: result.tsv, which was away, has its header again, and these rows.
table() {
    [ "$(head -n 1 "experiments/$1/result.tsv")" = "$(head -n 1 "$top/experiments/$1/result.tsv")" ] ||
        fault "$1: another header: $(cat "experiments/$1/result.tsv")"
    [ "$(wc -l <"experiments/$1/result.tsv")" = $(($2 + 1)) ] ||
        fault "$1: not $2 rows: $(cat "experiments/$1/result.tsv")"
}
rm experiments/*/result.tsv
ends 0 experiments/scaleup/one first digits-10h job.workers=1
table scaleup 1
mkdir -p run/lines-large-1
: >run/lines-large-1/model-best.safetensors
ends 0 experiments/finetune/run 100
table finetune 6
grep -qF '| 100 | scratch | 80 | 30.00 | 30.00 (30.00 to 30.00) | 30.00, 30.00, 30.00 |' "$work/said" ||
    fault 'finetune: the first row is not in the table'
ends 0 experiments/pytorch/run pylaia 1
table pytorch 2

# A row of another machine: config.ini is not here.
rm -r run/pytorch
sed -i '/\tpytorch\t/d' experiments/pytorch/result.tsv
ends 0 experiments/pytorch/run pylaia 1
table pytorch 2
rm -r run/pytorch
ends 0 experiments/pytorch/run pylaia 1
[ "$(calls 'bmuf train')" = 0 ] || fault 'pytorch: trained again, with both rows there'

# No row of what cannot be tested.
fails 'bmuf eval' experiments/defaults/run digits
[ "$(wc -l <run/defaults/result.tsv)" = 1 ] || fault 'defaults: a row without errors'
ends 0 experiments/defaults/run digits
awk 'NR > 1 && ($6 != 10 || $7 != 3 || $8 != 3) { exit 1 } END { exit NR != 14 }' \
    run/defaults/result.tsv || fault 'defaults: other rows'
fails 'bmuf eval .*t001' experiments/tune/run pendigits
[ "$(wc -l <run/tune/result.tsv)" = 1 ] || fault 'tune: half of the rows'
ends 0 experiments/tune/run pendigits
[ "$(cut -f 6-12 run/tune/result.tsv | tail -n 2)" = "$(
    printf '%s\t3\t%d.00\t%d.00\t%d.00\t10\t3\n' given 5 4 6 best 4 3 5)" ] ||
    fault "tune: other rows: $(cat run/tune/result.tsv)"
fails 'bmuf eval run/hybrid-dnn' experiments/hybrid/run 1
! grep '^|' "$work/said" || fault 'hybrid: a row without errors'
ends 0 experiments/hybrid/run 1
grep -qF '| 1 | 30.00 (10.00 to 50.00) | 30.00 (10.00 to 50.00) |' "$work/said" ||
    fault 'hybrid: another row'

# ---- made data ----------------------------------------------------------------

# The speech has 3, 2 and 2 recordings here.
sed -i 's/ 1200 / 3 /; s/ 120 / 2 /; s/ 240 / 2 /' scripts/make_speech
fails 'bmuf_noise 6 5 30' experiments/tune/prepare
fails 'pack .*data/noisy/dev' experiments/tune/prepare
ends 0 experiments/tune/prepare
[ "$(calls 'bmuf pack')" = 2 ] || fault 'tune: dev and test are not packed, or more'
[ "$(wc -l <data/noisy/train.jsonl) $(wc -l <data/noisy/test.jsonl)" = '3 12' ] ||
    fault 'tune: sets of other sizes'
ends 0 experiments/tune/prepare
[ "$(calls 'bmuf pack\|bmuf_noise')" = 0 ] || fault 'tune: made again'

printf 'digits-10h-serial-1\tdigits-10h\t10\t3\t0\t4\td\ttrain.rate=0.1\n' \
    >>experiments/scaleup/result.tsv
ends 64 experiments/scaleup/hours 30 serial other
grep -q 'first: experiments/scaleup/run digits other' "$work/said" || fault 'hours: another reason'
[ "$(calls .)" = 0 ] || fault 'hours: begins without all settings'
ends 0 experiments/scaleup/hours 30 train.epochs=3 serial
called 'train .*data.train=data/digits-30h/train --set data.dev=data/digits-10h/dev'
# prepared COMMAND HOURS: it makes ten hours, which have dev and test, and then these.
prepared() {
    made=$(sed -n 's/^bmuf_speech --out data\/digits-\([0-9]*\)h .*/\1/p' "$work/calls")
    [ "$made" = "10
$2" ] || fault "$1: makes $made hours"
}
prepared hours 30
fails 'bmuf train' experiments/scaleup/hundred
prepared hundred 100

# A search: its trials, and the best with three seeds, of which it has trained the first.
ends 64 experiments/scaleup/search other
rm -f experiments/scaleup/searches.tsv
fails 'bmuf eval .*average-16-2' experiments/scaleup/search average-16
prepared search 100
[ "$(cut -f 1-7 experiments/scaleup/searches.tsv | tail -n 3)" = "$(
    printf 'average-16\t%s\t%d\t%s\tsgd.momentum\t%s\t%s\n' t001 1 0.2 0.8 0.14 \
        t002 1 0.3 0.95 '' t000-s2 2 0.1 0.9 0.13)" ] ||
    fault "search: other trials: $(cat experiments/scaleup/searches.tsv)"
ends 0 experiments/scaleup/search average-16
[ "$(calls 'bmuf tune') $(calls 'bmuf train')" = '0 2' ] || fault 'search: not the seeds that are left'
called 'train .*digits-100h-searched-average-16-3 .*train.rate=0.2 --set sgd.momentum=0.8 --set job.seed=3'

# A row once more, with its settings, into another table.
printf 'digits-100h-growing-64-2\tdigits-100h\t10\t4\t0\t4\te\tblock.workers=16@0 64@1 job.seed=2\n' \
    >>experiments/scaleup/result.tsv
before=$(cat experiments/scaleup/result.tsv)
ends 64 experiments/scaleup/again other
grep -q 'no row of experiments/scaleup/result.tsv matches other' "$work/said" ||
    fault 'again: another reason'
fails 'bmuf eval run/again/digits-10h-serial-1' experiments/scaleup/again 'digits-10h.*'
ends 0 experiments/scaleup/again 'digits-10h.*' '.*growing.*'
called "train experiments/scaleup/config.ini --out run/again/digits-100h-growing-64-2 .*--set block.workers=16@0 64@1 --set job.seed=2"
grep -qF '| digits-10h-serial-1 | 30.00 | 30.00 | the same |' "$work/said" ||
    fault 'again: another row'
grep -qF '| digits-100h-growing-64-2 | 40.00 | 30.00 | another |' "$work/said" ||
    fault 'again: another error or digest'
grep -qF '| one worker | 30.00 |  | | | | | | |' "$work/said" || fault 'again: no differences'
[ "$(cat experiments/scaleup/result.tsv)" = "$before" ] || fault 'again: changes the table'
ends 0 experiments/scaleup/again 'digits-10h.*'
[ "$(calls 'bmuf train')" = 0 ] || fault 'again: trained again'

# Means, differences and p values of three seeds, as SciPy's t, ttest_ind(equal_var=False) and
# ttest_rel have them; one seed beside the same one.
{
    echo name
    for row in serial-1:30 serial-2:34 serial-3:29 plain-bmuf-16-1:40 plain-bmuf-16-2:47 \
        plain-bmuf-16-3:44 muon-16-2:17; do
        printf 'digits-10h-%s\tdigits-10h\t100\t%s\t0.%s\n' "${row%:*}" "${row#*:}" "${row#*:}"
    done
} >experiments/scaleup/result.tsv
ends 0 experiments/scaleup/differences
while read -r line; do
    grep -qxF "$line" "$work/said" || fault "differences: not $line"
done <<'END'
| one worker | 30.00, 34.00, 29.00 | 31.00 (24.43 to 37.57) | | | | | | |
| 16, BMUF | 40.00, 47.00, 44.00 | 43.67 (34.94 to 52.39) | +40.9 % (+20.7 to +61.0) | 0.01 | +40.9 % (+20.7 to +61.0) | 0.01 | +40.9 % (+17.4 to +64.3) | 0.009 |
| 16, BMUF over Muon | 17.00 |  | -50.0 % |  | -50.0 % |  |  |  |
END
"$top"/experiments/scaleup/differences >"$work/said"
cmp -s "$work/said" "$top/experiments/scaleup/differences.md" ||
    fault 'experiments/scaleup/differences.md is not that of result.tsv'
# Differences with intervals over seeds that pages quote are those.
for page in README.md docs/tuning.md experiments/README.md \
    experiments/scaleup/README.md experiments/scaleup/digits.md \
    experiments/scaleup/speech.md experiments/scaleup/handwriting.md; do
    grep -oE '[+-][0-9.]+ % \([+-][0-9.]+ to [+-][0-9.]+\)' "$top/$page" | while read -r quoted; do
        grep -qF -e "$quoted" "$work/said" || echo "$page: no difference of differences.md is $quoted"
    done
done >"$work/wrong"
mv "$work/wrong" "$work/said"
[ ! -s "$work/said" ] || fault 'pages quote other differences than experiments/scaleup/differences.md has'

# ---- other folders ------------------------------------------------------------

cd experiments
ends 0 lines/run_augmented 2 longer
called 'train experiments/lines/longer.ini --out run/lines-longer-2 '
fails 'bmuf pack' lines/run_capitals 2
ends 0 lines/run_capitals 2
called 'bmuf align run/lines-muon-1 data/lines/columns/train '
called 'python3 experiments/lines/capitals.py data/lines data/lines/capitals/train.ctm '
called 'train .* --out run/lines-capitals-2 .* data.train=data/lines/capitals/train'
ends 0 lines/run_capitals 3
[ "$(calls 'bmuf pack')" = 0 ] || fault 'lines in capitals: made again'
mkdir -p "$work/raw/handwriting/mnist"
for name in train-images-idx3 train-labels-idx1 t10k-images-idx3 t10k-labels-idx1; do
    : >"$work/raw/handwriting/mnist/$name-ubyte.gz"
done
ends 0 strings/prepare
[ "$(calls 'bmuf pack')" = 3 ] || fault 'strings: not three sets'
ends 0 strings/prepare
[ "$(calls 'bmuf pack')" = 0 ] || fault 'strings: made again'
echo '#' >>strings/prepare
: >"$work/slow"
: >"$work/calls"
strings/prepare >"$work/first" 2>&1 &
first=$!
until grep -q strings.py "$work/calls" || ! kill -0 $first 2>/dev/null; do sleep 0.05; done
strings/prepare >"$work/said" 2>&1 || fault 'strings: two at once'
wait $first || fault "strings: two at once: $(cat "$work/first")"
[ "$(calls 'bmuf pack')" = 3 ] || fault "strings: two at once: $(calls 'bmuf pack') sets"
rm "$work/slow"
echo '#' >>strings/prepare
fails 'bmuf pack' strings/prepare
[ ! -e "$tree/data/strings/pages" ] || fault 'strings: pages remain'
ends 0 scaleup/search strings-average-16
called 'tune experiments/strings/instancenorm.ini .*search-strings-average-16 .*--epochs 35 .*--set block.workers=4@0 16@1 --set batch.sequences=1 '
called 'train .*strings-instancenorm-searched-average-16-2 .*--set train.epochs=5 --set job.workers=16 --set block.workers=4@0 16@1 .*train.rate=0.2 --set sgd.momentum=0.8 --set job.seed=2'
ends 0 scaleup/search registers-average-8
called 'tune experiments/lectaurep/instancenorm.ini .*search-registers-average-8 .*--epochs 56 .*--set block.workers=2@0 8@2 '
called 'train .*lectaurep-instancenorm-searched-average-8-6 .*--set train.epochs=8 .*--set sgd.momentum=0.8 --set job.seed=6'

# ---- commands of rows ---------------------------------------------------------

# Each row is made by a command of the page, with these settings; those of a search have
# the names METHOD-SEED of `run` and `hours`. Rows leave out the first seed and the
# configuration's epochs.
cd "$tree"
cp "$top/experiments/scaleup/result.tsv" experiments/scaleup
stub experiments/scaleup/one <<'END'
echo "$*" >>"$work/rows"
END
for name in tried exchange hundred growing larger registers strings words 'words 100' speech map; do
    # shellcheck disable=SC2086 # two words
    ends 0 experiments/scaleup/$name
done
awk -F '\t' '
    FNR == NR {
        n = split($0, word, " ")
        for (i = 2; i <= n; i++)
            made[word[1], word[i]] = made[word[1]] = 1
        next
    }
    FNR == 1 || ($1 ~ /^(digits-(10|30|100)h|lectaurep|strings-instancenorm-searched)-[a-z0-9-]*-[123]$|^lectaurep-instancenorm-searched-[a-z0-9-]*-[1-6]$/ && !($1 in made)) { next }
    !($1 in made) { print "no command makes " $1 }
    $1 in made {
        n = split($2 " " $8, word, " ")
        for (i = 1; i <= n; i++)
            if (!(($1, word[i]) in made) && word[i] !~ /^(job.seed=1|train.epochs=6)$/)
                print $1 ": no command sets " word[i]
    }' "$work/rows" experiments/scaleup/result.tsv >"$work/said"
[ ! -s "$work/said" ] || fault 'experiments/scaleup/result.tsv has other rows than the commands'
