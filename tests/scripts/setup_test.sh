#!/bin/sh
# scripts/setup: no-op if everything is installed; runs apt-get as root for
# missing packages; without root it prints a list and exits with 69. The machine
# is simulated: setup finds only the programs below.
set -eu
scripts=$(cd "$(dirname "$0")/../../scripts" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fault() {
    echo "$*; messages:"
    cat "$work/said"
    exit 1
}

stand_in() {
    { echo '#!/bin/sh'; cat; } >"$work/$1"
    chmod +x "$work/$1"
}
mkdir "$work/bin" "$work/sudo"
toolkit=$work/none
for program in sh awk env sed cat grep; do
    ln -s "$(command -v $program)" "$work/bin/$program"
done
# The file `installed` has a line for each package; "config-files": removed.
stand_in bin/dpkg-query <<'END'
shift 3 # -W -f FORMAT
for package; do
    grep -x -e "$package installed" -e "$package config-files" \
        "$FAKE/installed" || status=1
done
exit ${status-0}
END
# Records its calls. Packages in the file `unknown` cannot be installed.
stand_in bin/apt-get <<'END'
echo "$FAKE_USER $DEBIAN_FRONTEND $*" >>"$FAKE/asked"
echo 'Reading package lists...'
[ "$1" = install ] || exit 0
for word; do
    grep -qx -e "$word" "$FAKE/unknown" || echo "$word installed" >>"$FAKE/installed"
done
END
stand_in bin/id <<'END'
[ "$FAKE_USER" = root ] && echo 0 || echo 1000
END
# -n fails for the user `password`.
stand_in sudo/sudo <<'END'
if [ "$1" = -n ]; then
    [ "$FAKE_USER" != password ] || exit 1
    shift
fi
[ "$1" = true ] || FAKE_USER=root exec "$@"
END

# setup USER [OPTION]: sets code to the exit status and writes the messages to
# said. USER is root, nobody (no sudo), sudoer, or password (sudo asks for it).
setup() {
    path=$work/bin code=0
    case $1 in sudoer | password) path=$path:$work/sudo ;; esac
    rm -f "$work/asked"
    FAKE=$work FAKE_USER=$1 PATH=$path CUDA_PATH=$toolkit "$scripts/setup" ${2+"$2"} \
        </dev/null >"$work/results" 2>"$work/said" || code=$?
    [ ! -s "$work/results" ] || fault 'it prints to standard output'
}
# have_all_but PACKAGE...: installs all packages that setup needs but these.
have_all_but() {
    printf '%s\n' "$@" >"$work/absent"
    grep -vxFf "$work/absent" "$work/all" | sed 's/$/ installed/' \
        >"$work/installed"
}
ends() { [ "$code" = "$1" ] || fault "exit $code, not $1"; }
says() { grep -qFx -e "$1" "$work/said" || fault "missing message: $1"; }
apt_get_is_not_called() { [ ! -e "$work/asked" ] || fault 'apt-get was called'; }
apt_get_is_asked_for() {
    printf 'root noninteractive %s\n' 'update -q' \
        "install -q -y --no-install-recommends $*" |
        cmp - "$work/asked" || fault "apt-get was not called for $*"
}
lists() {
    says 'setup: Missing packages:'
    for package; do says "    $package"; done
    says "    apt-get update && apt-get install --no-install-recommends $*"
    [ "$(grep -c '^    [a-z0-9+.-]*$' "$work/said")" = $# ] ||
        fault "the list has other packages than $*"
}

# On a machine without packages the list has all of them.
: >"$work/installed"
: >"$work/unknown"
setup nobody
ends 69
sed -n 's/^    \([a-z0-9+.-]*\)$/\1/p' "$work/said" >"$work/all"
for package in gcc cmake libopenmpi-dev libhdf5-dev libcmocka-dev espeak-ng; do
    grep -qx "$package" "$work/all" || fault "$package is not in the list"
done

have_all_but ''
for user in nobody sudoer root; do
    setup $user
    ends 0
    [ "$(cat "$work/said")" = 'setup: all packages are installed' ] ||
        fault 'reports a missing package although all are installed'
    apt_get_is_not_called
done

for user in nobody password; do
    have_all_but git espeak-ng
    echo 'git config-files' >>"$work/installed"
    setup $user
    ends 69
    says 'setup: Installing needs root, and sudo is not available.'
    lists git espeak-ng
    apt_get_is_not_called
done

for user in root sudoer; do
    have_all_but cmake libpng-dev
    setup $user
    ends 0
    says 'setup: installing with apt: cmake libpng-dev'
    says 'setup: done'
    apt_get_is_asked_for cmake libpng-dev
    setup $user
    ends 0
    apt_get_is_not_called
done

have_all_but ''
setup root --dev
ends 0
apt_get_is_asked_for clang-14 libclang-rt-14-dev clang-format-14 \
    clang-tidy-14 shellcheck python3 iproute2 openssh-client openssh-server \
    slurm-wlm munge
setup root --ci
ends 0
apt_get_is_asked_for mmdebstrap chromium-headless-shell

# A toolkit that is not in PATH counts too: CMake finds it.
mkdir -p "$work/toolkit/bin"
stand_in toolkit/bin/nvcc </dev/null
toolkit=$work/toolkit
setup root
ends 0
apt_get_is_asked_for g++

have_all_but cmake ninja-build
echo cmake >"$work/unknown"
setup root
ends 69
says 'setup: apt-get could not install everything; see above.'
lists cmake

setup root --all
ends 64
mv "$work/bin/apt-get" "$work/bin/dnf"
setup root
ends 69
says 'setup: This is not a Debian system. Install the equivalents of these packages:'
says '    cmake'
