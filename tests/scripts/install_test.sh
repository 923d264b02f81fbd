#!/bin/sh
# Installs a build into a temporary directory; builds and runs another project's
# programs with it, by the CMake package and by pkg-config. One of them turns
# speech into words with a model that is trained here. Every header compiles alone.
#
#   tests/scripts/install_test.sh BUILD CC [FLAGS]
set -eu
build=$1 cc=$2 flags=${3-}
top=$(cd "$(dirname "$0")/../.." && pwd)
consumer=$top/tests/consumer
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

must_print() {
    printed=$("$@")
    [ "$printed" = 3.5 ] || {
        echo "$* prints \"$printed\", not 3.5"
        exit 1
    }
}

cmake --install "$build" --prefix "$prefix" >/dev/null

cmake -S "$consumer" -B "$work/cmake" -G Ninja -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_C_FLAGS="$flags" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$work/cmake" >/dev/null
must_print "$work/cmake/consumer"

PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name bmuf.pc)")
export PKG_CONFIG_PATH
lib=$(pkg-config --variable=libdir bmuf)/libbmuf.a
# shellcheck disable=SC2046,SC2086 # lists of flags
"$cc" $flags "$consumer/consumer.c" -o "$work/consumer" \
    -Wl,--whole-archive "$lib" -Wl,--no-whole-archive \
    $(pkg-config --cflags --libs bmuf)
must_print "$work/consumer"

# As C17 with POSIX.
# shellcheck disable=SC2046 # a list of flags
find "$prefix/include" -name '*.h' -print0 |
    xargs -0 "$cc" -std=c17 -D_POSIX_C_SOURCE=200809L -fsyntax-only \
        $(pkg-config --cflags bmuf) -x c

# A model of noises; both programs hear the same in one of them.
model() {
    for i in 1 2 3 4 5 6 7 8; do
        { # the header of a WAV file: 8000 Hz, 16 bits, 3200 bytes of samples
            printf 'RIFF\244\014\0\0WAVEfmt \020\0\0\0\1\0\1\0'
            printf '\100\037\0\0\200\076\0\0\2\0\020\0data\200\014\0\0'
            awk -v seed="$i" 'BEGIN {
                srand(seed)
                for (i = 0; i < 3200; i++) printf "%c", 32 + int(95 * rand())
            }'
        } >"$i.wav"
        printf '{"id": "%s", "audio": "%s.wav", "text": "a"}\n' "$i" "$i"
    done >noises.jsonl
    "$bmuf" pack --audio noises.jsonl --out noises -q >pack.log
    printf '[data]\ntrain = noises\n[model]\nnet = stack:3 blstm:8 linear\n' \
        >noises.ini
    "$bmuf" train noises.ini --out model -q --set train.epochs=150 >train.log
}
bmuf=$prefix/bin/bmuf
if [ -e "$bmuf" ]; then
    cd "$work"
    model
    "$bmuf" decode model 3.wav --format ctm -q |
        awk '{ printf "%.2f %.2f %s\n", $3, $3 + $4, $5 }' >decoded
    tail -c 3200 3.wav | "$work/cmake/transcribe" model 8000 >transcribed
    diff decoded transcribed || exit 1
    [ -s decoded ] || { echo 'no word was recognised'; exit 1; }
    cd "$OLDPWD"
fi

# The installed program, if this build has one, runs, and docs/ are installed, with
# what pages show and name.
[ ! -e "$build/bmuf" ] || "$prefix/bin/bmuf" --version >/dev/null
names() { (cd "$1" && find . -type f | sort) }
names "$top/docs" >"$work/pages"
names "$(dirname "$(find "$prefix" -name tour.md)")" | diff "$work/pages" -

# A build without its CUDA plugin, which the quick start does not make, is installed
# too, and says what is missing.
if grep -q 'libbmuf_cuda[.]so' "$build/cmake_install.cmake"; then
    sed 's/libbmuf_cuda[.]so/libbmuf_none.so/g' "$build/cmake_install.cmake" \
        >"$work/without.cmake"
    cmake -DCMAKE_INSTALL_PREFIX="$work/without" -P "$work/without.cmake" \
        >"$work/without.log"
    grep -q '^-- No CUDA plugin: .*--target bmuf_cuda' "$work/without.log" || {
        echo 'no word of the missing CUDA plugin'
        exit 1
    }
    [ -x "$work/without/bin/bmuf" ] || {
        echo 'nothing is installed without the CUDA plugin'
        exit 1
    }
fi

# So are manual pages, without faults in their roff, and completion.
for file in share/man/man1/bmuf.1 share/man/man1/bmuf-train.1 \
    share/man/man5/bmuf.5 share/bash-completion/completions/bmuf \
    share/zsh/site-functions/_bmuf; do
    [ -s "$prefix/$file" ] || {
        echo "$file is not installed"
        exit 1
    }
done
if command -v groff >/dev/null && command -v man >/dev/null; then
    for page in "$prefix"/share/man/man?/*; do
        faults=$(man --warnings -l "$page" 2>&1 >/dev/null)
        [ -z "$faults" ] || {
            echo "$page: $faults"
            exit 1
        }
    done
else
    echo "man and groff are not installed: the manual pages are not checked"
fi
