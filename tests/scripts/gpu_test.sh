#!/bin/sh
# The scripts for a machine with a GPU, without one: gpu-bundle configures a folder of
# its own with CUDA, and ends where the build made no plugin; gpu-check divides its time
# among the parts that were chosen, and trains first what a row is compared with.
# nvcc, cmake and the making of data are stubs.
set -eu
scripts=$(cd "$(dirname "$0")/../../scripts" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fault() {
    echo "$*"
    exit 1
}

tree=$work/tree
mkdir -p "$tree/scripts" "$tree/build/release" "$work/bin" "$work/empty"
cp "$scripts/gpu-bundle" "$tree/scripts/"
cat >"$work/bin/cmake" <<END
#!/bin/sh
# Called as cmake --preset release -B DIR .., then cmake --build DIR --target ..
echo "cmake \$*" >>"$work/said"
case \$1 in
    --preset) mkdir -p "\$4/tests" && echo 'image cuda bf16' >"\$4/tests/cuda_tests.txt" ;;
    --build) [ ! -e "$work/plugin" ] || : >"\$2/libbmuf_cuda.so" ;;
esac
END
echo "echo speech >>$work/said; exit 3" >"$tree/scripts/make_speech"
for program in "$work/bin/nvcc" "$tree/build/release/bmuf" "$tree/build/release/bmuf_noise"; do
    echo '#!/bin/sh' >"$program"
done
chmod +x "$work"/bin/* "$tree"/build/release/* "$tree/scripts/make_speech"

# ends CODE DIR [ARGUMENT..]: gpu-bundle has this exit status, and builds in DIR.
ends() {
    wanted=$1 folder=$2 code=0
    shift 2
    : >"$work/said"
    PATH="$work/bin:$PATH" "$tree/scripts/gpu-bundle" "$@" 2>"$work/error" || code=$?
    [ $code = "$wanted" ] || fault "gpu-bundle $*: exit $code, not $wanted: $(cat "$work/error")"
    printf '%s\n' "cmake --preset release -B $folder -DBMUF_CUDA=ON" \
        "cmake --build $folder --target bmuf_program bmuf_cuda test_image" |
        cmp - "$work/said" 2>/dev/null || grep -q speech "$work/said" ||
        fault "gpu-bundle $*: $(cat "$work/said")"
}
ends 1 build/gpu
grep -q 'made no build/gpu/libbmuf_cuda.so' "$work/error" || fault "$(cat "$work/error")"
ends 1 "$work/empty" --build "$work/empty"
: >"$work/plugin"
ends 3 build/gpu # it goes on to the data
rm "$tree/build/release/bmuf_noise" "$work/plugin"
code=0
PATH="$work/bin:$PATH" "$tree/scripts/gpu-bundle" 2>"$work/error" || code=$?
[ $code = 69 ] || fault "gpu-bundle without build/release: exit $code"
grep -q 'no build/release/bmuf_noise; run scripts/quickstart' "$work/error"

command -v python3 >/dev/null || exit 0
python3 - "$scripts/gpu-check" "$work" <<'END'
import sys, threading, types
sys.dont_write_bytecode = True
source = open(sys.argv[1]).read()
module = types.ModuleType("gpu_check")
module.__file__ = sys.argv[1]
exec(compile(source, sys.argv[1], "exec"), module.__dict__)


class Check(module.Check):
    """Runs nothing: a training takes no time, and has the digest of its precision."""
    def __init__(self, fails=None):
        self.began, self.limit, self.until = module.time.monotonic(), module.LIMIT, module.LIMIT
        self.machine, self.running, self.dry, self.trained = {}, set(), False, {}
        self.ran, self.noted, self.ends, self.fails = [], {}, {}, fails or {}

    def clocks(self):
        return ""

    def find_torch(self):
        pass

    def prepare_peer(self):
        pass

    def run(self, name, command, most, env=None, ours=True):
        return self.fails[name]

    def train(self, part, name, sets, env, ranks=1, most=60):
        self.ran.append(name)
        if name in self.fails:
            return None, self.fails[name][0], {"why": self.fails[name][1]}
        return "run", 0, {"frames_per_s": 10.0, "dev_loss": 2.0, "digest": "bf16" if module.BF16 in sets else "fp32"}

    def note(self, part, name, ok, **more):
        self.noted[name] = ok, more


for part in module.PARTS:
    setattr(Check, part, lambda self, part=part: self.ends.update({part: self.until}))
for parts in (list(module.PARTS), ["mechanisms"], ["bench", "engines", "sanitizer"]):
    check = Check()
    check.go(parts)
    assert list(check.ends) == parts, check.ends
    assert abs(check.ends[parts[-1]] - module.LIMIT) < 1e-6, check.ends
    assert sorted(check.ends.values()) == list(check.ends.values())
assert Check().limit <= 590

check = Check()
for name in ("graphs", "bf16, cluster", "bf16, persist"):
    check.try_one("mechanisms", name)
assert check.ran == ["simplest", "graphs", "bf16", "bf16, cluster", "bf16, persist"], check.ran
assert check.noted["graphs"][1]["bits"] == "agree"
assert check.noted["bf16, cluster"][0] is True

# A library that is not there, or refuses; a device that fails, or can no longer be opened; no device.
lacking = 78, "bmuf: BMUF_LSTM=cluster: the device has no clusters"
refused = 78, "bmuf: cudnnRNNForward: CUDNN_STATUS_NOT_SUPPORTED"
fault = 69, "bmuf: cuda: lstm_forward: an illegal memory access was encountered"
invalid = 78, "bmuf: sgd.update: unknown value"
check = Check({"bf16, cluster": lacking, "bf16, cudnn": refused, "adamw": fault, "muon": invalid})
for name, ok in {"bf16, cluster": None, "bf16, cudnn": None, "adamw": False, "muon": False}.items():
    check.try_one("mechanisms", name)
    assert check.noted[name][0] is ok, (name, check.noted[name])
check.tests = ""
for why, ok in {"cuda_lstm.c:64: BMUF_LSTM=cudnn: libcudnn.so.9 does not exist": None,
                "cuda.c:55: no CUDA device: the driver finds none": False}.items():
    check.fails["operations: lstm cuda"] = 77, "skipped: compute/cuda/" + why
    assert check.test("operations", "lstm cuda", 60)[2] is ok, why
check.bmuf = "bmuf"
check.fails["device"] = 69, "bmuf: no CUDA device: the driver finds none; use device cpu instead"
assert check.device() is False
check.fails["device"] = fault
assert check.device() is True and check.noted[""][0] is False

# An error of the script fails its row alone; a loss that is a little off is no failure.
class Broken(Check):
    def write_log(self, *words):
        pass

    def train(self, part, name, sets, env, ranks=1, most=60):
        run, code, more = super().train(part, name, sets, env, ranks, most)
        if name == "bf16":
            del more["dev_loss"]
        if name == "tf32":
            more["dev_loss"] = 2.2 if "off" in self.fails else 2.4
        return run, code, more

    def quick_start(self):
        pass


for fails, ok in ({}, False), ({"off": True}, None):
    check = Broken(fails)
    module.Check.mechanisms(check)
    assert check.noted["bf16"] == (False, {"why": "KeyError: 'dev_loss'"}), check.noted["bf16"]
    assert check.noted["graphs"][0] is True and check.noted["tf32"][0] is ok, check.noted
check.python, check.ctc, check.fails = "python3", "native", {"peer: DNN": (0, '{of PyTorch}\n{"mode": "fp32"}')}
assert check.peer("DNN", "linear", {}, "fp32", 9) == [{"mode": "fp32"}]

check = Check({"4 workers": lacking})
for name in ("4 workers, by the host", "4 workers, 2 ranks"):
    check.try_one("mechanisms", name)
    assert check.noted[name][0] is None and "4 workers was not trained" in check.noted[name][1]["why"]
assert check.ran == ["4 workers", "4 workers, by the host", "4 workers, 2 ranks"], check.ran
END
