"""Times a NumPy peer: numpy_peer.py FOLDER RUNS DATA.npz OUTPUT, one thread unless the environment says otherwise."""

import importlib.util
import json
import sys
import time

import numpy as np


def median_ms(call, runs):
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1e3)
    return sorted(times)[runs // 2]


def main():
    folder, runs, data, output = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
    spec = importlib.util.spec_from_file_location("peer", f"{folder}/peer.py")
    peer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(peer)
    arguments = dict(np.load(data))
    objective_ms = median_ms(lambda: peer.objective(**arguments), runs)
    derivative_ms = median_ms(lambda: peer.gradient(**arguments), runs)
    np.concatenate([g.ravel() for g in peer.gradient(**arguments)]).tofile(output)
    print(json.dumps({"objective_ms": objective_ms, "derivative_ms": derivative_ms, "value": peer.objective(**arguments)}))


main()
