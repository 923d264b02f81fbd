# shellcheck shell=sh disable=SC2034,SC2154 # the variables are for those who read this file
# Sets config, train, dev and test of the corpus $corpus, a folder below data/: strings
# and its variants, as strings-120000, or made speech, as digits-10h. Different amounts
# of the same corpus have one test set.
case $corpus in
    strings*)
        config=experiments/strings/config.ini
        train=data/strings/train${corpus#strings} dev=data/strings/dev test=data/strings/test
        ;;
    *)
        config=experiments/scaleup/config.ini
        train=data/$corpus/train dev=data/${corpus%-*}-10h/dev test=data/${corpus%-*}-10h/test
        ;;
esac
