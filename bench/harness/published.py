"""The data of ADBench in its published formats: reading the files, and writing ones of the same kind where there are none.

A folder of data has `gmm/1k/gmm_d10_K25.txt`, `ba/ba1_n49_m7776_p31843.txt`, `lstm/lstm_l2_c1024.txt`,
`hand/simple_small/hand1_t26_c100.txt` with its `model/`, and so on; large files may be gzipped. What is missing is made:
random numbers of the distributions that the published files have, from a seed that is the file's name."""

import gzip
import zlib
from pathlib import Path

import numpy as np


def tokens(path):
    return text(path).split()


def text(path):
    """Of a file, or of its .gz beside it."""
    zipped = path.with_name(path.name + ".gz")
    if path.exists():
        return path.read_text()
    return gzip.open(zipped, "rt").read()


def exists(path):
    return path.exists() or path.with_name(path.name + ".gz").exists()


# Whether files that are not there are made: those of a folder that was named should be there.
MAKES = True


def ensure(path, make):
    if exists(path):
        return
    if not MAKES:
        raise FileNotFoundError(f"{path} is not there; without --data files like it are made")
    make()


def randomness(path):
    return np.random.default_rng(zlib.crc32(path.name.encode()))


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_text("\n".join(lines) + "\n")
    unfinished.rename(path)


def rows(array):
    return [" ".join(f"{v:.6f}" for v in row) for row in np.atleast_2d(array)]


class Taker:
    """Numbers from the front of a list."""

    def __init__(self, numbers):
        self.numbers, self.at = numbers, 0

    def take(self, *shape):
        count = int(np.prod(shape))
        taken = np.ascontiguousarray(self.numbers[self.at : self.at + count].reshape(shape))
        self.at += count
        return taken


# ---- GMM: d K N, alpha, mu, icf, x, gamma m


def gmm_path(folder, points, d, k):
    return folder / "gmm" / points / f"gmm_d{d}_K{k}.txt"


def write_gmm(path, n, d, k):
    random = randomness(path)
    parts = [f"{d} {k} {n}"]
    parts += rows(random.normal(size=(k, 1)))
    parts += rows(random.uniform(size=(k, d)))
    parts += rows(random.normal(size=(k, d * (d + 1) // 2)))
    parts += rows(random.normal(size=(n, d)))
    write(path, parts + ["1.000000 0"])


def read_gmm(path):
    numbers = np.array(tokens(path), dtype=np.float64)
    d, k, n = (int(v) for v in numbers[:3])
    rest = Taker(numbers[3:])
    alpha, mu, icf, x = rest.take(k), rest.take(k, d), rest.take(k, d * (d + 1) // 2), rest.take(n, d)
    gamma, m = rest.take(2)
    return {"alpha": alpha, "mu": mu, "icf": icf, "x": x, "gamma": np.float64(gamma), "m": np.int64(m)}


def gmm(folder, points, n, d, k):
    path = gmm_path(folder, points, d, k)
    ensure(path, lambda: write_gmm(path, n, d, k))
    return read_gmm(path)


# ---- BA: n m p, one camera, one point, one weight, one feature, all replicated


def write_ba(path, n, m, p):
    random = randomness(path)
    camera = np.concatenate([random.normal(size=3), random.uniform(30, 55, 3), [419.194514], random.normal(0, 7, 2), random.uniform(0, 0.1, 2)])
    lines = [f"{n} {m} {p}", *rows(camera), *rows(random.uniform(0, 8, 3)), *rows(random.uniform(0.3, 0.6, 1)), *rows(random.uniform(0, 900, 2))]
    write(path, lines)


def read_ba(path):
    words = tokens(path)
    n, m, p = (int(v) for v in words[:3])
    rest = Taker(np.array(words[3:], dtype=np.float64))
    cameras, points, weights, features = rest.take(1, 11), rest.take(1, 3), rest.take(1), rest.take(1, 2)
    i = np.arange(p, dtype=np.int64)
    return {
        "cams": np.tile(cameras, (n, 1)),
        "points": np.tile(points, (m, 1)),
        "w": np.tile(weights, p),
        "obs": np.stack([i % n, i % m], 1),
        "feats": np.tile(features, (p, 1)),
    }


def ba(folder, name, n, m, p):
    path = folder / "ba" / f"{name}_n{n}_m{m}_p{p}.txt"
    ensure(path, lambda: write_ba(path, n, m, p))
    return read_ba(path)


# ---- LSTM: l c b, main, extra, state, sequence


def write_lstm(path, layers, c, b):
    random = randomness(path)
    uniform = [random.uniform(size=shape) for shape in ((2 * layers, 4 * b), (3, b), (2 * layers, b))]
    sequence = (random.uniform(size=(c, b)) < 0.25).astype(float)
    write(path, [f"{layers} {c} {b}", *(row for part in uniform for row in ["", *rows(part)]), "", *rows(sequence)])


def read_lstm(path):
    numbers = np.array(tokens(path), dtype=np.float64)
    layers, c, b = (int(v) for v in numbers[:3])
    rest = Taker(numbers[3:])
    return {"main": rest.take(layers, 2, 4, b), "extra": rest.take(3, b), "state": rest.take(layers, 2, b), "seq": rest.take(c, b)}


def lstm(folder, layers, c, b=14):
    path = folder / "lstm" / f"lstm_l{layers}_c{c}.txt"
    ensure(path, lambda: write_lstm(path, layers, c, b))
    return read_lstm(path)


# ---- HAND: N 26, correspondences with points, [us], theta; the model: bones, vertices, triangles, colon-separated

BONES = ["wrist", *(f"{finger}{k}" for finger in ("thumb", "index", "middle", "ring", "pinky") for k in (1, 2, 3, 4)), "forearm"]


def parent_of(bone):
    if bone == 0:
        return -1
    return 0 if bone == 21 or bone % 4 == 1 else bone - 1


def rotation(random):
    q, r = np.linalg.qr(random.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q if np.linalg.det(q) > 0 else -q


def colons(*parts):
    return ":".join(str(v) for v in parts)


def write_hand_model(folder, vertices, triangles=1084):
    random = randomness(folder.parent)
    lines, absolute = [], []
    for bone, name in enumerate(BONES):
        base = np.eye(4)
        base[:3, :3], base[:3, 3] = rotation(random), random.normal(0, 0.03, 3)
        absolute.append(base if bone == 0 else absolute[parent_of(bone)] @ base)
        lines.append(colons(name, parent_of(bone), *base.ravel(), *np.linalg.inv(absolute[bone]).ravel()))
    write(folder / "bones.txt", lines)
    lines = []
    for _ in range(vertices):
        count = random.choice([1, 2, 3, 4], p=[0.5, 0.32, 0.14, 0.04])
        chosen, weights = random.choice(len(BONES) - 1, count, replace=False), random.dirichlet(np.ones(count))
        pairs = (v for pair in zip(chosen, weights) for v in pair)
        lines.append(colons(*random.normal(0, (0.045, 0.084, 0.01)), 0.0, 0.0, 1.0, 0.0, 0.0, count, *pairs))
    write(folder / "vertices.txt", lines)
    corners = min(vertices, 544)
    write(folder / "triangles.txt", [colons(*random.choice(corners, 3, replace=False)) for _ in range(triangles)])


def write_hand(path, vertices, count, complicated):
    if not exists(path.parent / "model" / "vertices.txt"):
        write_hand_model(path.parent / "model", vertices)
    random = randomness(path.parent / (path.parent.name + path.name))
    used = 1084 if complicated else vertices
    lines = [f"{count} 26"]
    lines += [f"{c} {p[0]:.6f} {p[1]:.6f} {p[2]:.6f}" for c, p in zip(random.integers(used, size=count), random.normal(0.5, 0.4, (count, 3)))]
    if complicated:
        lines += rows(random.uniform(0, 0.5, (count, 2)))
    write(path, lines + rows(random.normal(0, 1, (26, 1))))


def read_hand(path, complicated):
    model = path.parent / "model"
    fields = [line.split(":") for line in text(model / "bones.txt").split("\n") if line.count(":") >= 33]
    parent = np.array([int(f[1]) for f in fields], dtype=np.int64)
    base, inverse = (np.array([f[a:b] for f in fields], dtype=float).reshape(-1, 4, 4) for a, b in ((2, 18), (18, 34)))
    fields = [line.split(":") for line in text(model / "vertices.txt").split("\n") if line.count(":") >= 8]
    rest = np.array([[*map(float, f[:3]), 1.0] for f in fields])
    weight = np.zeros((len(fields), len(parent)))
    for v, f in enumerate(fields):
        for k in range(int(f[8])):
            weight[v, int(f[9 + 2 * k])] = float(f[10 + 2 * k])
    triangles = np.array([line.split(":") for line in text(model / "triangles.txt").split()], dtype=np.int64)
    words = tokens(path)
    numbers = Taker(np.array(words[2:], dtype=np.float64))
    points = numbers.take(int(words[0]), 4)
    inputs = {"theta": None, "parent": parent, "base": base, "inverse": inverse, "rest": rest, "weight": weight}
    corr = points[:, 0].astype(np.int64)
    if complicated:
        inputs = {"us": numbers.take(len(points), 2), **inputs, "triangles": triangles}
    inputs.update(theta=numbers.take(26), corr=corr, points=np.ascontiguousarray(points[:, 1:]))
    return inputs


def hand(folder, kind, file, vertices, count):
    path = folder / "hand" / kind / f"{file}.txt"
    complicated = kind.startswith("complicated")
    ensure(path, lambda: write_hand(path, vertices, count, complicated))
    return read_hand(path, complicated)
