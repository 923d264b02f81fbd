"""The changes of [augment] in NumPy, as docs/data/augmentation.md describes them, for
train_in_torch.py. Distributions are those of bmuf, random numbers are not.

    change = Augmentation(settings, image_height("data/train"), random)
    y = change(x)                    # x [T, D] -> y [T', D]

Of features that are not images it knows speed, warp, contrast, noise and time masks.
"""
import glob
import json
import math
import sys

import h5py
import numpy as np

DEFAULTS = {
    "share": 1, "warp": 0, "time_masks": 0, "time_width": 40, "time_share": 0.2,
    "frequency_masks": 0, "frequency_width": 8, "offset": 0, "contrast": 0,
    "noise": 0, "slant": 0, "height": 0, "shift": 0, "elastic": 0,
    "elastic_grid": 0.3, "stroke": 0, "cutouts": 0, "cutout_size": 0.3}
IMAGES_ONLY = ("frequency_masks", "offset", "slant", "height", "shift", "elastic",
               "stroke", "cutouts")
RECORDINGS = ("reverb", "reverb_share", "t60", "direct", "noise_sound",
              "noise_sound_share", "snr")


def image_height(directory):
    """Pixels in a column of the images of a data set, or 0: they are no images."""
    with h5py.File(sorted(glob.glob(directory + "/*.bmuf.h5"))[0], "r") as f:
        about = json.loads(f["bmuf"].attrs.get("feat_config", b"{}") or b"{}")
        whole = about.get("kind") == "idx" and "height" not in about
        return f["inputs"].shape[1] if whole else about.get("height", 0)


def spline(n, spacing):
    """[n, points]: weights of a grid's points, `spacing` apart, at 0 .. n - 1."""
    at = np.arange(n) / spacing
    first, u = at.astype(int), at % 1
    v = 1 - u
    weights = np.zeros((n, int(n / spacing) + 4))
    for k, w in enumerate((v ** 3, 3 * u ** 3 - 6 * u ** 2 + 4,
                           3 * v ** 3 - 6 * v ** 2 + 4, u ** 3)):
        weights[np.arange(n), first + k] = w / 6
    return weights


def along_time(x, at):
    """x [n, ..] at places between strips; the first and the last are repeated."""
    at = np.clip(at, 0, len(x) - 1)
    low = at.astype(int)
    part = (at - low).astype(np.float32)[:, None]
    return x[low] * (1 - part) + x[np.minimum(low + 1, len(x) - 1)] * part


def bilinear(x, i, j):
    """x [n, m] at the places i, j between pixels; beyond them is background, 0."""
    n, m = x.shape
    wide = np.pad(x, 1).ravel()
    i, j = np.clip(i, -1, n), np.clip(j, -1, m)
    row, column = np.floor(i), np.floor(j)
    f, g = (i - row).astype(np.float32), (j - column).astype(np.float32)
    row, column = np.minimum(row + 1, n), np.minimum(column + 1, m)
    at = (row * (m + 2) + column).astype(np.int32)
    a, b, c, d = (wide.take(at + k) for k in (0, 1, m + 2, m + 3))
    a += g * (b - a)
    c += g * (d - c)
    return a + f * (c - a)


def one_pixel(x, most):
    """The extreme of squares of 3 x 3; most: np.maximum or np.minimum."""
    for _ in range(2):
        y = x.copy()
        most(y[1:], x[:-1], out=y[1:])
        most(y[:-1], x[1:], out=y[:-1])
        x = y.T
    return x


class Augmentation:
    """settings: keys and values of [augment]; height: as of image_height."""

    def __init__(self, settings, height, random):
        given = dict(settings)
        for key in RECORDINGS:
            if given.pop(key, "no") != "no" and key in ("reverb", "noise_sound"):
                sys.exit("augment.%s is not supported" % key)
        speed = given.pop("speed", "")
        self.from_to = ":" in speed
        self.speeds = [float(f) for f in speed.replace(":", " ").split()] or [1.0]
        for key in set(given) - set(DEFAULTS):
            sys.exit("augment.%s is not supported" % key)
        self.s = {key: float(given.get(key, one)) for key, one in DEFAULTS.items()}
        for key in IMAGES_ONLY:
            if not height and self.s[key] > 0:
                sys.exit("augment.%s is only supported for images" % key)
        self.height, self.random = height, random

    def up_to(self, key):
        """Uniformly up to a setting, to both sides."""
        return self.s[key] * self.random.uniform(-1, 1)

    def frames(self, n, fits):
        if self.from_to:
            factor = self.random.uniform(*self.speeds)
        else:
            factor = self.random.choice(self.speeds)
        changed = max(1, math.floor(n / factor + 0.5))
        return changed if changed >= n or fits(changed) else n

    def times(self, n_in, n_out, reach):
        """Where the strips of the output come from, with a time warp."""
        at = (np.arange(n_out) + 0.5) * (n_in / n_out)
        most = min(reach, n_in // 2)
        if most >= 2:
            start = most + self.random.integers(n_in - 2 * most + 1)
            to = start - most + 1 + self.random.integers(2 * most - 1)
            at = np.interp(at, [0, to, n_in], [0, start, n_in])
        return at - 0.5

    def place(self, x, at):
        """x [n, H], columns of pixels, at other places."""
        s, height = self.s, x.shape[1]
        below = np.arange(height) - (height - 1) / 2
        slant, scale = self.up_to("slant"), 1 + self.up_to("height")
        shift = self.up_to("shift") * height
        i = at[:, None] + slant * below
        j = (height - 1) / 2 + (below - shift) / scale
        if s["elastic"] > 0:
            spacing = max(1, s["elastic_grid"] * height)
            time, rows = spline(len(at), spacing), spline(height, spacing)
            grid = self.random.standard_normal((2, time.shape[1], rows.shape[1]))
            move = s["elastic"] * height * 315 / 151 * time @ grid @ rows.T
            i, j = i + move[0], j + move[1]
        return bilinear(x, i, np.broadcast_to(j, i.shape))

    def strokes(self, x):
        amount = self.up_to("stroke")
        most = np.maximum if amount > 0 else np.minimum
        whole, part = divmod(abs(amount), 1)
        for _ in range(int(whole)):
            x = one_pixel(x, most)
        return x + np.float32(part) * (one_pixel(x, most) - x) if part > 0 else x

    def values(self, x, mean, deviation):
        contrast, offset = 1 + self.up_to("contrast"), self.up_to("offset")
        x = contrast * x + ((1 - contrast) * mean + offset)
        if self.s["noise"] > 0:
            level = self.random.uniform(0, self.s["noise"]) * deviation
            x = x + level * self.random.standard_normal(x.shape, np.float32)
        x = x.astype(np.float32)
        return x.clip(0, 1) if self.height else x

    def mask(self, widest, n):
        """A random slice of 0 .. n."""
        width = self.random.integers(min(int(widest), n) + 1)
        start = self.random.integers(n - width + 1)
        return slice(start, start + width)

    def masks(self, x, fill):
        """x [T, columns, H], in place; fill [D]."""
        s, (n, columns, height) = self.s, x.shape
        fill = np.broadcast_to(fill, columns * height).reshape(columns, height)
        for _ in range(int(s["time_masks"])):
            x[self.mask(min(s["time_width"], int(s["time_share"] * n)), n)] = fill
        for _ in range(int(s["frequency_masks"])):
            x[:, :, self.mask(s["frequency_width"], height)] = 0
        strips = x.reshape(-1, height)
        side = math.floor(s["cutout_size"] * height + 0.5)
        for _ in range(int(s["cutouts"])):
            time = self.mask(side, len(strips))
            strips[time, self.mask(side, height)] = 0

    def __call__(self, x, fits=lambda frames: True):
        """fits: can a sequence be shortened to as many frames?"""
        s, (n, features) = self.s, x.shape
        if self.random.random() >= s["share"]:
            return x
        width = self.height or features
        columns = features // width
        frames = self.frames(n, fits)
        y = x.reshape(-1, width)
        at = self.times(len(y), frames * columns, int(s["warp"]) * columns)
        if any(s[key] > 0 for key in ("slant", "height", "shift", "elastic")):
            y = self.place(y, at)
        else:
            y = along_time(y, at)
        if s["stroke"] > 0:
            y = self.strokes(y)
        y = y.reshape(frames, features)
        mean, deviation = (x.mean(), 1) if self.height else (x.mean(0), x.std(0))
        if any(s[key] > 0 for key in ("contrast", "offset", "noise")):
            y = self.values(y, mean, deviation)
        y = np.ascontiguousarray(y, np.float32).reshape(frames, columns, width)
        self.masks(y, 0 if self.height else mean)
        return y.reshape(frames, features)
