#!/usr/bin/env python3
"""The same training steps as `bmuf bench --net ...` makes, in PyTorch: forward,
loss, backward, clipped momentum update, on random mini-batches whose sequences
all have full length. One JSON object per way of doing it, the fastest last.

    tools/torch_peer.py --net 'blstm:512*5 linear' --input 80 --classes 80 \\
        --batch 64 --frames 800 --labels 100 --device cuda --precision bf16

Ways: eager; compile (torch.compile, with cross_entropy of network and loss); graph
(CUDA graphs: of the network, and with cross_entropy of the whole step);
compile_graph (both, with cross_entropy); split (every direction of every layer an
nn.LSTM of its own, the second one on another stream, which lets cuDNN take its
persistent kernels; with --precision half types alone). --ways chooses.
Precision: fp32, tf32; bf16 and fp16 stand for 16-bit weights with fp32 masters,
amp for autocast (fp16 for LSTMs and bf16 for the rest is what PyTorch makes of
bf16). Needs torch alone.
"""
import argparse
import contextlib
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

HALF = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Columns(nn.Module):
    """Layers on images [B, C, T, H] between frames [T, B, H C], channels last."""

    def __init__(self, layers, channels):
        super().__init__()
        self.layers, self.channels = nn.Sequential(*layers), channels

    def forward(self, x):
        t, b, d = x.shape
        x = x.view(t, b, d // self.channels, self.channels).permute(1, 3, 0, 2)
        y = self.layers(x)
        return y.permute(2, 0, 3, 1).flatten(2)


class Lstm(nn.Module):
    def __init__(self, n_in, n, layers, split):
        super().__init__()
        if split:
            self.pairs = nn.ModuleList(
                nn.ModuleList([nn.LSTM(n_in if k == 0 else 2 * n, n) for _ in "fb"])
                for k in range(layers))
            self.side = torch.cuda.Stream()
        else:
            self.rnn = nn.LSTM(n_in, n, layers, bidirectional=True)
        self.split = split

    def forward(self, x):
        if not self.split:
            return self.rnn(x)[0]
        for ahead, back in self.pairs:
            now = torch.cuda.current_stream()
            self.side.wait_stream(now)
            with torch.cuda.stream(self.side):
                z = back(x.flip(0))[0].flip(0)
            y = ahead(x)[0]
            now.wait_stream(self.side)
            x = torch.cat((y, z), 2)
        return x


def network(a, split):
    """The layers of a description as bmuf reads it; all sequences are full."""
    layers, columns, n, channels, height = [], [], a.input, 1, a.input
    words = a.net.split()

    def flatten():
        if columns:
            layers.append(Columns(list(columns), first[0]))
            columns.clear()

    first = [1]
    for i, word in enumerate(words):
        name, _, args = word.partition(":")
        if name == "conv":
            if not columns:
                first[0] = channels
            out, kernel = args.split(",")[0], [int(k) for k in args.split(",")[1].split("x")]
            columns.append(nn.Conv2d(channels, int(out), kernel, padding=[k // 2 for k in kernel]))
            channels = int(out)
        elif name == "pool":
            size = [int(k) for k in args.split("x")]
            columns.append(nn.MaxPool2d(size, ceil_mode=True))
            height = -(-height // size[1])
        elif name == "batchnorm":
            columns.append(nn.BatchNorm2d(channels))
        elif name in ("relu", "leaky_relu", "tanh", "sigmoid"):
            one = {"relu": nn.ReLU(), "leaky_relu": nn.LeakyReLU(0.01),
                   "tanh": nn.Tanh(), "sigmoid": nn.Sigmoid()}[name]
            (columns if columns else layers).append(one)
        elif name in ("blstm", "linear"):
            if columns:
                flatten()
                n, channels = height * channels, 1
            if name == "blstm":
                size, _, many = args.partition("*")
                layers.append(Lstm(n, int(size), int(many or 1), split))
                n = 2 * int(size)
            else:
                size = a.classes if i + 1 == len(words) else int(args)
                layers.append(nn.Linear(n, size))
                n = size
        else:
            sys.exit(f"torch_peer: no layer '{word}' here")
    return nn.Sequential(*layers)


class Batch:
    def __init__(self, a, seed, dtype):
        g = torch.Generator().manual_seed(seed)
        x = torch.randn(a.frames, a.batch, a.input, generator=g)
        if a.loss == "ctc":
            self.labels = torch.randint(1, a.classes, (a.batch, a.labels), generator=g)
        else:
            self.labels = torch.randint(0, a.classes, (a.frames * a.batch,), generator=g)
        self.x, self.dtype, self.device = x, dtype, a.device
        if a.device == "cuda":
            self.x, self.labels = x.pin_memory(), self.labels.pin_memory()

    def upload(self):
        x = self.x.to(self.device, non_blocking=True)
        return x.to(self.dtype), self.labels.to(self.device, non_blocking=True)


class Feed:
    """Three mini-batches in turns; the next one travels while this one is used."""

    def __init__(self, a, dtype):
        self.batches = [Batch(a, seed, dtype) for seed in (1, 2, 3)]
        self.turn = 0
        self.side = torch.cuda.Stream() if a.device == "cuda" else None
        self.fetch()

    def fetch(self):
        self.turn = (self.turn + 1) % len(self.batches)
        with torch.cuda.stream(self.side):  # None: nothing
            self.next = self.batches[self.turn].upload()

    def __call__(self):
        if self.side is not None:
            torch.cuda.current_stream().wait_stream(self.side)
            for x in self.next:
                x.record_stream(torch.cuda.current_stream())
        now = self.next
        self.fetch()
        return now


def loss_of(a, y, labels):
    if a.loss != "ctc":
        return F.cross_entropy(y.flatten(0, 1).float(), labels)
    y = F.log_softmax(y.float(), 2)
    frames, count = [y.shape[0]] * a.batch, [a.labels] * a.batch
    if a.ctc == "cudnn":
        labels = labels.flatten().int().cpu()
        return F.ctc_loss(y, labels, frames, count, reduction="sum") / a.batch
    return F.ctc_loss(y, labels, frames, count, reduction="sum", zero_infinity=True) / a.batch


class Momentum:
    """SGD with momentum on fp32 weights, which a 16-bit network has copies of."""

    def __init__(self, a, net):
        self.own = list(net.parameters())
        self.half = self.own[0].dtype != torch.float32
        self.master = [p.detach().float().clone() for p in self.own] if self.half else self.own
        fast = {"fused": True} if a.device == "cuda" else {"foreach": True}
        self.sgd = torch.optim.SGD(self.master, lr=1e-4, momentum=0.9, **fast)
        self.clip = a.clip

    def step(self):
        if self.half:
            for m, p in zip(self.master, self.own):
                m.grad = p.grad.float()
        if self.clip > 0:
            nn.utils.clip_grad_norm_(self.master, self.clip, foreach=True)
        self.sgd.step()
        if self.half:
            with torch.no_grad():
                torch._foreach_copy_(self.own, self.master)


def alone(a):
    """CTC and its gradient, of logits that are there."""
    y = torch.randn(a.frames, a.batch, a.classes, device=a.device, requires_grad=True)
    labels = torch.randint(1, a.classes, (a.batch, a.labels), device=a.device)

    def step():
        y.grad = None
        loss = loss_of(a, y, labels)
        loss.backward()
        return loss
    return step


def stepper(a, way):
    """A function that trains on the next mini-batch and returns the loss."""
    dtype = HALF.get(a.precision, torch.float32)
    net = network(a, way == "split").to(a.device, dtype)
    if any("Conv" in type(m).__name__ for m in net.modules()):
        net = net.to(memory_format=torch.channels_last)
    momentum = Momentum(a, net)
    feed = Feed(a, dtype)

    def cast():
        if a.precision != "amp":
            return contextlib.nullcontext()
        return torch.autocast(a.device, torch.bfloat16, cache_enabled="graph" not in way)

    def scored(f):
        def forward(x, labels):
            with cast():
                y = f(x)
            return loss_of(a, y, labels)
        return forward

    def learn(x, labels, f):
        net.zero_grad(set_to_none=True)
        loss = f(x, labels)
        loss.backward()
        momentum.step()
        return loss

    f = scored(net)
    if way == "compile" and a.loss == "ctc":
        f = scored(torch.compile(net))
    elif way in ("compile", "compile_graph"):
        f = torch.compile(f)
    elif way == "graph" and a.loss == "ctc":
        with cast():
            f = scored(torch.cuda.make_graphed_callables(net, (feed()[0].clone(),)))
    if way in ("graph", "compile_graph") and a.loss != "ctc":
        x, labels = (t.clone() for t in feed())
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                learn(x, labels, f)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = learn(x, labels, f)

        def replay():
            more_x, more_labels = feed()
            x.copy_(more_x, non_blocking=True)
            labels.copy_(more_labels, non_blocking=True)
            graph.replay()
            return loss
        return replay
    return lambda: learn(*feed(), f)


def measure(a, way):
    now = time.process_time if a.device == "cpu" else time.perf_counter
    wait = torch.cuda.synchronize if a.device == "cuda" else lambda: None
    step = alone(a) if way == "alone" else stepper(a, way)
    first = step().item()
    for _ in range(a.warm):
        step()
    wait()
    began, rates = now(), []
    while now() - began < a.seconds:
        since, n = now(), 0
        while now() - since < a.seconds / 8 or n == 0:
            loss = step()
            n += 1
        wait()
        rates.append(n * a.batch * a.frames / (now() - since))
    return {"way": way, "frames_per_s": statistics.median(rates), "loss_first": first,
            "loss_last": loss.item()}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--net", default="", help="'': the loss alone")
    p.add_argument("--loss", choices=["ctc", "cross_entropy"], default="ctc")
    for name, value in (("input", 80), ("classes", 80), ("batch", 64), ("frames", 800), ("labels", 100)):
        p.add_argument("--" + name, type=int, default=value)
    p.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    p.add_argument("--precision", choices=["fp32", "tf32", "bf16", "fp16", "amp"], default="fp32")
    p.add_argument("--ctc", choices=["native", "cudnn"], default="native")
    p.add_argument("--ways", default="eager", help="several: eager,graph,split,compile")
    p.add_argument("--clip", type=float, default=5)
    p.add_argument("--warm", type=int, default=4)
    p.add_argument("--seconds", type=float, default=3)
    a = p.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = a.precision != "fp32"
    torch.manual_seed(1)
    best = None
    for way in a.ways.split(",") if a.net else ["alone"]:
        try:
            row = measure(a, way)
        except Exception as e:  # a way that this version or device refuses is a result
            row = {"way": way, "error": f"{type(e).__name__}: {e}".splitlines()[0][:200]}
        row.update(precision=a.precision, torch=torch.__version__)
        print(json.dumps(row), flush=True)
        if row.get("frames_per_s", 0) > (best or {}).get("frames_per_s", 0):
            best = row
        if a.device == "cuda":
            torch.cuda.empty_cache()
    if best is not None:
        print(json.dumps({**best, "best": True}))
    return 0 if best is not None else 1


if __name__ == "__main__":
    sys.exit(main())
