#!/usr/bin/env python3
"""Measures the training steps of `bmuf bench --net ...` in PyTorch: forward, loss,
backward, clipped momentum update, on three random mini-batches in turn, copied
from the host, with sequences of full length. Prints one JSON object per mode, and
the fastest again at the end.

    tools/pytorch/torch_peer.py --net 'blstm:512*5 linear' --input 80 --classes 80 \\
        --batch 64 --frames 800 --labels 100 --device cuda \\
        --modes bf16:graph,fp16:split+graph

A mode is PRECISION:WAY. Precisions: fp32, tf32; bf16 and fp16: 16-bit weights
with fp32 masters; amp: autocast to bf16 (PyTorch uses fp16 in LSTMs). A way is
`eager`, or some of these joined with +:

    graph    CUDA graph of the network; with cross_entropy of the whole step
    compile  torch.compile of the network; with cross_entropy of the loss as well
    update   torch.compile of clipping and update
    split    one nn.LSTM per direction of a layer, the second on another stream,
             so that cuDNN can use its persistent kernels

CTC is PyTorch's or cuDNN's, whichever is faster on this shape, or as --ctc sets.
With --net '' only the loss is measured, and modes are fp32:native and fp32:cudnn.
Needs only torch.
"""
import argparse
import contextlib
import copy
import json
import os
import re
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

HALF = {"bf16": torch.bfloat16, "fp16": torch.float16}
PRECISIONS = ["fp32", "tf32", "bf16", "fp16", "amp"]
WAYS = {"eager", "graph", "compile", "update", "split"}
FUNCTIONS = {"relu": nn.ReLU, "leaky_relu": lambda: nn.LeakyReLU(0.01), "tanh": nn.Tanh,
             "sigmoid": nn.Sigmoid, "swish": nn.SiLU, "gelu": nn.GELU}


class ToColumns(nn.Module):
    """Frames [T, B, H C] to images [B, C, T, H]."""

    def __init__(self, channels):
        super().__init__()
        self.channels = channels

    def forward(self, x):
        return x.unflatten(2, (-1, self.channels)).permute(1, 3, 0, 2)


class ToFrames(nn.Module):
    """And back."""

    def forward(self, x):
        return x.permute(2, 0, 3, 1).flatten(2)


class Split(nn.Module):
    """Both directions of every layer as separate modules of class `kind`. Sequences
    have full length, so the second direction is the reversed sequence."""

    def __init__(self, kind, n_in, n, layers, cuda):
        super().__init__()
        # persistent kernels need inputs in multiples of 128
        self.more = -n_in % 128 if n % 128 == 0 else 0
        n_in += self.more
        self.pairs = nn.ModuleList(
            nn.ModuleList([kind(n_in if k == 0 else 2 * n, n) for _ in "fb"]) for k in range(layers))
        self.side = torch.cuda.Stream() if cuda else None

    def forward(self, x):
        x = F.pad(x, (0, self.more)) if self.more else x
        for ahead, back in self.pairs:
            if self.side is not None:
                now = torch.cuda.current_stream()
                self.side.wait_stream(now)
                x.record_stream(self.side)
            with torch.cuda.stream(self.side):  # None: no-op
                z = back(x.flip(0))[0].flip(0)
            y = ahead(x)[0]
            if self.side is not None:
                now.wait_stream(self.side)
                z.record_stream(now)
            x = torch.cat((y, z), 2)
        return x


class Recurrent(nn.Module):
    """weight_dropout: the part of the recurrent weights that is zero in a step."""

    def __init__(self, kind, n_in, n, layers, weight_dropout=0, **more):
        super().__init__()
        self.rnn, self.weight_dropout = kind(n_in, n, layers, **more), weight_dropout

    def forward(self, x):
        if not self.weight_dropout:
            return self.rnn(x)[0]
        masked = {name: F.dropout(w, self.weight_dropout) if "weight_hh" in name else w
                  for name, w in self.rnn.named_parameters()}
        return torch.func.functional_call(self.rnn, masked, x)[0]


class Splice(nn.Module):
    """The frames [T, B, D] at these distances side by side, zeros beyond the ends."""

    def __init__(self, distances):
        super().__init__()
        self.distances = distances
        self.before, self.after = max(0, -distances[0]), max(0, distances[-1])

    def forward(self, x):
        wide = F.pad(x, (0, 0, 0, 0, self.before, self.after))
        return torch.cat([wide[self.before + d:self.before + d + len(x)]
                          for d in self.distances], 2)


class Stack(nn.Module):
    """`n` frames [T, B, D] side by side, zeros beyond the end."""

    def __init__(self, n):
        super().__init__()
        self.n = n

    def forward(self, x):
        x = F.pad(x, (0, 0, 0, 0, 0, -len(x) % self.n))
        return x.unflatten(0, (-1, self.n)).transpose(1, 2).flatten(2)


class Subsample(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n = n

    def forward(self, x):
        return x[::self.n]


class Frames(nn.Module):
    """A layer of [batch, features, frames] between frames [T, B, D]."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x.permute(1, 2, 0)).permute(2, 0, 1)


class Scale(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return self.factor * x


class Group(nn.Module):
    """residual( .. ), whose branches are added, and branches( .. ): joined along `axis`."""

    def __init__(self, branches, axis=None):
        super().__init__()
        self.branches, self.axis = nn.ModuleList(branches), axis

    def forward(self, x):
        y = [branch(x) for branch in self.branches]
        return sum(y[1:], y[0]) if self.axis is None else torch.cat(y, self.axis)


class Attention(nn.Module):
    """With relative positions, as ESPnet's, over sequences of full length."""

    def __init__(self, n, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(n, 3 * n), nn.Linear(n, n)
        self.position = nn.Linear(n, n, bias=False)
        self.u = nn.Parameter(torch.zeros(heads, 1, n // heads))
        self.v = nn.Parameter(torch.zeros(heads, 1, n // heads))

    def forward(self, x):
        T, B, n = x.shape
        rate = 10000.0 ** (-torch.arange(0, n, 2, device=x.device) / n)
        angle = torch.arange(T - 1, -T, -1, device=x.device)[:, None] * rate
        encoding = torch.stack((angle.sin(), angle.cos()), 2).flatten(1).to(x.dtype)
        p = self.position(encoding).view(2 * T - 1, self.heads, -1).permute(1, 2, 0)
        q, k, v = self.qkv(x).view(T, B, 3, self.heads, -1).permute(2, 1, 3, 0, 4)
        near = F.pad((q + self.v) @ p, (1, 0)).view(B, self.heads, 2 * T, T)[:, :, 1:]
        near = near.reshape(B, self.heads, T, 2 * T - 1)[..., :T] / k.shape[-1] ** 0.5
        y = F.scaled_dot_product_attention(q + self.u, k, v, near)
        return self.out(y.permute(2, 0, 1, 3).reshape(T, B, n))


def pairs(args):
    """"3x3,stride:2x2" as {"": [3, 3], "stride": [2, 2]}."""
    words = (w.rpartition(":")[::2] for w in args)
    return {name: [int(k) for k in value.split("x")] for name, value in words}


def distances(args):
    """"-3,0..2" as [-3, 0, 1, 2]."""
    ranges = [(d.split("..") * 2)[:2] for d in args.split(",")]
    return [d for first, last in ranges for d in range(int(first), int(last) + 1)]


def window(args, adjacent=False):
    """Kernel, stride, padding and dilation, and frames and rows that "same" padding has
    more of at the end, for even kernels."""
    given = pairs(args)
    kernel = given[""]
    stride = given.get("stride", kernel if adjacent else [1, 1])
    dilation = given.get("dilation", [1, 1])
    reach = [d * (k - 1) for k, d in zip(kernel, dilation)]
    if "pad" in given or adjacent and "stride" not in given:
        return kernel, stride, given.get("pad", [0, 0]), dilation, [0, 0]
    return kernel, stride, [r // 2 for r in reach], dilation, [r % 2 for r in reach]


class Builder:
    """Makes the layers of a description in the syntax of bmuf, from left to right. What the
    last one gives are `n` numbers a frame, or columns: `height` rows of `channels` > 0."""

    def __init__(self, a, split):
        self.a, self.split, self.n, self.channels, self.height = a, split, a.input, 0, 0
        net = a.net.replace("(", "( ").replace(")", " ) ").replace("|", " | ")
        self.words, self.at = net.split(), 0

    def word(self):
        return self.words[self.at] if self.at < len(self.words) else ""

    def sequence(self):
        """Layers up to `)`, `|` or the end."""
        layers = []
        while self.word() not in ("", ")", "|"):
            self.at += 1
            word = self.words[self.at - 1]
            if word.endswith("("):
                layers += self.group(word)
                continue
            name, args, times = re.fullmatch(r"(\w+):?(.*?)(?:\*(\d+))?", word).groups()
            if name in ("lstm", "blstm", "gru", "bgru"):
                layers += self.frames() + [self.recurrent(name, args, int(times or 1))]
            else:
                layers += [x for _ in range(int(times or 1)) for x in self.layer(name, args)]
        return layers

    def group(self, kind):
        start = self.at
        layers = self.branches(kind)
        if self.word().startswith("*"):
            end, times = self.at + 1, int(self.word()[1:])
            for _ in range(times - 1):
                self.at = start
                layers += self.branches(kind)
            self.at = end
        return layers

    def branches(self, kind):
        """Those of one group, past its `)`."""
        before, made, shapes, ends = (self.n, self.channels, self.height), [], [], "|"
        while ends == "|":
            self.n, self.channels, self.height = before
            made.append(nn.Sequential(*self.sequence()))
            shapes.append((self.n, self.channels))
            ends = self.word()
            self.at += 1
        if ends != ")":
            sys.exit("torch_peer: a group without ')'")
        if kind == "(":
            return made
        if any((channels > 0) != (before[1] > 0) for _, channels in shapes):
            sys.exit("torch_peer: columns that begin or end in a group are not supported")
        if kind == "residual(":
            return [Group(made if len(made) > 1 else [nn.Identity()] + made)]
        self.n, self.channels = (sum(sizes) for sizes in zip(*shapes))
        return [Group(made, 1 if self.channels else 2)]

    def frames(self):
        """What makes flat frames of columns, if they are columns."""
        if not self.channels:
            return []
        self.n, self.channels = self.height * self.channels, 0
        return [ToFrames()]

    def columns(self):
        if self.channels:
            return []
        self.channels, self.height = 1, self.n
        return [ToColumns(1)]

    def recurrent(self, name, args, times):
        size, *words = args.split(",")
        given = dict(w.split(":") for w in words)
        both, kind = name[0] == "b", nn.GRU if name.endswith("gru") else nn.LSTM
        n, size, more = self.n, int(size), {}
        if "project" in given:
            more["proj_size"] = int(given["project"])
        if "weight_dropout" in given:
            more["weight_dropout"] = float(given["weight_dropout"])
        self.n = (2 if both else 1) * more.get("proj_size", size)
        if self.split and both and not more:
            return Split(kind, n, size, times, self.a.device == "cuda")
        return Recurrent(kind, n, size, times, bidirectional=both, **more)

    def convolution(self, args):
        before = self.columns()
        out, *args = args.split(",")
        kernel, stride, pad, dilation, more = window(args)
        if any(more):
            before.append(nn.ZeroPad2d((0, more[1], 0, more[0])))
        conv = nn.Conv2d(self.channels, int(out), kernel, stride, pad, dilation)
        room = self.height + 2 * pad[1] + more[1] - dilation[1] * (kernel[1] - 1) - 1
        self.channels, self.height = int(out), room // stride[1] + 1
        return before + [conv]

    def pool(self, args):
        before, args = self.columns(), args.split(",")
        mean = "mean" in args
        if args[0] == "all":
            self.height = 1
            return before + [nn.AdaptiveAvgPool2d(1) if mean else nn.AdaptiveMaxPool2d(1)]
        kernel, stride, pad, _, more = window([w for w in args if w != "mean"], True)
        if any(more):
            sys.exit("torch_peer: an even window with a stride needs pad:PxQ")
        ceil = len(args) == 1 + mean
        room = self.height + 2 * pad[1] - kernel[1] + (stride[1] - 1 if ceil else 0)
        self.height = room // stride[1] + 1
        given = {"ceil_mode": ceil, **({"count_include_pad": False} if mean else {})}
        return before + [(nn.AvgPool2d if mean else nn.MaxPool2d)(kernel, stride, pad, **given)]

    def layer(self, name, args):
        columns = self.channels > 0
        if name in ("conv", "pool"):
            return self.convolution(args) if name == "conv" else self.pool(args)
        if name == "batchnorm":
            return [nn.BatchNorm2d(self.channels) if columns else Frames(nn.BatchNorm1d(self.n))]
        if name == "instancenorm":
            if columns:
                return [nn.InstanceNorm2d(self.channels, affine=True)]
            return [Frames(nn.InstanceNorm1d(self.n, affine=True))]
        if name in FUNCTIONS:
            return [FUNCTIONS[name]()]
        if name == "scale":
            return [Scale(float(args))]
        if name == "dropout":
            return [nn.Dropout(float(args))]
        if name == "glu":
            self.n, self.channels = self.n // 2, self.channels // 2
            return [nn.GLU(1 if columns else 2)]
        if name == "layernorm" and not columns:
            return [nn.LayerNorm(self.n)]
        before = self.frames()
        if name == "linear":
            n, self.n = self.n, self.a.classes if self.at == len(self.words) else int(args)
            return before + [nn.Linear(n, self.n)]
        if name == "depthwise" and args.isdigit() and int(args) % 2 == 1:
            n, size = self.n, int(args)
            return before + [Frames(nn.Conv1d(n, n, size, padding=size // 2, groups=n))]
        if name == "attention":
            return before + [Attention(self.n, int(args))]
        if name == "stack":
            self.n *= int(args)
            return before + [Stack(int(args))]
        if name == "subsample":
            return before + [Subsample(int(args))]
        if name == "splice":
            self.n *= len(distances(args))
            return before + [Splice(distances(args))]
        return sys.exit(f"torch_peer: layer '{name}:{args}' is not supported")


def network(a, split):
    """The layers of a.net."""
    builder = Builder(a, split)
    layers = builder.sequence() + builder.frames()
    if builder.word():
        sys.exit(f"torch_peer: '{builder.word()}' without '('")
    return nn.Sequential(*layers)


class Batch:
    def __init__(self, a, seed, dtype):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randn(a.frames, a.batch, a.input, generator=g)
        if a.loss == "ctc":
            self.labels = torch.randint(1, a.classes, (a.batch, a.labels), generator=g)
        else:
            self.labels = torch.randint(0, a.classes, (a.frames * a.batch,), generator=g)
        self.stays = a.loss == "ctc" and a.ctc == "cudnn"  # cuDNN's CTC reads labels on the host
        if self.stays:
            self.labels = self.labels.flatten().int()
        self.dtype, self.device = dtype, a.device
        if a.device == "cuda":
            self.x, self.labels = self.x.pin_memory(), self.labels.pin_memory()

    def upload(self):
        x = self.x.to(self.device, non_blocking=True)
        labels = self.labels if self.stays else self.labels.to(self.device, non_blocking=True)
        return x.to(self.dtype), labels


class Feed:
    """Three mini-batches in turn; the next one is copied while this one is used."""

    def __init__(self, a, dtype):
        self.batches = [Batch(a, seed, dtype) for seed in (1, 2, 3)]
        self.turn = 0
        self.side = torch.cuda.Stream() if a.device == "cuda" else None
        self.fetch()

    def fetch(self):
        self.turn = (self.turn + 1) % len(self.batches)
        with torch.cuda.stream(self.side):  # None: no-op
            self.next = self.batches[self.turn].upload()

    def __call__(self):
        if self.side is not None:
            torch.cuda.current_stream().wait_stream(self.side)
            for x in self.next:
                if x.is_cuda:
                    x.record_stream(torch.cuda.current_stream())
        now = self.next
        self.fetch()
        return now


def loss_of(a, y, labels):
    """labels: as Batch makes them; PyTorch uses cuDNN's CTC if they are on the host."""
    if a.loss != "ctc":
        return F.cross_entropy(y.flatten(0, 1).float(), labels)
    y = F.log_softmax(y.float(), 2)
    return F.ctc_loss(y, labels, [y.shape[0]] * a.batch, [a.labels] * a.batch, reduction="sum") / a.batch


class Momentum:
    """Clipped SGD with momentum on fp32 weights; a 16-bit network has copies of them."""

    def __init__(self, a, net, compiled):
        self.own = list(net.parameters())
        self.half = self.own[0].dtype != torch.float32
        self.master = [p.detach().float().clone() for p in self.own] if self.half else self.own
        if self.half:
            for m in self.master:
                m.grad = torch.zeros_like(m)
        fast = {"foreach": True} if compiled or a.device != "cuda" else {"fused": True}
        self.sgd = torch.optim.SGD(self.master, lr=1e-4, momentum=0.9, **fast)
        self.clip = a.clip
        self.step = torch.compile(self.update) if compiled else self.update

    def update(self):
        with torch.no_grad():
            if self.half:
                torch._foreach_copy_([m.grad for m in self.master], [p.grad for p in self.own])
            if self.clip > 0:
                nn.utils.clip_grad_norm_(self.master, self.clip, foreach=True)
            self.sgd.step()
            if self.half:
                torch._foreach_copy_(self.own, self.master)


def alone(a):
    """A step of CTC and its gradient alone, on given logits."""
    y = torch.randn(a.frames, a.batch, a.classes, device=a.device, requires_grad=True)
    labels = Batch(a, 1, torch.float32).upload()[1]

    def step():
        y.grad = None
        loss = loss_of(a, y, labels)
        loss.backward()
        return loss
    return step


def stepper(a, precision, way):
    """A function that trains on the next mini-batch and returns the loss."""
    dtype = HALF.get(precision, torch.float32)
    net = network(a, "split" in way).to(a.device, dtype)
    if any("Conv" in type(m).__name__ for m in net.modules()):
        net = net.to(memory_format=torch.channels_last)
    momentum = Momentum(a, net, "update" in way)
    feed = Feed(a, dtype)

    def cast():
        if precision != "amp":
            return contextlib.nullcontext()
        return torch.autocast(a.device, torch.bfloat16, cache_enabled="graph" not in way)

    f = torch.compile(net) if "compile" in way else net
    if "graph" in way and a.loss == "ctc":  # lengths are on the host
        with cast():
            f = torch.cuda.make_graphed_callables(net, (feed()[0].clone(),))

    def loss_with(x, labels):
        with cast():
            y = f(x)
        return loss_of(a, y, labels)

    if "compile" in way and a.loss != "ctc":
        f, loss_with = net, torch.compile(loss_with)

    def learn(x, labels):
        net.zero_grad(set_to_none=True)
        loss = loss_with(x, labels)
        loss.backward()
        momentum.step()
        return loss

    if "graph" not in way or a.loss == "ctc":
        return lambda: learn(*feed())
    x, labels = (t.clone() for t in feed())
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            learn(x, labels)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = learn(x, labels)

    def replay():
        more_x, more_labels = feed()
        x.copy_(more_x, non_blocking=True)
        labels.copy_(more_labels, non_blocking=True)
        graph.replay()
        return loss
    return replay


def measure(a, step, seconds):
    """Frames/s, the median of eight measurements; first and last loss."""
    now = time.process_time if a.device == "cpu" else time.perf_counter
    wait = torch.cuda.synchronize if a.device == "cuda" else lambda: None
    first = step().item()
    for _ in range(a.warm):
        step()
    wait()
    began, rates = now(), []
    while now() - began < seconds:
        since, n = now(), 0
        while now() - since < seconds / 8 or n == 0:
            loss = step()
            n += 1
        wait()
        rates.append(n * a.batch * a.frames / (now() - since))
    return {"frames_per_s": statistics.median(rates), "loss_first": first, "loss_last": loss.item()}


def faster_ctc(a):
    """'native' or 'cudnn'."""
    rates = {}
    for kind in ("native", "cudnn") if a.device == "cuda" else ():
        one = copy.copy(a)
        one.ctc = kind
        try:
            rates[kind] = measure(one, alone(one), 0.4)["frames_per_s"]
        except Exception:  # not available, or not for this shape
            continue
    return max(rates, key=rates.get) if rates else "native"


def one_mode(a, mode):
    """The result of a mode."""
    precision, _, way = mode.partition(":")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "fp32"
    if not a.net:
        one = copy.copy(a)
        one.ctc = way
        return measure(one, alone(one), a.seconds)
    row = measure(a, stepper(a, precision, set(way.split("+"))), a.seconds)
    return {**row, "ctc": a.ctc} if a.loss == "ctc" else row


def is_lost(a):
    """True if an error has made the device unusable in this process."""
    try:
        return a.device == "cuda" and torch.cuda.synchronize() is not None
    except Exception:
        return True


def check(p, a):
    for mode in a.modes.split(","):
        precision, _, way = mode.partition(":")
        ways = set(way.split("+"))
        known = ways <= WAYS if a.net else way in ("native", "cudnn")
        if precision not in PRECISIONS or not known or ("eager" in ways and len(ways) > 1):
            p.error(f"unknown mode {mode}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--net", default="", help="'': the loss alone")
    p.add_argument("--loss", choices=["ctc", "cross_entropy"], default="ctc")
    for name, value in (("input", 80), ("classes", 80), ("batch", 64), ("frames", 800), ("labels", 100)):
        p.add_argument("--" + name, type=int, default=value)
    p.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    p.add_argument("--modes", default="fp32:eager", help="several: bf16:graph,fp16:split+graph")
    p.add_argument("--ctc", choices=["auto", "native", "cudnn"], default="auto")
    p.add_argument("--clip", type=float, default=5)
    p.add_argument("--warm", type=int, default=4)
    p.add_argument("--seconds", type=float, default=2)
    a = p.parse_args()
    check(p, a)
    torch.backends.cudnn.benchmark = True  # choose the fastest convolutions
    torch.manual_seed(1)
    if a.net and a.loss == "ctc" and a.ctc == "auto":
        a.ctc = faster_ctc(a)
    best, modes = None, a.modes.split(",")
    for i, mode in enumerate(modes):
        try:
            row = one_mode(a, mode)
        except Exception as e:  # a mode that this version or device does not support is a result
            row = {"error": f"{type(e).__name__}: {e}".splitlines()[0][:200]}
        row = {"mode": mode, **row, "torch": torch.__version__, "cudnn": torch.backends.cudnn.version()}
        print(json.dumps(row), flush=True)
        if row.get("frames_per_s", 0) > (best or {}).get("frames_per_s", 0):
            best = row
        if "error" in row and is_lost(a) and modes[i + 1:]:  # restart for the other modes
            os.execv(sys.executable, [sys.executable, *sys.argv, "--ctc", a.ctc, "--modes", ",".join(modes[i + 1:])])
        if a.device == "cuda":
            torch.cuda.empty_cache()
    if best is not None:
        print(json.dumps({**best, "best": True}))
    return 0 if best is not None else 1


if __name__ == "__main__":
    sys.exit(main())
