"""The network of a line model.net as a module of PyTorch, for train_in_torch.py.

    net = Network("conv:16,3x3 batchnorm relu pool:2x2 blstm:64 linear", 48, 104)
    y, n = net(x, n)              # frames [B, T, D] of sequences with n of them
    net.take(*read_model("run/1/model.safetensors"))        # weights of bmuf

Frames are those of docs/layers.md: in columns of pixels the channels of a row are side
by side. Behind the last frame of a sequence all is zero between layers, so that padding
has no influence.
"""
import re
import sys

import torch
import torch.nn.functional as F
from torch import nn

from check_against_torch import copy_recurrent

FUNCTIONS = {"relu": nn.ReLU, "leaky_relu": lambda: nn.LeakyReLU(0.01),
             "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "swish": nn.SiLU, "gelu": nn.GELU}
KINDS = list(FUNCTIONS) + ["linear", "conv", "pool", "batchnorm", "lstm", "blstm",
                           "gru", "bgru", "dropout", "stack", "subsample"]


def known(value, *values):
    """One of these values, or the end."""
    if value not in values:
        sys.exit("'%s' is not supported; there is %s" % (value, ", ".join(values)))
    return value


def masked(x, n, value=0.0):
    """x [B, T, D] with `value` behind the n frames of each sequence."""
    behind = torch.arange(x.shape[1]) >= n[:, None]
    return x.masked_fill(behind[:, :, None], value)


class Layer(nn.Module):
    """features and channels (0: flat frames) are those of its output. frames(n): of the
    output, from those of the input. take(w) copies weights; w(name): in bmuf's
    layout."""

    def __init__(self, features, channels=0):
        super().__init__()
        self.features, self.channels = features, channels

    def frames(self, n):
        return n

    def take(self, w):
        pass


class Framewise(Layer):
    """An activation function, or dropout: as many features and channels as before."""

    def __init__(self, function, features, channels):
        super().__init__(features, channels)
        self.function = function

    def forward(self, x, n):
        y = self.function(x)
        return masked(y, n) if isinstance(self.function, nn.Sigmoid) else y


class Linear(Layer):
    def __init__(self, features, size):
        super().__init__(size)
        self.inner = nn.Linear(features, size)

    def forward(self, x, n):
        return masked(self.inner(x), n)

    def take(self, w):
        self.inner.weight.copy_(w("w"))
        self.inner.bias.copy_(w("b"))


class Recurrent(Layer):
    """One nn.LSTM or nn.GRU for each direction. The second reads each sequence from its
    last valid frame on; packed sequences would do the same in ten times the time."""

    def __init__(self, kind, features, words):
        size, *more = words.split(",")
        given = dict(word.split(":") for word in more)
        for key in given:
            known(key, "project")
        both, project = 2 if kind[0] == "b" else 1, int(given.get("project", 0))
        super().__init__(both * (project or int(size)))
        gru = kind.endswith("gru")
        self.inner = nn.ModuleList(
            (nn.GRU if gru else nn.LSTM)(
                features, int(size), batch_first=True,
                **({"proj_size": project} if project else {}))
            for _ in range(both))

    def forward(self, x, n):
        ahead, *back = self.inner
        y = [ahead(x)[0]]
        if back:
            t = torch.arange(x.shape[1])
            mirror = torch.where(t < n[:, None], n[:, None] - 1 - t, t)[:, :, None]
            z = back[0](x.take_along_dim(mirror, 1))[0]
            y.append(z.take_along_dim(mirror, 1))
        return masked(torch.cat(y, 2), n)

    def take(self, w):
        for r, rnn in enumerate(self.inner):
            copy_recurrent(rnn, lambda name: w(name).unflatten(
                0, (len(self.inner), -1))[r])


class Windows(Layer):
    """What conv and pool share: (frames, rows) of kernels, strides and padding."""

    def __init__(self, features, channels, channels_out, size, words, adjacent=False):
        given = dict(word.split(":") for word in words)
        pairs = {key: [int(k) for k in given.pop(key).split("x")] for key in list(given)
                 if known(key, "stride", "pad", "dilation")}
        self.size = [int(k) for k in size.split("x")]
        self.stride = pairs.get("stride", self.size if adjacent else [1, 1])
        self.dilation = pairs.get("dilation", [1, 1])
        self.span = [d * (k - 1) + 1 for k, d in zip(self.size, self.dilation)]
        if "pad" in pairs:
            self.before = self.after = pairs["pad"]
        elif adjacent and not pairs:
            self.before, self.after = [0, 0], [k - 1 for k in self.size]
        else:  # "same": the smaller half in front
            self.before = [(k - 1) // 2 for k in self.span]
            self.after = [k // 2 for k in self.span]
        self.inputs = channels or 1
        rows = self.places(features // self.inputs, 1)
        super().__init__(rows * channels_out, channels_out)

    def places(self, n, k):
        """Windows in n frames (k = 0) or rows (k = 1)."""
        room = n + self.before[k] + self.after[k] - self.span[k]
        return room // self.stride[k] + 1

    def frames(self, n):
        n = self.places(n, 0)
        return n.clamp(min=0) if torch.is_tensor(n) else max(n, 0)

    def image(self, x, value=0.0):
        """x [B, T, D] as [B, C, T, H], with as much padding at the ends as windows need
        that have `before` on both sides."""
        x = x.unflatten(2, (-1, self.inputs)).permute(0, 3, 1, 2)
        more = []
        for k in (1, 0):
            n = x.shape[2 + k]
            end = (self.places(n, k) - 1) * self.stride[k] + self.span[k]
            more += [0, max(0, end - 2 * self.before[k] - n)]
        return F.pad(x, more, value=value) if any(more) else x

    def flat(self, y, n, value=0.0):
        return masked(y.permute(0, 2, 3, 1).flatten(2), self.frames(n), value)


class Conv(Windows):
    def __init__(self, features, channels, words):
        outputs, size, *more = words.split(",")
        super().__init__(features, channels, int(outputs), size, more)
        self.inner = nn.Conv2d(self.inputs, int(outputs), self.size, self.stride,
                               self.before, self.dilation)

    def forward(self, x, n):
        return self.flat(self.inner(self.image(x)), n)

    def take(self, w):
        self.inner.weight.copy_(w("w").permute(3, 2, 0, 1))
        self.inner.bias.copy_(w("b"))


class Pool(Windows):
    def __init__(self, features, channels, words):
        size, *more = words.split(",")
        self.mean = "mean" in more
        super().__init__(features, channels, channels or 1, size,
                         [word for word in more if word != "mean"], True)

    def sums(self, x):
        return F.avg_pool2d(x, self.size, self.stride, self.before, divisor_override=1)

    def forward(self, x, n):
        if self.mean:
            inside = self.image(masked(torch.ones_like(x), n))[:, :1]
            y = self.sums(self.image(x)) / self.sums(inside).clamp(min=1)
        else:
            x = self.image(masked(x, n, -torch.inf), -torch.inf)
            y = F.max_pool2d(x, self.size, self.stride, self.before)
        return self.flat(y, n)


class BatchNorm(Layer):
    """With the statistics of valid frames alone; its running variance, unlike that of
    PyTorch, is divided by their number."""

    def __init__(self, features, channels):
        super().__init__(features, channels)
        size = channels or features
        self.gamma = nn.Parameter(torch.ones(size))
        self.beta = nn.Parameter(torch.zeros(size))
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("var", torch.ones(size))

    def forward(self, x, n):
        rows = x.flatten(0, 1)
        valid = (torch.arange(x.shape[1]) < n[:, None]).flatten().nonzero()[:, 0]
        z = rows.index_select(0, valid).view(1, len(valid), -1, len(self.gamma))
        z = z.permute(0, 3, 1, 2)  # channels last in memory
        if self.training:
            mean, var = torch.zeros_like(self.mean), torch.ones_like(self.var)
            z = F.batch_norm(z, mean, var, self.gamma, self.beta, True, 1.0, 1e-5)
            count = z.numel() // z.shape[1]
            self.mean.lerp_(mean, 0.1)
            self.var.lerp_(var * ((count - 1) / count), 0.1)
        else:
            z = F.batch_norm(z, self.mean, self.var, self.gamma, self.beta, eps=1e-5)
        z = z.permute(0, 2, 3, 1).flatten(2)[0]
        return torch.zeros_like(rows).index_copy(0, valid, z).view(x.shape)

    def take(self, w):
        for name in ("gamma", "beta", "mean", "var"):
            getattr(self, name).copy_(w(name))


class Shorten(Layer):
    """stack and subsample."""

    def __init__(self, kind, features, step):
        super().__init__(features * step if kind == "stack" else features)
        self.step = step

    def frames(self, n):
        return (n + self.step - 1) // self.step

    def forward(self, x, n):
        x = F.pad(x, (0, 0, 0, -x.shape[1] % self.step))
        return x.unflatten(1, (-1, self.step)).flatten(2)[:, :, :self.features]


def make(kind, words, features, channels, classes):
    """A layer behind one with these features and channels."""
    known(kind, *KINDS)
    if kind in FUNCTIONS:
        return Framewise(FUNCTIONS[kind](), features, channels)
    if kind == "dropout":
        return Framewise(nn.Dropout(float(words)), features, channels)
    if kind == "linear":
        return Linear(features, int(words or classes))
    if kind == "conv":
        return Conv(features, channels, words)
    if kind == "pool":
        return Pool(features, channels, words)
    if kind == "batchnorm":
        return BatchNorm(features, channels)
    if kind in ("stack", "subsample"):
        return Shorten(kind, features, int(words))
    return Recurrent(kind, features, words)


class Network(nn.Module):
    """x [B, T, D] of sequences with n frames -> logits [B, T', C], their frames."""

    def __init__(self, net, features, classes):
        super().__init__()
        self.kinds, self.layers = [], nn.ModuleList()
        channels = 0
        for word in net.split():
            one, times = re.fullmatch(r"(.*?)(?:\*(\d+))?", word).groups()
            kind, _, words = one.partition(":")
            for _ in range(int(times or 1)):
                layer = make(kind, words, features, channels, classes)
                features, channels = layer.features, layer.channels
                self.kinds.append(kind)
                self.layers.append(layer)

    def frames(self, n):
        for layer in self.layers:
            n = layer.frames(n)
        return n

    def forward(self, x, n):
        for layer in self.layers:
            x, n = layer(x, n), layer.frames(n)
        return x, n

    @torch.no_grad()
    def take(self, words, weights):
        """The weights of a model, as check_against_torch.read_model returns it."""
        if [word.partition(":")[0] for word in words] != self.kinds:
            sys.exit("the model has another network: %s" % " ".join(words))
        for k, layer in enumerate(self.layers):
            layer.take(lambda name: weights["%d.%s.%s" % (k, self.kinds[k], name)])
