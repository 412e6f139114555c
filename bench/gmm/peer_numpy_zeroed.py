"""As `peer_numpy.py`, but components whose share of a point is next to nothing have none: no denormal numbers arise."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from peer_numpy import functions as plain


def functions(inputs):
    return plain(inputs, tiny=1e-100)
