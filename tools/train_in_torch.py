#!/usr/bin/env python3
"""Trains the network of a configuration in PyTorch, on one worker, and prints label
errors after each epoch, then a JSON object with those of the best epoch on TEST:

    bmuf train my.ini --out run/1             # leaves run/1/config.ini
    tools/train_in_torch.py run/1/config.ini data/test [--seed N] [--threads N]

Data, network, mini-batches, rate, schedule, momentum, clipping, number of epochs and
augmentation are those of the configuration; the number of workers is one, initial
weights are PyTorch's, and random numbers differ. Stops with a message at what it does
not know: layers other than linear, relu, tanh, sigmoid, lstm, blstm, dropout, stack
and subsample; updates other than momentum; schedules other than constant, exponential
and cosine; augmentation other than speed, noise and time masks. Needs torch, numpy and
h5py.
"""
import argparse
import configparser
import json
import math
import re
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from check_against_torch import read_data


def known(value, *values):
    """One of these values, or the end."""
    if value not in values:
        sys.exit("'%s' is not supported; there is %s" % (value, ", ".join(values)))
    return value


class Network(nn.Module):
    """x [T, B, D] of sequences with n frames -> logits [T', B, C], their frames."""

    def __init__(self, net, features, classes):
        super().__init__()
        self.words, self.layers = [], nn.ModuleList()
        for word in net.split():
            one, times = re.fullmatch(r"(.*?)(?:\*(\d+))?", word).groups()
            self.words += [one.partition(":")[::2]] * int(times or 1)
        for k, (kind, size) in enumerate(self.words):
            layer = nn.Identity()
            if kind == "linear":
                n = int(size or classes)
                layer, features = nn.Linear(features, n), n
            elif kind in ("lstm", "blstm"):
                both, n = kind == "blstm", int(size)
                layer = nn.LSTM(features, n, bidirectional=both)
                features = n * (2 if both else 1)
            elif kind == "dropout":
                layer = nn.Dropout(float(size))
            elif kind == "stack":
                features *= int(size)
            elif kind != "subsample":
                layer = {"relu": nn.ReLU, "tanh": nn.Tanh,
                         "sigmoid": nn.Sigmoid}[
                             known(kind, "relu", "tanh", "sigmoid")]()
            self.words[k] = (kind, size)
            self.layers.append(layer)

    def forward(self, x, n):
        for (kind, size), layer in zip(self.words, self.layers):
            if kind in ("lstm", "blstm"):
                packed = pack_padded_sequence(x, n, enforce_sorted=False)
                x, _ = pad_packed_sequence(layer(packed)[0], total_length=len(x))
            elif kind in ("stack", "subsample"):
                step = int(size)
                x = nn.functional.pad(x, (0, 0, 0, 0, 0, -len(x) % step))
                t, b, d = len(x) // step, x.shape[1], x.shape[2]
                x = x.view(t, step, b, d).transpose(1, 2).reshape(t, b, -1)
                x = x if kind == "stack" else x[:, :, :d]
                n = (n + step - 1) // step
            else:
                x = layer(x)
        return x, n


def augment(x, s, random):
    """x [T, D] -> [T', D]: another speed, noise, and masks in time, with the mean of
    each feature, as docs/augmentation.md says."""
    factors = s.get("speed", "").split()
    mean, deviation = x.mean(0), x.std(0)
    if factors:
        frames = max(1, round(len(x) / float(random.choice(factors))))
        at = np.clip((np.arange(frames) + 0.5) * len(x) / frames - 0.5, 0, len(x) - 1)
        low = at.astype(int)
        high = np.minimum(low + 1, len(x) - 1)
        part = (at - low)[:, None]
        x = x[low] * (1 - part) + x[high] * part
    most = float(s.get("noise", 0))
    if most > 0:
        x = x + random.standard_normal(x.shape) * random.uniform(0, most) * deviation
    for _ in range(int(s.get("time_masks", 0))):
        limit = min(int(s.get("time_width", 40)),
                    int(float(s.get("time_share", 0.2)) * len(x)))
        width = random.integers(0, limit + 1)
        start = random.integers(0, len(x) - width + 1)
        x[start:start + width] = mean
    return x


def cut(order, lengths, s):
    """Mini-batches of an epoch: sorted by length within `buckets` of them."""
    frames, count = int(s.get("frames", 0)), int(s.get("sequences", 0))
    buckets = int(s.get("buckets", 64))
    per = count or max(1, int(frames / np.mean(lengths)))
    batches = []
    for begin in range(0, len(order), per * buckets):
        batch = []
        for k in sorted(order[begin:begin + per * buckets], key=lambda k: lengths[k]):
            full = (len(batch) == count if count
                    else batch and lengths[k] * (len(batch) + 1) > frames)
            if full:
                batches.append(batch)
                batch = []
            batch.append(k)
        batches.append(batch)
    return batches


def rate_at(s, rate, progress, epochs):
    """The learning rate after `progress` epochs."""
    kind = known(s.get("kind", "cosine"), "constant", "exponential", "cosine")
    if kind == "exponential":
        rate *= float(s.get("decay", 0.5)) ** progress
    elif kind == "cosine":
        rate *= (1 + math.cos(math.pi * progress / epochs)) / 2
    return rate


def distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def together(sequences):
    """Padded frames [T, B, D], their numbers, labels end to end, their numbers."""
    x = nn.utils.rnn.pad_sequence([torch.from_numpy(np.ascontiguousarray(
        s[0], np.float32)) for s in sequences])
    return (x, torch.tensor([len(s[0]) for s in sequences]),
            torch.from_numpy(np.concatenate([s[1] for s in sequences])),
            torch.tensor([len(s[1]) for s in sequences]))


@torch.no_grad()
def errors(model, data):
    """Wrong labels, and labels, by the best path."""
    model.eval()
    wrong = labels = 0
    for begin in range(0, len(data), 16):
        part = data[begin:begin + 16]
        x, n, _, _ = together(part)
        y, n = model(x, n)
        for b, (_, reference) in enumerate(part):
            path = y[:n[b], b].argmax(1).tolist()
            best = [c for c, before in zip(path, [0] + path) if c not in (0, before)]
            wrong += distance(best, reference.tolist())
            labels += len(reference)
    model.train()
    return wrong, labels


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("test")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    a = parser.parse_args()
    config = configparser.ConfigParser(inline_comment_prefixes=(";",))
    config.read(a.config)
    get = lambda section: config[section] if config.has_section(section) else {}
    torch.manual_seed(a.seed)
    torch.set_num_threads(a.threads)
    random = np.random.default_rng(a.seed)
    sets = [[(x.astype(np.float32), labels) for _, x, labels in read_data(d)]
            for d in (config["data"]["train"], config["data"]["dev"], a.test)]
    train, dev, test = sets
    classes = sum(1 for _ in open(config["data"]["train"] + "/vocab.txt",
                                  encoding="utf-8"))
    model = Network(" ".join(config["model"]["net"].split()), train[0][0].shape[1],
                    classes)
    sgd = get("sgd")
    known(sgd.get("update", "momentum"), "momentum")
    epochs, rate = int(config["train"]["epochs"]), float(config["train"]["rate"])
    update = torch.optim.SGD(model.parameters(), rate,
                             momentum=float(sgd.get("momentum", 0.9)))
    clip = float(sgd.get("clip", 5)) or math.inf
    lengths = [len(x) for x, _ in train]
    seconds, best = 0.0, None
    for epoch in range(epochs):
        began = time.process_time() if a.threads == 1 else time.time()
        batches = cut(random.permutation(len(train)), lengths, get("batch"))
        random.shuffle(batches)
        for i, batch in enumerate(batches):
            for group in update.param_groups:
                group["lr"] = rate_at(get("schedule"), rate,
                                      epoch + i / len(batches), epochs)
            x, n, labels, n_labels = together(
                [(augment(train[k][0].copy(), get("augment"), random), train[k][1])
                 for k in batch])
            y, n = model(x, n)
            loss = nn.functional.ctc_loss(y.log_softmax(2), labels, n, n_labels,
                                          reduction="none", zero_infinity=True)
            update.zero_grad()
            loss.mean().backward()
            nn.utils.clip_grad_norm_(model.parameters(), clip)
            update.step()
        seconds += (time.process_time() if a.threads == 1 else time.time()) - began
        wrong, count = errors(model, dev)
        print("epoch %d: dev %.2f %%, %.0f s" % (epoch + 1, 100 * wrong / count,
                                                 seconds), flush=True)
        if best is None or wrong < best[0]:
            best = (wrong, count, epoch + 1) + errors(model, test)
    print(json.dumps({"dev_ler": best[0] / best[1], "epoch": best[2],
                      "wrong": best[3], "labels": best[4],
                      "test_ler": best[3] / best[4],
                      "weights": sum(p.numel() for p in model.parameters()),
                      "seconds": round(seconds, 1)}))


if __name__ == "__main__":
    main()
