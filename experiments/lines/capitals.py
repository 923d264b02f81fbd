#!/usr/bin/env python3
"""Composes lines in capitals from the letters of training lines.

    capitals.py FROM CTM TO LINES

FROM has train.jsonl and its images, CTM has the times of its labels, in columns: see
`bmuf align --level labels`. TO gets train.jsonl, the lines of FROM and LINES new ones,
and the images of those.

A letter reaches from the column with the least ink on its left to that on its right. It
is used if both columns are empty but for ruled lines. A new line has the text of a
training line in capitals, in the hand of one of the WRITERS with the most different
capitals. A letter that this writer lacks is taken from another writer, the same one for
the whole line. An accent is dropped if nobody has the letter with it. The first n lines
do not depend on how many follow. All is a function of SEED and the data.
"""
import collections
import json
import os
import random
import struct
import sys
import unicodedata
import zlib

SEED = 1
WRITERS = 120
CONFIDENCE = 0.9  # the least of a letter in the alignment
WIDTHS = 3, 60  # columns of a letter
GAPS = 1, 5  # columns between letters
SPACES = 8, 28  # columns between words
SCALES = 0.45, 1.05  # of a line's height; capitals at the beginning of words are large
ASPECTS = 0.9, 1.4  # of the width, times the scale of the height
FOOT = 36  # the row that scaling leaves in place
PALE = 0.3  # black pixels that an empty column may have more than the emptiest tenth
FEWEST = 8  # characters of a text

Letter = collections.namedtuple("Letter", "columns paper")


def read_png(path):
    """Columns of ink, 0 to 255, of a grey image without interlace."""
    with open(path, "rb") as file:
        data = file.read()
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        chunk = data[at + 8:at + 8 + size]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlace = struct.unpack(">2I5B", chunk)
            if colour or interlace or depth > 8:
                sys.exit(f"capitals: {path} is not a grey image of up to 8 bits without interlace")
        elif kind == b"IDAT":
            packed += chunk
        at += size + 12
    raw, stride = zlib.decompress(packed), (width * depth + 7) // 8
    above, rows = bytes(stride), []
    for y in range(height):  # filters: PNG, third edition, section 9
        filtered = raw[y * (stride + 1)]
        row = bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for x in range(stride):
            left, up = row[x - 1] if x else 0, above[x]
            corner = above[x - 1] if x else 0
            if filtered == 1:
                guess = left
            elif filtered == 2:
                guess = up
            elif filtered == 3:
                guess = (left + up) // 2
            elif filtered == 4:
                p = left + up - corner
                guess = min((left, up, corner), key=lambda v: abs(p - v))
            else:
                guess = 0
            row[x] = (row[x] + guess) & 255
        above, most = row, (1 << depth) - 1
        rows.append([255 - 255 * (row[x * depth // 8] >> 8 - depth - x * depth % 8 & most) // most
                     for x in range(width)])
    return [bytes(column) for column in zip(*rows)]


def letters_of(columns, labels):
    """Yields (label, Letter) for each clear one of the (label, middle, confidence)."""
    ink = [sum(column) for column in columns]
    blank = sorted(ink)[len(ink) // 10] + 255 * PALE
    ends = [0] + [middle for _, middle, _ in labels] + [len(ink) - 1]
    cuts = []
    for left, right in zip(ends, ends[1:]):
        half = (left + right) / 2
        cuts.append(min(range(left, max(left, right) + 1),
                        key=lambda x: (max(ink[x], blank), abs(x - half))))
    for i, (label, _, confidence) in enumerate(labels):
        left, right = cuts[i], cuts[i + 1]
        if confidence < CONFIDENCE or ink[left] > blank or ink[right] > blank:
            continue
        inked = [x for x in range(left, right + 1) if ink[x] > blank]
        if inked and WIDTHS[0] <= inked[-1] + 1 - inked[0] <= WIDTHS[1]:
            yield label, Letter(columns[inked[0]:inked[-1] + 1], columns[left])


def scaled(columns, high, wide):
    """Columns of a line that is `high` and `wide` times as large, FOOT rows from the top."""
    height = len(columns[0])

    def at(column, y):
        low = int(y // 1)
        part = y - low
        value = 0
        for row, weight in (low, 1 - part), (low + 1, part):
            value += weight * (column[row] if 0 <= row < height else 0)
        return round(value)

    return [bytes(at(columns[min(len(columns) - 1, int(x / wide))], FOOT + (y - FOOT) / high)
                  for y in range(height))
            for x in range(int(len(columns) * wide))]


def compose(text, writer, store, chance):
    """Columns of a text in capitals, and its text without the accents that are missing."""
    donors, columns, written, paper = {}, [], "", None
    for symbol in text:
        if symbol == " ":
            columns += [paper] * chance.randint(*SPACES) if paper else []
            written += symbol
            continue
        if symbol not in store:
            symbol = unicodedata.normalize("NFD", symbol)[0]
        if symbol not in store:
            return None, ""
        if symbol not in donors:
            have = store[symbol]
            donors[symbol] = have[writer] if writer in have else have[chance.choice(sorted(have))]
        letter = chance.choice(donors[symbol])
        paper = letter.paper
        columns += letter.columns + [paper] * chance.randint(*GAPS)
        written += symbol
    high = chance.uniform(*SCALES)
    return scaled(columns, high, high * chance.uniform(*ASPECTS)), written


def write_pgm(path, columns):
    rows = zip(*columns)
    with open(path, "wb") as file:
        file.write(b"P5 %d %d 255\n" % (len(columns), len(columns[0])))
        file.write(b"".join(bytes(255 - value for value in row) for row in rows))


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    source, ctm, target, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    os.makedirs(target, exist_ok=True)
    with open(os.path.join(source, "train.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    times = collections.defaultdict(list)
    with open(ctm, encoding="utf-8") as file:
        for line in file:
            name, _, start, duration, label, confidence = line.split()
            middle = int(float(start) + float(duration) / 2)
            times[name].append((label, middle, float(confidence)))

    store = collections.defaultdict(lambda: collections.defaultdict(list))
    for line in lines:
        columns = read_png(os.path.join(source, line["image"]))
        labels = [(label, min(middle, len(columns) - 1), confidence)
                  for label, middle, confidence in times[line["id"]]]
        for label, letter in letters_of(columns, labels):
            if not label.islower() and len(label) == 1:
                store[label][line["speaker"]].append(letter)
    kinds = collections.Counter(writer for label in store if label.isupper()
                                for writer in store[label])
    writers = sorted(sorted(kinds), key=lambda writer: -kinds[writer])[:WRITERS]
    found = sum(len(letters) for label in store if label.isupper()
                for letters in store[label].values())
    print(f"capitals: {found} capitals of {len(kinds)} writers", file=sys.stderr)

    texts = [line["text"].upper() for line in lines if len(line["text"]) >= FEWEST]
    made = []
    for number in range(count):
        columns = None
        chance = random.Random(f"{SEED} {number}")
        while columns is None:
            writer = chance.choice(writers)
            columns, text = compose(chance.choice(texts), writer, store, chance)
        name = f"capitals-{number:04d}"
        write_pgm(os.path.join(target, name + ".pgm"), columns)
        made.append({"id": name, "image": name + ".pgm", "text": text, "speaker": writer})
    with open(os.path.join(target, "train.jsonl"), "w", encoding="utf-8") as file:
        for line in lines:
            line["image"] = os.path.relpath(os.path.join(source, line["image"]), target)
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        for line in made:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
