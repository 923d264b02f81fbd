#!/bin/sh
# scripts/test and scripts/bare_root refuse wrong arguments before they do anything;
# a machine that cannot make a bare Debian says why in the last line, exit 77.
set -eu
scripts=$(cd "$(dirname "$0")/../../scripts" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# must_end CODE LAST COMMAND...: with this last line.
must_end() {
    wanted=$1 last=$2 code=0
    shift 2
    "$@" >"$work/said" 2>&1 </dev/null || code=$?
    said=$(tail -n 1 "$work/said")
    [ "$code $said" = "$wanted $last" ] || {
        echo "$*: exit $code, not $wanted with \"$last\":"
        cat "$work/said"
        exit 1
    }
}

must_end 64 'test: unknown step tests; the steps are release slow sanitize clang tidy format shell' \
    "$scripts/test" release tests
must_end 64 'test: unknown step --all; the steps are release slow sanitize clang tidy format shell' \
    "$scripts/test" format --all
must_end 64 'bare_root: no command; see --help' "$scripts/bare_root"
must_end 64 'bare_root: no command; see --help' "$scripts/bare_root" --cuda
must_end 64 'bare_root: unknown option --gpu; the only option is --cuda' \
    "$scripts/bare_root" --gpu true

mkdir "$work/bin"
printf '#!/bin/sh\necho 1000\n' >"$work/bin/id"
chmod +x "$work/bin/id"
must_end 77 'bare_root: NOT RUN on a bare Debian: it needs root' \
    env PATH="$work/bin:$PATH" "$scripts/bare_root" true

[ "$(id -u)" = 0 ] || { echo 'the rest needs root'; exit 0; }
printf '#!/bin/sh\nexit 1\n' >"$work/bin/unshare"
rm "$work/bin/id"
chmod +x "$work/bin/unshare"
must_end 77 'bare_root: NOT RUN on a bare Debian: namespaces are not permitted' \
    env PATH="$work/bin:$PATH" "$scripts/bare_root" true

unshare --mount --pid --fork true 2>/dev/null || { echo 'no namespaces'; exit 0; }
mirror=http://127.0.0.1:9/debian
must_end 77 "bare_root: NOT RUN on a bare Debian: the mirror $mirror cannot be reached" \
    env BMUF_MIRROR=$mirror "$scripts/bare_root" true
