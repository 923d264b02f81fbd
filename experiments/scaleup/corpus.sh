# shellcheck shell=sh disable=SC2034,SC2154 # the variables are for those who read this file
# Sets config, train, dev and test of the corpus $corpus, and budget, the epochs of a
# search: about four times those of a run; and `also`, settings of all methods.
# $corpus is strings, strings-NUMBER with so many of them to train on, or strings-NAME with
# the network of experiments/strings/NAME.ini; lectaurep, or likewise lectaurep-NAME; an4;
# so762; or made speech, as digits-10h.
# Different amounts of the same corpus have one test set.
also=
case $corpus in
    strings*)
        config=experiments/strings/config.ini budget=24
        train=data/strings/train dev=data/strings/dev test=data/strings/test
        case ${corpus#strings} in
            -[0-9]*) train=$train${corpus#strings} ;;
            -*) config=experiments/strings/${corpus#strings-}.ini ;;
        esac
        ;;
    lectaurep | lectaurep-*)
        config=experiments/lectaurep/config.ini budget=32
        [ "$corpus" = lectaurep ] || config=experiments/lectaurep/${corpus#lectaurep-}.ini
        train=data/lectaurep/shards/train dev=data/lectaurep/shards/dev
        test=data/lectaurep/shards/test
        ;;
    an4 | so762)
        config=experiments/$corpus/config.ini budget=80 also=block.frames_total=0
        [ "$corpus" = so762 ] || budget=160
        train=data/$corpus/units/train dev=data/$corpus/units/dev
        test=data/$corpus/units/test
        ;;
    *)
        config=experiments/scaleup/config.ini budget=24
        train=data/$corpus/train dev=data/${corpus%-*}-10h/dev test=data/${corpus%-*}-10h/test
        ;;
esac
