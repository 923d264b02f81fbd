#!/bin/sh
# Looks at reports of runs and of a search, and at the chart of bmuf scale, in a headless Chromium: at
# 1280 and 400 pixels, light and dark, texts do not overlap, stay in their
# figures and can be read, the page is not wider than the window, and nothing is
# loaded from elsewhere. Skipped (77) without Chromium.
#
#   tests/scripts/report_test.sh BMUF
set -eu
bmuf=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

browser=
for name in chromium chromium-headless-shell chromium-browser google-chrome chrome; do
    browser=$(command -v "$name") && break
done
[ -n "$browser" ] || {
    echo 'skipped: there is no Chromium; on Debian: apt-get install chromium-headless-shell'
    exit 77
}

# recording NAME TEXT: a tone of 0.2 s for each letter, 8-bit samples.
recording() {
    LC_ALL=C awk -v text="$2" '
        function number(x, bytes) {
            for (; bytes > 0; bytes--) { printf "%c", x % 256; x = int(x / 256) }
        }
        BEGIN {
            n = 1600 * length(text)
            printf "RIFF"; number(n + 36, 4); printf "WAVEfmt "
            number(16, 4); number(1, 2); number(1, 2); number(8000, 4)
            number(8000, 4); number(1, 2); number(8, 2)
            printf "data"; number(n, 4)
            for (i = 0; i < n; i++) {
                k = index("abcde", substr(text, 1 + int(i / 1600), 1))
                printf "%c", 128 + int(60 * sin(i * (0.15 + 0.2 * k)))
            }
        }' >"$work/$1.wav"
    printf '{"id": "%s", "audio": "%s.wav", "text": "%s"}\n' "$1" "$1" "$2"
}

# recordings SET TEXT...
recordings() {
    set=$1 i=0
    shift
    for text; do
        i=$((i + 1))
        recording "$set-$i" "$text"
    done >"$work/$set.jsonl"
}

cd "$work"
recordings train abc bca cab ade edb bed dab ceb ecb dea acd bde
recordings dev abed cade bead edac bcda
"$bmuf" pack --quiet --audio train.jsonl --out train >pack.log
"$bmuf" pack --quiet --audio dev.jsonl --out dev --vocab train >>pack.log
cat >c.ini <<'END'
[data]
train = train
dev = dev
[model]
net = stack:2 blstm:8 linear
[train]
epochs = 6
rate = 0.1
[job]
workers = 2
device = cpu
[batch]
sequences = 2
[block]
frames_per_worker = 200
END
# train NAME SETTING...
train() {
    name=$1
    shift
    for setting; do
        set -- "$@" --set "$setting"
        shift
    done
    "$bmuf" train c.ini --quiet --out "run/$name" "$@" >train.log
}
train seed-1
train seed-2 job.seed=2
train a-run-with-a-rather-long-name-of-its-own train.rate=0.02 bmuf.momentum=0.3
"$bmuf" report run/seed-1 --out one.html
"$bmuf" report run/* --out many.html
"$bmuf" scale run/seed-1 --svg scale.svg >scale.log
"$bmuf" tune c.ini --quiet --out search --trials 7 --set train.epochs=3 >tune.log
cp search/report.html search.html
{ printf '<!DOCTYPE html>\n<meta charset="utf-8"><body>\n' && cat scale.svg; } \
    >scale.html

# A page with a fault of each kind, which must be found.
cat >bad.html <<'END'
<!DOCTYPE html>
<meta charset="utf-8">
<body style="width:2000px"><p>some text</p><p style="margin-top:-25px">on this</p>
<p>1</p><p>2</p><p>3</p><p>4</p><p>5</p><p>6</p><p style="color:#ddd">grey</p>
<svg viewBox="0 0 9 9" style="width:100px"><text x="0" y="9">outside</text></svg>
<img src="http://127.0.0.1:1/elsewhere.png">
END

failed=0
# look PAGE WIDTH SCHEME: the page with the check at its end. It is in a frame, as
# no window is narrower than 500 pixels.
look() {
    dark=1
    [ "$3" = light ] || dark=0
    { cat "$1" && printf '<script>\n' && cat "$here/report_check.js" &&
        printf '</script>\n'; } >checked.html
    cat >frame.html <<END
<!DOCTYPE html>
<meta charset="utf-8"><meta name="color-scheme" content="light dark">
<body>
<iframe style="border:0;width:$2px;height:900px" src="checked.html"></iframe>
<script>
onmessage = (event) => {
    const result = document.createElement('pre');
    result.id = 'checked';
    result.textContent = '\\n' + event.data + '\\n';
    document.body.append(result);
};
</script>
END
    timeout 100 "$browser" --headless --no-sandbox --disable-gpu \
        --hide-scrollbars --disable-background-networking --no-first-run \
        --user-data-dir="$work/profile" --window-size=1400,1000 \
        --blink-settings=preferredColorScheme="$dark" \
        --virtual-time-budget=20000 --dump-dom \
        "file://$work/frame.html" >dom.html 2>browser.log || {
        echo "$1: the browser failed:"
        tail -n 5 browser.log
        exit 1
    }
    sed -n '/<pre id="checked">/,/<\/pre>/p' dom.html | sed 1d >result
}
# sound PAGE WIDTH SCHEME
sound() {
    look "$@"
    if [ "$(head -n 1 result)" = "$2 $3 sound" ]; then
        echo "$1: $2 pixels, $3: sound"
    else
        echo "$1: wanted '$2 $3 sound', but:"
        cat result
        failed=1
    fi
}
for width in 1280 400; do
    sound many.html $width light
    sound many.html $width dark
    sound search.html $width light
done
sound one.html 400 light
sound scale.html 1280 dark
look bad.html 1280 light
for fault in 'some text" overlaps "on this' 'grey" can hardly be read' \
    'outside" is outside its figure' 'a figure is too small' \
    'pixels wide' 'loads .*elsewhere.png'; do
    grep -q "$fault" result || {
        echo "bad.html: '$fault' was not found, but:"
        cat result
        failed=1
    }
done
exit $failed
