#!/usr/bin/env python3
"""Joins the digits of a writer to strings, as a pen would have moved.

    strings.py FROM TO

FROM has pendigits-orig.tra.gz and .tes.gz, in UNIPEN's text; TO gets
train.jsonl, dev.jsonl, test.jsonl, and a .npy file for each string. Lengths are
in heights, the median one of the writer's digits; points are STEP apart on the
path of the pen. A row for each point after the first, in steps:

    dx  dy  pen     from the point before; pen: 1 if it was down, else 0

All writers copied the same 250 digits: in that order, they could be known
without looking. They are shuffled, for each writer in another way. The training
set has COPIES of every digit, each in another company, slanted and stretched.
"""
import gzip
import json
import math
import os
import random
import statistics
import struct
import sys

DIGITS = 5  # in a string
STEP = 0.1
GAP = 0.3  # between digits
COPIES = 4
SLANT = 0.3  # the most that x gains or loses with y
STRETCH = 1.3  # the most that a digit becomes wider, or narrower
DEV_WRITERS = (5, 10, 15, 20, 25, 30)  # of the 30 in the training set


def read(path):
    """{writer: [(digit, strokes)]}; a stroke is a list of (x, y)."""
    writers, strokes = {}, None
    with gzip.open(path, "rt", encoding="ascii") as lines:
        for line in lines:
            words = line.split()
            if words[:1] == [".COMMENT"]:
                strokes = []
                writers.setdefault(int(words[2]), []).append(
                    (words[1], strokes))
            elif words[:1] == [".PEN_DOWN"]:
                strokes.append([])
            elif words and words[0][0] != ".":
                strokes[-1].append((int(words[0]), int(words[1])))
    return {writer: in_heights(digits) for writer, digits in writers.items()}


def extent(strokes, axis):
    values = [point[axis] for stroke in strokes for point in stroke]
    return min(values), max(values)


def linear(strokes, xx, xy, yy):
    """x, y -> xx x + xy y, yy y"""
    return [[(xx * x + xy * y, yy * y) for x, y in s] for s in strokes]


def in_heights(digits):
    extents = (extent(strokes, 1) for _, strokes in digits)
    height = statistics.median(high - low for low, high in extents)
    return [(digit, linear(strokes, 1 / height, 0, 1 / height))
            for digit, strokes in digits]


def altered(strokes, chance):
    stretch = STRETCH ** chance.uniform(-1, 1)
    return linear(strokes, stretch, chance.uniform(-SLANT, SLANT), 1)


def even(stroke):
    """Points on the stroke, STEP apart, and its last one."""
    points, ahead = [stroke[0]], STEP
    for (x0, y0), (x, y) in zip(stroke, stroke[1:]):
        r = math.hypot(x - x0, y - y0)
        while ahead < r:
            share = ahead / r
            points.append((x0 + share * (x - x0), y0 + share * (y - y0)))
            ahead += STEP
        ahead -= r
    return points + stroke[-1:]


def side_by_side(digits):
    """(x, y, pen) of all points, from left to right."""
    points, right = [], 0
    for _, strokes in digits:
        low, high = extent(strokes, 0)
        for stroke in strokes:
            points += [(x - low + right, y, float(i > 0))
                       for i, (x, y) in enumerate(even(stroke))]
        right += high - low + GAP
    return points


def features(points):
    return [((x - x0) / STEP, (y - y0) / STEP, pen)
            for (x0, y0, _), (x, y, pen) in zip(points, points[1:])]


def write_npy(path, rows):
    shape = f"({len(rows)}, {len(rows[0])})"
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (-(10 + len(head) + 1) % 64) + "\n"
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)))
        out.write(head.encode())
        for row in rows:
            out.write(struct.pack(f"<{len(row)}f", *row))


def arranged(name, writer, digits):
    """The digits in the order in which they are cut into strings."""
    chance = random.Random(f"{name} {writer}")

    def shuffled():
        return sorted(digits, key=lambda _: chance.random())

    if name != "train":
        return shuffled()
    copies = [shuffled() for _ in range(COPIES)]
    return [(digit, altered(strokes, chance))
            for copy in copies for digit, strokes in copy]


def write_set(to, name, writers):
    os.makedirs(os.path.join(to, name), exist_ok=True)
    with open(os.path.join(to, name + ".jsonl"), "w", encoding="ascii") as out:
        for writer, digits in sorted(writers.items()):
            arrangement = arranged(name, writer, digits)
            for start in range(0, len(arrangement), DIGITS):
                string = arrangement[start:start + DIGITS]
                sequence = f"{name}-{writer:02}-{start // DIGITS:03}"
                path = os.path.join(name, sequence + ".npy")
                write_npy(os.path.join(to, path),
                          features(side_by_side(string)))
                print(json.dumps({"id": sequence, "feats": path,
                                  "text": "".join(d for d, _ in string),
                                  "speaker": f"{name}-{writer:02}"}), file=out)


def main(source, to):
    known = read(os.path.join(source, "pendigits-orig.tra.gz"))
    write_set(to, "train",
              {w: d for w, d in known.items() if w not in DEV_WRITERS})
    write_set(to, "dev", {w: d for w, d in known.items() if w in DEV_WRITERS})
    write_set(to, "test", read(os.path.join(source, "pendigits-orig.tes.gz")))


main(*sys.argv[1:])
