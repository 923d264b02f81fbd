#!/usr/bin/env python3
"""Trains the network of a configuration in PyTorch, on one worker, and prints label
errors after each epoch, then a JSON object with those of the best epoch on TEST:

    bmuf train my.ini --out run/1             # leaves run/1/config.ini
    tools/pytorch/train_in_torch.py run/1/config.ini data/test [--seed N] [--threads N] \\
        [--init run/0/model.safetensors] [--check logits.npz]

Data, network, mini-batches, rate, schedule, momentum, clipping, number of epochs and
augmentation are those of the configuration; the number of workers is one, initial
weights are PyTorch's, or with --init those of a model of bmuf, and random numbers
differ. With --check it does not train: it compares the network's logits with those that
`bmuf eval run/0/model.safetensors data/test --dump logits.npz` wrote.

Stops with a message at what it does not know: layers other than those of
network_in_torch.py; changes other than those of augmentation.py; the update
muon; the schedule newbob, and others. Needs torch, numpy and h5py.
"""
import argparse
import configparser
import json
import math
import sys
import time

import numpy as np
import torch
from torch import nn

from augmentation import Augmentation, image_height
from check_against_torch import read_data, read_model
from network_in_torch import Network, known

ONLY = {  # settings of which only the default is supported
    "model.loss": "ctc", "train.ema": "0", "train.label_smoothing": "0",
    "train.freeze": "", "train.rates": "", "batch.order": "random",
    "batch.accumulate": "1", "schedule.stop_after": "0"}


def cut(order, lengths, s):
    """Mini-batches of an epoch: sorted by length within `buckets` of them."""
    frames, count = int(s.get("frames", 0)), int(s.get("sequences", 0))
    buckets = int(s.get("buckets", 64))
    if not count and not frames:
        count = min(max(len(lengths) // 1000, 4), 16)
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


def anneal(start, end, x):
    """From `start` at x = 0 to `end` at x = 1 and later, along half a cosine."""
    return end + (start - end) * (1 + math.cos(math.pi * min(x, 1))) / 2


def updater(s, weights, rate):
    """The optimizer of [sgd]; docs/sgd.md has its formulas."""
    kind = known(s.get("update", "momentum"), "momentum", "adamw", "rmsprop")
    decay = float(s.get("weight_decay", 0))
    epsilon = float(s.get("epsilon", 1e-8))
    if kind == "adamw":
        betas = float(s.get("beta1", 0.9)), float(s.get("beta2", 0.999))
        return torch.optim.AdamW(weights, rate, betas, epsilon, decay)
    if kind == "rmsprop":
        return torch.optim.RMSprop(weights, rate, float(s.get("beta2", 0.99)), epsilon,
                                   decay, float(s.get("momentum", 0)))
    momentum = float(s.get("momentum", 0.9))
    return torch.optim.SGD(weights, rate, momentum, weight_decay=decay,
                           nesterov=s.get("nesterov") == "yes" and momentum > 0)


def rate_at(s, rate, progress, epochs):
    """The learning rate after `progress` epochs."""
    kind = known(s.get("kind", "cosine"), "constant", "exponential", "cosine", "noam",
                 "onecycle")
    warmup = float(s.get("warmup", 0))
    if kind == "onecycle":
        rise = warmup or 0.3 * epochs
        if progress < rise:
            return rate * anneal(1 / 25, 1, progress / rise)
        return rate * anneal(1, 1e-4 / 25, (progress - rise) / max(epochs - rise, 1e-9))
    if kind == "exponential":
        rate *= float(s.get("decay", 0.5)) ** progress
    elif kind == "cosine":
        rate *= anneal(1, 0, progress / epochs)
    elif kind == "noam" and progress > warmup:
        rate *= math.sqrt(warmup / progress)
    if progress < warmup:
        rate *= 0.1 + 0.9 * progress / warmup
    return rate


def distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def least(labels):
    """Frames that CTC needs for labels: one for each, and one between equal ones."""
    return len(labels) + int((labels[1:] == labels[:-1]).sum())


def together(sequences):
    """Padded frames [B, T, D], their numbers, labels end to end, their numbers."""
    x = nn.utils.rnn.pad_sequence([torch.from_numpy(np.ascontiguousarray(
        s[0], np.float32)) for s in sequences], batch_first=True)
    return (x, torch.tensor([len(s[0]) for s in sequences]),
            torch.from_numpy(np.concatenate([s[1] for s in sequences])),
            torch.tensor([len(s[1]) for s in sequences]))


@torch.no_grad()
def logits(model, data):
    """Yields the logits [T, C] of each sequence."""
    model.eval()
    for begin in range(0, len(data), 16):
        x, n, _, _ = together(data[begin:begin + 16])
        y, n = model(x, n)
        yield from (one[:frames] for one, frames in zip(y, n))
    model.train()


def errors(model, data):
    """Wrong labels, and labels, by the best path."""
    wrong = labels = 0
    for y, (_, reference) in zip(logits(model, data), data):
        path = y.argmax(1).tolist()
        best = [c for c, before in zip(path, [0] + path) if c not in (0, before)]
        wrong += distance(best, reference.tolist())
        labels += len(reference)
    return wrong, labels


def check(model, directory, dump):
    """Compares logits with those of bmuf eval --dump."""
    tags, data = zip(*((tag, (x, labels)) for tag, x, labels in read_data(directory)))
    theirs, apart, largest = np.load(dump), 0.0, 0.0
    for tag, y in zip(tags, logits(model, data)):
        apart = max(apart, np.abs(y.numpy() - theirs[tag]).max())
        largest = max(largest, y.abs().max().item())
    print("%d sequences; largest logit %.3g, largest difference %.2g" % (
        len(data), largest, apart))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("test")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--init", metavar="MODEL")
    parser.add_argument("--check", metavar="LOGITS")
    a = parser.parse_args()
    config = configparser.ConfigParser(inline_comment_prefixes=(";",))
    config.read(a.config)
    get = lambda section: config[section] if config.has_section(section) else {}
    for name, value in ONLY.items():
        section, key = name.split(".")
        if get(section).get(key, value) != value:
            sys.exit("%s = %s is not supported" % (name, config[section][key]))
    torch.manual_seed(a.seed)
    torch.set_num_threads(a.threads)
    random = np.random.default_rng(a.seed)
    directory, dev_directory = config["data"]["train"], config["data"]["dev"]
    classes = sum(1 for _ in open(directory + "/vocab.txt", encoding="utf-8"))
    features = next(read_data(a.test))[1].shape[1]
    model = Network(" ".join(config["model"]["net"].split()), features, classes)
    if a.init:
        model.take(*read_model(a.init))
    if a.check:
        check(model, a.test, a.check)
        return
    train, dev, test = (
        [(x.astype(np.float32), labels) for _, x, labels in read_data(d)]
        for d in (directory, dev_directory, a.test))
    augment = Augmentation(get("augment"), image_height(directory), random)
    epochs, rate = int(config["train"]["epochs"]), float(config["train"]["rate"])
    update = updater(get("sgd"), model.parameters(), rate)
    clip = float(get("sgd").get("clip", 5)) or math.inf
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
                [(augment(x, lambda frames: model.frames(frames) >= least(labels)),
                  labels) for x, labels in (train[k] for k in batch)])
            y, n = model(x, n)
            loss = nn.functional.ctc_loss(
                y.log_softmax(2).transpose(0, 1), labels, n, n_labels,
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
