#!/bin/sh
# Event files of [job] tensorboard as TensorBoard's own reader sees them: a folder
# of runs has their names; every step is there once, also of a run that was
# resumed; scalars are the numbers of the journal.
#
#   tests/scripts/tensorboard_test.sh BMUF BMUF_SHARDS       exit 77: skipped
#
# BMUF_PYTHON is a Python with the package tensorboard; else python3.
set -eu
bmuf=$1 shards=$2 python=${BMUF_PYTHON:-python3}
"$python" -c 'import tensorboard' 2>/dev/null || {
    echo "skipped: $python has no package tensorboard"
    exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
cd "$work"
export TMPDIR="$work"
fail() { echo "$*"; tail -n 20 ./*.log; exit 1; }

"$shards" data 24 10 20 40 20 >shards.log
cat >run.ini <<END
[data]
train = data
dev = data
[model]
net = blstm:8 linear
[train]
epochs = 3
checkpoint_every = 1
keep = 100
[job]
device = cpu
tensorboard = yes
[block]
frames_total = 150
END
for run in one two; do
    "$bmuf" train run.ini --out runs/$run >$run.log 2>&1 || fail "train $run"
done
# As if it had been killed in the first epoch.
find runs/two/checkpoints -name '*.safetensors' ! -name 'block-0000000[12].*' \
    -exec rm {} +
"$bmuf" train run.ini --out runs/two >again.log 2>&1 || fail 'resume two'
grep -q 'resuming from .*block-00000002' again.log || fail 'two is not resumed'

"$python" - <<'END' 2>python.log || fail "TensorBoard's reader"
import json
from tensorboard.backend.event_processing import plugin_event_multiplexer
from tensorboard.util import tensor_util

reader = plugin_event_multiplexer.EventMultiplexer(
    tensor_size_guidance={"scalars": 0, "histograms": 0, "text": 0})
reader.AddRunsFromDirectory("runs")
reader.Reload()
assert sorted(reader.Runs()) == ["one", "two"], reader.Runs()

def plugin(run, tag):
    return reader.SummaryMetadata(run, tag).plugin_data.plugin_name

for run in reader.Runs():
    blocks, dev = {}, {}
    for line in open(f"runs/{run}/journal.jsonl"):
        e = json.loads(line)
        if e["event"] == "start":
            done, per_epoch = e["blocks"], e["blocks_per_epoch"]
        elif e["event"] == "block":
            done += 1
            blocks[done] = e
        elif e["event"] == "eval":
            dev[e["block"]] = e
    ends = [per_epoch * k for k in range(1, 4)]
    assert per_epoch > 2 and sorted(dev) == ends

    for tag, events, key in (
            ("train/loss", blocks, "loss"), ("train/error", blocks, "error"),
            ("filter/g_norm", blocks, "g_norm"), ("time/wait_s", blocks, "wait_s"),
            ("dev/label_error", dev, "ler"), ("dev/loss", dev, "loss")):
        read = reader.Tensors(run, tag)
        assert plugin(run, tag) == "scalars"
        assert [x.step for x in read] == sorted(events), (run, tag, read)
        for x in read:
            value = float(tensor_util.make_ndarray(x.tensor_proto))
            wanted = events[x.step][key]
            assert abs(value - wanted) <= 1e-6 * max(1, abs(wanted)), (tag, x)

    for tag, steps in (("weights/1.linear.w", [0] + ends),
                       ("updates/1.linear.w", ends)):
        read = reader.Tensors(run, tag)
        assert plugin(run, tag) == "histograms"
        # Of an epoch that was resumed in its middle there is no update.
        if run == "two" and tag[0] == "u":
            steps = steps[1:]
        assert [x.step for x in read] == steps, (run, tag, read)
        for x in read:
            buckets = tensor_util.make_ndarray(x.tensor_proto)
            assert buckets.shape == (30, 3) and (buckets[:, 0] < buckets[:, 1]).all()
            assert buckets[:, 2].sum() == 16 * 11

    texts = [tag for tag in reader.Runs()[run]["tensors"] if tag.startswith("examples/")]
    assert len(texts) == 8, texts
    for tag in texts:
        assert plugin(run, tag) == "text"
        read = reader.Tensors(run, tag)
        assert [x.step for x in read] == ends, (run, tag, read)
        text = tensor_util.make_ndarray(read[0].tensor_proto).item().decode()
        assert text.startswith("    reference   "), text
END
