"""Data for problems that have no published files: random numbers from a seed that is the problem's name."""

import zlib

import numpy as np


def uniform(name, low=-1.0, high=1.0, **shapes):
    """Arrays of these shapes."""
    random = np.random.default_rng(zlib.crc32(name.encode()))
    return {key: random.uniform(low, high, shape) for key, shape in shapes.items()}
