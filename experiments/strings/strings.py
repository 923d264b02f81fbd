#!/usr/bin/env python3
"""Puts glyphs of MNIST side by side, as pages of lines.

    strings.py FROM TO SET STRINGS

FROM has MNIST's four files, SET is train, dev or test, STRINGS a number. TO gets
SET-0000.pgm, SET-0000.xml and so on: images of LINES strings one below the other, and
where they are, in PAGE XML. dev has the last HELD_OUT of the 60,000 training glyphs,
train the others.

Glyphs are shuffled, taken one after the other, and shuffled again once all are used.
Each is cut to its ink, scaled, and moved up or down. The boxes of neighbours are GAPS
apart; a negative gap is an overlap, of at most a third of the narrower one. The first
n strings do not depend on how many follow. All is a function of SEED, SET and the data.
"""
import functools
import gzip
import os
import random
import struct
import sys

SEED = 1
HELD_OUT = 5000
DIGITS = 3, 9  # the fewest and the most in a string
GAPS = -4, 6  # pixels
SCALES = 0.8, 1.15
SHIFT = 4  # pixels up or down, at most
MARGIN = 1, 6  # pixels before the first digit and after the last
HEIGHT = 32  # of a line
WIDTH = 288  # of a page; more than nine of the widest digits and gaps
LINES = 500  # on a page

XML = """<?xml version="1.0" encoding="UTF-8"?>
<PcGts xmlns="http://schema.primaresearch.org/PAGE/gts/pagecontent/2019-07-15">
<Page imageFilename="{name}.pgm" imageWidth="{width}" imageHeight="{height}">
<TextRegion id="r">
{lines}
</TextRegion>
</Page>
</PcGts>
"""
LINE = (
    '<TextLine id="s{line:03}"><Coords points="0,{top} {right},{top} '
    '{right},{bottom} 0,{bottom}"/>'
    "<TextEquiv><Unicode>{text}</Unicode></TextEquiv></TextLine>"
)


def read_idx(path, dimensions):
    """The sizes in an IDX file of bytes, and its bytes."""
    try:
        with gzip.open(path, "rb") as file:
            content = file.read()
    except (OSError, EOFError) as error:
        sys.exit(f"strings: {path}: {error}")
    start = 4 + 4 * dimensions
    sizes = struct.unpack(f">{dimensions}I", content[4:start].ljust(start - 4))
    needed = start
    for size in sizes if dimensions == 1 else [sizes[0] * sizes[1] * sizes[2]]:
        needed += size
    if content[:4] != bytes([0, 0, 8, dimensions]) or len(content) != needed:
        sys.exit(f"strings: {path} is not an IDX file of {dimensions} dimensions, or "
                 "is damaged")
    return sizes, content[start:]


def cut(rows):
    """The box of the ink."""
    inked = [y for y, row in enumerate(rows) if any(row)]
    left = min(len(row) - len(row.lstrip(b"\0")) for row in rows)
    right = max(len(row.rstrip(b"\0")) for row in rows)
    return [row[left:right] for row in rows[inked[0]:inked[-1] + 1]]


def read_glyphs(source, name):
    """[(digit, rows of bytes, 0 for the background)]"""
    prefix = os.path.join(source, "t10k" if name == "test" else "train")
    (n, height, width), pixels = read_idx(prefix + "-images-idx3-ubyte.gz", 3)
    (n_labels,), labels = read_idx(prefix + "-labels-idx1-ubyte.gz", 1)
    if n != n_labels or (name != "test" and n <= HELD_OUT):
        sys.exit(f"strings: {n} images and {n_labels} labels in {prefix}-*")
    chosen = {"train": range(n - HELD_OUT), "dev": range(n - HELD_OUT, n),
              "test": range(n)}[name]
    glyphs = []
    for i in chosen:
        start = i * height * width
        rows = [pixels[start + y * width:start + (y + 1) * width]
                for y in range(height)]
        if any(map(any, rows)):
            glyphs.append((str(labels[i]), cut(rows)))
    return glyphs


@functools.lru_cache(maxsize=None)
def taps(n, to):
    """For each of `to` places two of n, and the weight of the second, of 256."""
    found = []
    for i in range(to):
        centre = min(max((i + 0.5) * n / to - 0.5, 0), n - 1)
        first = min(int(centre), max(n - 2, 0))
        found.append((first, min(first + 1, n - 1), int(256 * (centre - first))))
    return found


def scaled(rows, scale):
    """Interpolates between the centres of pixels."""
    width = max(round(scale * len(rows[0])), 1)
    height = max(round(scale * len(rows)), 1)
    across = taps(len(rows[0]), width)
    high = [[(a << 8) + w * (b - a) >> 8 for a, b in zip(rows[i], rows[j])]
            for i, j, w in taps(len(rows), height)]
    return [[(row[i] << 8) + w * (row[j] - row[i]) >> 8 for i, j, w in across]
            for row in high]


def within(chance, low, high):
    """An integer; of Python's numbers only random() is the same in all versions."""
    return low + int(chance.random() * (high - low + 1))


def endless(glyphs, chance):
    while True:
        yield from sorted(glyphs, key=lambda _: chance.random())


def draw(glyphs, chance):
    """The rows of a string, WIDTH wide, and where it ends."""
    lines = [bytearray(WIDTH) for _ in range(HEIGHT)]
    right, before = within(chance, *MARGIN), 0
    for _, rows in glyphs:
        low, high = SCALES
        rows = scaled(rows, low + (high - low) * chance.random())
        width = len(rows[0])
        if before > 0:
            right += max(within(chance, *GAPS), -(min(before, width) // 3))
        top = (HEIGHT - len(rows)) // 2 + within(chance, -SHIFT, SHIFT)
        top = min(max(top, 0), HEIGHT - len(rows))
        for line, row in zip(lines[top:], rows):
            line[right:right + width] = map(max, line[right:right + width], row)
        right += width
        before = width
    return lines, right + within(chance, *MARGIN)


def write_page(to, name, strings, chance):
    pixels, lines = [], []
    for line, glyphs in enumerate(strings):
        rows, right = draw(glyphs, chance)
        pixels += rows
        lines.append(LINE.format(line=line, top=line * HEIGHT, right=right,
                                 bottom=(line + 1) * HEIGHT,
                                 text="".join(digit for digit, _ in glyphs)))
    height = HEIGHT * len(strings)
    black_on_white = bytes(range(255, -1, -1))
    with open(os.path.join(to, name + ".pgm"), "wb") as out:
        out.write(f"P5 {WIDTH} {height} 255\n".encode())
        out.write(b"".join(pixels).translate(black_on_white))
    with open(os.path.join(to, name + ".xml"), "w", encoding="ascii") as out:
        out.write(XML.format(name=name, width=WIDTH, height=height,
                             lines="\n".join(lines)))


def main(source, to, name, strings):
    chance = random.Random(f"{SEED} {name}")
    glyphs = endless(read_glyphs(source, name), chance)
    left, page = int(strings), 0
    os.makedirs(to, exist_ok=True)
    while left > 0:
        n = min(left, LINES)
        write_page(to, f"{name}-{page:04}",
                   [[next(glyphs) for _ in range(within(chance, *DIGITS))]
                    for _ in range(n)], chance)
        left -= n
        page += 1


main(*sys.argv[1:])
