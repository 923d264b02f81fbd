# shellcheck shell=sh
#
# What is in a journal; to be sourced.
#
#   field digest FILE   prints the last value of a field
#   events block FILE   prints how many events of this kind there are

field() { # FIELD FILE
    sed -n "s/.*\"$1\": *\"\{0,1\}\([^,\"}]*\).*/\1/p" "$2" | tail -n 1
}

events() { # EVENT FILE
    grep -c "^{\"event\":\"$1\"" "$2" 2>/dev/null || :
}
