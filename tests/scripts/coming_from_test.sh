#!/bin/sh
# The pages for users of Kaldi, ESPnet, RETURNN and PyLaia begin with commands and a
# configuration: they run as they are, on data of that program's kind, for one epoch.
#
#   tests/scripts/coming_from_test.sh PROGRAM
set -eu
docs=$(cd "$(dirname "$0")/../../docs" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
ln -s "$1" "$work/bin/bmuf"
PATH=$work/bin:$PATH
export PATH

# Sets of 8, 4 and 4: their names in Kaldi and in PyLaia, first and last number.
sets='train tr 1 8
dev va 9 12
test te 13 16'

# wav TEXT: 2.5 s of 16 bits at 8 kHz, the bytes of TEXT again and again.
wav() {
    printf 'RIFF\144\234\0\0WAVEfmt \20\0\0\0\1\0\1\0\100\37\0\0\200\76\0\0\2\0\20\0data\100\234\0\0'
    yes "$1" | tr -d '\n' | head -c 40000
}

# pgm SEED: an image of 400 x 30 pixels.
pgm() {
    awk -v seed="$1" 'BEGIN {
        srand(seed)
        print "P2 400 30 255"
        for (i = 0; i < 12000; i++) print int(255 * (rand() > 0.2))
    }'
}

kaldi() {
    mkdir wav
    echo "$sets" | while read -r set _ first last; do
        mkdir -p "data/$set"
        for i in $(seq -w "$first" "$last"); do
            wav "u$i" >"wav/u$i.wav"
            echo "u$i wav/u$i.wav" >>"data/$set/wav.scp"
            echo "u$i ONE TWO" >>"data/$set/text"
            echo "u$i u$i" >>"data/$set/utt2spk"
        done
    done
}

# RETURNN reads shards, and so they are files as it has them.
returnn() {
    kaldi
    vocab=
    for set in train dev test; do
        # shellcheck disable=SC2086 # two words or none
        bmuf pack --kaldi data/$set --out packed/$set $vocab >/dev/null
        vocab='--vocab packed/train'
    done
    cp packed/train/*.h5 train.1.hdf
    cp packed/dev/*.h5 dev.hdf
    cp packed/test/*.h5 test.hdf
}

pylaia() {
    mkdir lines
    printf '<ctc> 0\n<space> 1\no 2\nn 3\ne 4\n' >syms.txt
    echo "$sets" | while read -r _ set first last; do
        for i in $(seq -w "$first" "$last"); do
            pgm "$i" >"lines/u$i.pgm"
            echo "u$i o n e <space> o n e <space> n o <space> o n e" >>"$set.txt"
        done
    done
}

# page NAME DATA TEXTS: TEXTS is how many lines the last command writes.
page() {
    mkdir "$work/$1"
    cd "$work/$1"
    "$2"
    awk '/^```$/ && !done { inside = !inside; done = !inside; next } inside' \
        "$docs/data/$1.md" >commands
    config=$(sed -n 's/^bmuf train \([^ ]*\) .*/\1/p' commands)
    awk '/^```/ { inside = /^```ini$/; next } inside' "$docs/data/$1.md" >"$config"
    printf '[train]\nepochs = 1\n' >>"$config"
    sh -eu commands >printed 2>said || {
        echo "docs/data/$1.md: a command failed:"
        tail -n 5 said
        exit 1
    }
    tested=$(grep -c '(u1[3-6])$' test.trn)
    decoded=$(sh -c "$(tail -n 1 commands)" 2>said | wc -l)
    [ "$tested $decoded" = "4 $3" ] || {
        echo "docs/data/$1.md: $tested texts of 4 in test.trn, $decoded of $3 printed"
        cat said
        exit 1
    }
}

# hybrid: the network on frames of the page of Kaldi, in its data. Its first layer is
# context on both sides of a frame of 40 bands.
hybrid() {
    sed -n '/^## A hybrid network/,$p' "$docs/data/from-kaldi.md" >section
    awk '/^```$/ && !done { inside = !inside; done = !inside; next } inside' section \
        >commands
    awk '/^```$/ { inside = !inside; n += inside; next } inside && n == 2' section >dnn.ini
    printf '[train]\nepochs = 1\n' >>dnn.ini
    for i in $(seq 1 8); do
        echo "u$i $(yes '0 1 2 3' | head -n 62 | tr '\n' ' ')"
    done >made.ark
    echo 'cp made.ark pdf.ark' >"$work/bin/ali-to-pdf"
    chmod +x "$work/bin/ali-to-pdf"
    mv shards ctc
    echo 'bmuf explain dnn.ini' >>commands
    sh -eu commands >printed 2>said || {
        echo "docs/data/from-kaldi.md: the hybrid network failed:"
        tail -n 5 said
        exit 1
    }
    grep -q '^0.splice  *40 -> 440 ' printed || {
        echo "docs/data/from-kaldi.md: the hybrid network has no context on both sides"
        cat printed
        exit 1
    }
}

page from-kaldi kaldi 4
hybrid
page from-espnet kaldi 4
page from-returnn returnn 4
page from-pylaia pylaia 16
