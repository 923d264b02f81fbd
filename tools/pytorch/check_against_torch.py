#!/usr/bin/env python3
"""Compares the outputs of a model with PyTorch.

    bmuf eval run/model.safetensors data/test --dump logits.npz
    tools/pytorch/check_against_torch.py run/model.safetensors data/test logits.npz

PyTorch computes every sequence by itself, in double, without padding; bmuf used
mini-batches. Prints the largest difference of the logits, and the mean CTC loss
for comparison with bmuf eval. Needs torch, numpy and h5py. Supports networks of
linear, conv, layernorm, instancenorm, relu, tanh, sigmoid, swish, gelu, glu, scale,
depthwise, attention, lstm, blstm, gru, bgru, dropout, stack, subsample and splice.
"""
import glob
import json
import re
import sys

import h5py
import numpy as np
import torch


def read_model(path):
    """The words of the network, with * expanded, and the weights by name."""
    with open(path, "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        data = f.read()
    net = header.pop("__metadata__")["net"]
    weights = {}
    for name, t in header.items():
        begin, end = t["data_offsets"]
        x = np.frombuffer(data[begin:end], "<f4").reshape(t["shape"])
        weights[name] = torch.from_numpy(x.astype(np.float64))
    words = []
    for word in net.split():
        one, times = re.fullmatch(r"(.*?)(?:\*(\d+))?", word).groups()
        words += [one] * int(times or 1)
    return words, weights


def read_data(directory):
    """Yields tag, frames [T, D] and labels of every sequence."""
    for path in sorted(glob.glob(directory + "/*.bmuf.h5")):
        with h5py.File(path, "r") as f:
            x, labels = f["inputs"][:], f["targets/data/classes"][:]
            if x.dtype == np.uint8:
                x = f["bmuf/quant/offset"][:] + f["bmuf/quant/scale"][:] * x
            at = label = 0
            for tag, (n, k) in zip(f["seqTags"][:], f["seqLengths"][:]):
                yield (tag.decode(), x[at : at + n].astype(np.float64),
                       labels[label : label + k])
                at, label = at + n, label + k


def copy_recurrent(rnn, w):
    """Copies weights to nn.LSTM or nn.GRU; w: name of a weight -> tensor, in the layout
    of docs/layers.md."""
    directions, rows, _ = w("wh").shape
    wx, b = w("wx").view(directions, rows, -1), w("b").view(directions, -1)
    for r in range(directions):
        end = "_l0" + ("_reverse" if r else "")
        getattr(rnn, "weight_ih" + end).copy_(wx[r])
        getattr(rnn, "weight_hh" + end).copy_(w("wh")[r])
        if rnn.proj_size:
            getattr(rnn, "weight_hr" + end).copy_(w("wr")[r])
        getattr(rnn, "bias_ih" + end).copy_(b[r, :rows])
        getattr(rnn, "bias_hh" + end).zero_()
        if rnn.mode == "GRU":
            getattr(rnn, "bias_hh" + end)[2 * rnn.hidden_size :] = b[r, rows:]


def recurrent(x, kind, w):
    gru, width, rows = kind.endswith("gru"), w("wh").shape[2], w("wh").shape[1]
    hidden = rows // (3 if gru else 4)
    more = {"proj_size": width} if width < hidden else {}
    rnn = (torch.nn.GRU if gru else torch.nn.LSTM)(
        x.shape[1], hidden, bidirectional=kind[0] == "b", **more).double()
    copy_recurrent(rnn, w)
    return rnn(x.unsqueeze(1))[0].squeeze(1)


def attention(x, heads, w):
    """PyTorch's attention, to whose scores the mask adds those of distances."""
    frames, size = x.shape
    d = size // heads
    q, k, v = (x @ w("w").T + w("b")).view(frames, 3, heads, d).permute(1, 2, 0, 3)
    rate = 10000.0 ** (-torch.arange(0, size, 2, dtype=x.dtype) / size)
    t = torch.arange(frames, dtype=x.dtype)
    angle = (t[:, None] - t)[:, :, None] * rate
    encoding = torch.stack((angle.sin(), angle.cos()), -1).flatten(2)[:, :, :size]
    p = (encoding @ w("wr").T).view(frames, frames, heads, d)
    add = w("uv").view(2, heads, 1, d)
    near = torch.einsum("htd,tuhd->htu", q + add[1], p) / d ** 0.5
    y = torch.nn.functional.scaled_dot_product_attention(q + add[0], k, v, near)
    return y.transpose(0, 1).flatten(1) @ w("wo").T + w("bo")


def convolution(x, size, w):
    """x: flat frames [T, H], or columns [T, H, C]."""
    given = dict(word.split(":") for word in size.split(",")[2:])
    stride, dilation = ([int(n) for n in given.get(name, "1x1").split("x")]
                        for name in ("stride", "dilation"))
    kernels = w("w").permute(3, 2, 0, 1)
    before = after = None
    if "pad" in given:
        before = after = [int(n) for n in given["pad"].split("x")]
    else:  # "same": the smaller half in front
        reach = [d * (k - 1) for d, k in zip(dilation, kernels.shape[2:])]
        before, after = [n // 2 for n in reach], [n - n // 2 for n in reach]
    image = x.view(len(x), -1, kernels.shape[1]).permute(2, 0, 1)
    image = torch.nn.functional.pad(image, (before[1], after[1], before[0], after[0]))
    y = torch.nn.functional.conv2d(image.unsqueeze(0), kernels, w("b"), stride, dilation=dilation)
    return y.squeeze(0).permute(1, 2, 0)


def layer(x, word, w):
    kind, _, size = word.partition(":")
    if kind == "conv":
        return convolution(x, size, w)
    if kind not in ("layernorm", "instancenorm", "relu", "tanh", "sigmoid", "swish", "gelu",
                    "glu", "scale", "dropout"):
        x = x.flatten(1)
    if kind in ("lstm", "blstm", "gru", "bgru"):
        return recurrent(x, kind, w)
    if kind == "linear":
        return x @ w("w").T + w("b")
    if kind == "layernorm":
        shape = x.shape[1:]
        return torch.nn.functional.layer_norm(
            x, shape, w("gamma").view(shape), w("beta").view(shape))
    if kind == "instancenorm":
        flat = x.reshape(-1, x.shape[-1]).T.unsqueeze(0)  # [1, channels, places]
        y = torch.nn.functional.instance_norm(flat, weight=w("gamma"), bias=w("beta"))
        return y.squeeze(0).T.reshape(x.shape)
    if kind in ("relu", "tanh", "sigmoid"):
        return getattr(torch, kind)(x)
    if kind == "swish":
        return torch.nn.functional.silu(x)
    if kind == "gelu":
        return torch.nn.functional.gelu(x)
    if kind == "glu":
        return torch.nn.functional.glu(x, -1)
    if kind == "scale":
        return float(size) * x
    if kind == "depthwise":
        kernel, _, stride = size.partition(",stride:")
        n = int(kernel)
        wide = torch.nn.functional.pad(x.T, ((n - 1) // 2, n // 2))
        return torch.nn.functional.conv1d(
            wide, w("w").T.unsqueeze(1), w("b"), int(stride or 1), groups=len(wide)).T
    if kind == "attention":
        return attention(x, int(size), w)
    if kind == "stack":
        n = int(size)
        return torch.nn.functional.pad(
            x, (0, 0, 0, -len(x) % n)).reshape(-1, n * x.shape[1])
    if kind == "splice":
        ranges = [(d.split("..") * 2)[:2] for d in size.split(",")]
        reach = 1024
        wide = torch.nn.functional.pad(x, (0, 0, reach, reach))
        return torch.cat([wide[reach + d : reach + d + len(x)]
                          for first, last in ranges
                          for d in range(int(first), int(last) + 1)], 1)
    if kind == "subsample":
        return x[:: int(size)]
    if kind == "dropout":
        return x
    sys.exit("layer '%s' is not supported" % kind)


@torch.no_grad()
def main(model, directory, dump):
    words, weights = read_model(model)
    theirs = np.load(dump)
    apart = largest = loss = count = 0
    for tag, x, labels in read_data(directory):
        x = torch.from_numpy(x)
        for k, word in enumerate(words):
            name = "%d.%s." % (k, word.partition(":")[0])
            x = layer(x, word, lambda piece: weights[name + piece])
        apart = max(apart, np.abs(x.numpy() - theirs[tag]).max())
        largest = max(largest, x.abs().max().item())
        loss += torch.nn.functional.ctc_loss(
            x.log_softmax(1), torch.from_numpy(labels), [len(x)], [len(labels)],
            reduction="sum", zero_infinity=True).item()
        count += 1
    print("%d sequences; largest logit %.3g, largest difference %.2g; "
          "loss %.6f per sequence" % (count, largest, apart, loss / count))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
