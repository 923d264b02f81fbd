#!/bin/sh
# scripts/test and scripts/bare_root refuse wrong arguments before they do anything;
# a machine that cannot make a bare Debian says why in the last line, exit 77.
# scripts/test names the tests that are skipped. .ci/run adds up what its parts report,
# and checks the rest where there is no bare Debian.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
scripts=$top/scripts
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

must_end 64 'test: unknown step tests; the steps are release slow hosts sanitize clang tidy format shell' \
    "$scripts/test" release tests
must_end 64 'test: unknown step --all; the steps are release slow hosts sanitize clang tidy format shell' \
    "$scripts/test" format --all
must_end 64 'bare_root: no command; see --help' "$scripts/bare_root"
must_end 64 'bare_root: no command; see --help' "$scripts/bare_root" --cuda
must_end 64 'bare_root: no command; see --help' "$scripts/bare_root" true --cuda
must_end 64 'bare_root: unknown option --gpu; the only option is --cuda' \
    "$scripts/bare_root" true --gpu true

# scripts/test, with stand-ins for the product and the quick start, in a folder with
# a blank in its name: skipped tests are named, and clang-tidy sees whole names.
tree="$work/a tree"
mkdir -p "$tree/scripts" "$tree/tests/scripts" "$tree/build/release" "$work/tools"
cp "$scripts/test" "$tree/scripts"
for script in scripts/setup tests/scripts/quickstart_test.sh; do
    printf '#!/bin/sh\n' >"$tree/$script"
done
cat >"$work/tools/clang-tidy-14" <<END
#!/bin/sh
echo "\$4" >>"$work/tidied"
END
chmod +x "$tree"/scripts/* "$tree"/tests/scripts/* "$work/tools/clang-tidy-14"
cat >"$tree/CMakePresets.json" <<'END'
{"version": 6,
 "configurePresets": [{"name": "release", "generator": "Ninja",
                       "binaryDir": "${sourceDir}/build/release"}],
 "buildPresets": [{"name": "release", "configurePreset": "release"}],
 "testPresets": [{"name": "release", "configurePreset": "release"}]}
END
cat >"$tree/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.24)
project(product NONE)
enable_testing()
add_custom_target(quick)
add_custom_target(messages)
add_test(NAME sound COMMAND true)
foreach(name page reader.np2)
  add_test(NAME ${name} COMMAND sh -c "exit 77")
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 LABELS network)
endforeach()
END
printf '  "file": "%s/one.c",\n' "$tree" >"$tree/build/release/compile_commands.json"
PATH="$work/tools:$PATH" "$tree/scripts/test" release tidy >"$work/all" 2>&1 || {
    cat "$work/all"
    exit 1
}
said=$(tail -n 1 "$work/all")
[ "${said#* s; }" = 'tests: 1 passed, 2 skipped: page reader.np2, 0 failed; parts: 4 passed, 0 failed' ] || {
    cat "$work/all"
    exit 1
}
[ "$(cat "$work/tidied")" = "$tree/one.c" ] || {
    echo "clang-tidy sees $(cat "$work/tidied")"
    exit 1
}

# .ci/run, with stand-ins for the other scripts. bare_root ends with the status in the
# file `bare`.
tree=$work/tree
mkdir -p "$tree/.ci" "$tree/scripts" "$work/toolkit/bin" "$work/path"
for program in sh dirname rm mkdir cat tee tail sed awk date; do # no nvcc
    ln -s "$(command -v $program)" "$work/path/$program"
done
cp "$top/.ci/run" "$tree/.ci"
cat >"$tree/scripts/bare_root" <<'END'
#!/bin/sh
echo "bare_root $*" >>calls
printf '%s\n' ' 1/5 Test  #3: onnxruntime ........***Skipped   0.02 sec' \
    ' 5/5 Test  #4: report_page ........***Skipped   0.01 sec'
printf '\t  3 - onnxruntime (Skipped)\n\t  4 - report_page (Skipped)\n'
printf '\t  7 - sum.np2 (Timeout)   network\n\t 12 - cli (Failed)\n'
echo '9 s; tests: 200 passed, 2 skipped: onnxruntime report_page, 1 failed; parts: 3 passed, 0 failed'
echo 'bare_root: NOT RUN on a bare Debian: it rains' >&2
exit "$(cat bare)"
END
cat >"$tree/scripts/test" <<'END'
#!/bin/sh
echo "test $*" >>calls
echo ' 1/1 Test #22: report_page ........   Passed    9.02 sec'
echo '9 s; tests: 30 passed, 0 failed; parts: 3 passed, 1 skipped: tidy, 0 failed'
END
printf '#!/bin/sh\necho "setup $*" >>calls\n' >"$tree/scripts/setup"
printf '#!/bin/sh\n' >"$work/toolkit/bin/nvcc"
chmod +x "$tree"/scripts/* "$work/toolkit/bin/nvcc"
# ci BARE TOOLKIT: runs it, sets code, writes its last two lines to said.
ci() {
    echo "$1" >"$tree/bare"
    rm -f "$tree/calls"
    code=0
    env PATH="$work/path" CUDA_PATH="$work/$2" "$tree/.ci/run" >"$work/all" 2>&1 ||
        code=$?
    tail -n 2 "$work/all" | sed 's/[0-9]* s, /S s, /' >"$work/said"
}
# must_be FILE CODE LINE...: lines of FILE, and the exit status of ci.
must_be() {
    file=$1 wanted=$2
    shift 2
    [ "$code" = "$wanted" ] && printf '%s\n' "$@" | diff - "$file" && return
    echo ".ci/run: exit $code:"
    cat "$work/all"
    exit 1
}
here='test hosts sanitize clang tidy format shell'
ci 0 none
must_be "$work/said" 0 '' 'CI: 230 passed, 1 skipped: onnxruntime, 1 failed, S s, exit 0'
must_be "$tree/calls" 0 'setup --ci' \
    'bare_root scripts/quickstart scripts/test release slow' "$here"
ci 0 toolkit
must_be "$tree/calls" 0 'setup --ci' \
    'bare_root scripts/quickstart scripts/test --cuda scripts/test slow' "$here"
ci 1 none
must_be "$work/said" 1 '' \
    'CI: 230 passed, 1 skipped: onnxruntime, 1 failed, S s, exit 1; failed: bare; sum.np2 (Timeout), cli (Failed)'
ci 77 toolkit
must_be "$work/said" 0 'CI: 230 passed, 1 skipped: onnxruntime, 1 failed, S s, exit 0' \
    'bare_root: NOT RUN on a bare Debian: it rains'
must_be "$tree/calls" 0 'setup --ci' \
    'bare_root scripts/quickstart scripts/test --cuda scripts/test slow' 'test --all'

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
git -C "$top" rev-parse -q --verify HEAD >/dev/null || { echo 'no git checkout'; exit 0; }
mirror=http://127.0.0.1:9/debian
must_end 77 "bare_root: NOT RUN on a bare Debian: the mirror $mirror cannot be reached" \
    env BMUF_MIRROR=$mirror "$scripts/bare_root" true
