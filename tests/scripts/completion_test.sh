#!/bin/bash
# Completion in bash, by calling its function with words of a command line as
# bash breaks them; and that zsh and shellcheck, where they are installed, find
# no fault in the scripts.
#
#   tests/scripts/completion_test.sh BMUF
set -eu
bmuf=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$bmuf" completions bash >"$work/bmuf.bash"
"$bmuf" completions zsh >"$work/_bmuf"
# shellcheck disable=SC1091 # made above
. "$work/bmuf.bash"
mkdir "$work/folder"
touch "$work/my.ini"
cd "$work"

# completes "WORDS.." WANTED..: the last of the words is being typed.
completes() {
    COMP_WORDS=()
    while read -r word; do COMP_WORDS+=("$word"); done <<<"${1// /$'\n'}"
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    shift
    COMPREPLY=()
    _bmuf
    for wanted; do
        printf '%s\n' "${COMPREPLY[@]}" | grep -qxF -- "$wanted" || {
            echo "'${COMP_WORDS[*]}' is not completed with '$wanted'," \
                "but with: ${COMPREPLY[*]}"
            exit 1
        }
    done
}
# The same, and nothing else.
completes_only() {
    completes "$@"
    [ ${#COMPREPLY[@]} = $(($# - 1)) ] || {
        echo "'${COMP_WORDS[*]}' is completed with: ${COMPREPLY[*]}"
        exit 1
    }
}

completes_only "bmuf tra" train trace
completes "bmuf " pack eval completions --version
completes_only "bmuf train --o" --out
completes "bmuf train --" --out --ranks --set --dry-run --quiet --help
completes "bmuf train " my.ini folder
completes_only "bmuf train my.ini --out fo" folder
completes_only "bmuf train my.ini -o fo" folder
completes_only "bmuf train my.ini --out = fo" folder
completes_only "bmuf train --set bmuf.mom" bmuf.momentum=
completes "bmuf train --set schedule." schedule.kind=
completes "bmuf train --set job.device = " auto cpu cuda
completes_only "bmuf train --set job.device = cu" cuda
completes_only "bmuf train --set job.device=cu" job.device=cuda
completes_only "bmuf train --set bmuf.nesterov = " yes no
completes_only "bmuf train --set data.train = " folder
completes_only "bmuf train --set train.epochs = "
completes_only "bmuf eval --device " cpu cuda auto
completes_only "bmuf eval --precision t" tf32
completes "bmuf pack --set features.m" features.mels=
completes_only "bmuf pack --set bmuf.mom"
completes_only "bmuf pack --units " characters words
completes_only "bmuf help tra" train trace
completes "bmuf options bmuf" bmuf bmuf.momentum
completes_only "bmuf completions " bash zsh

if command -v zsh >/dev/null; then
    zsh -n "$work/_bmuf"
fi
if command -v shellcheck >/dev/null; then
    shellcheck -s bash "$work/bmuf.bash"
fi
