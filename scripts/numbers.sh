# shellcheck shell=sh
# Functions for scripts that read results; to be sourced.

# number KEY FILE: the last value of this key in JSON lines.
number() {
    sed -n "s/.*\"$1\": *\"\{0,1\}\([^,\"}]*\).*/\1/p" "$2" | tail -n 1
}

# wrong FILE: the wrong labels of what `bmuf eval --json` printed.
wrong() {
    echo $(($(number substitutions "$1") + $(number deletions "$1") + \
        $(number insertions "$1")))
}
