# shellcheck shell=sh
# Functions for scripts that read result.tsv; to be sourced in the top folder.

# settings_of NAME: the settings of a row, those of several words in quotes, as in
# 'block.workers=16@0 64@1'.
settings_of() {
    awk -F '\t' -v name="$1" '$1 == name { print $8 }' experiments/scaleup/result.tsv |
        sed -E "s/([^ ]*=[^ =]*( [^ =]+)+)( |$)/'\1'\3/g"
}
