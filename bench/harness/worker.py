"""One system working on one problem: worker.py SYSTEM FOLDER DATA.npz objective|derivative OUT.npz

Says {"ready_ms": ..} once code is made, then answers each line of stdin, a number of calls, with their milliseconds, as
`iverson bench --listen` does. When stdin ends the arrays of the last result go to OUT.npz."""

import ctypes
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
CACHE = HERE.parent.parent / "target" / "bench-c"
FLAGS = "-O3 -march=native -ffast-math -fopenmp -shared -fPIC -w".split()


def module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def leaves(result):
    """The arrays of a result, in order."""
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in leaves(part)]
    return [np.asarray(result)]


class Peer:
    """A peer in Python: `functions(inputs)` gives the objective and the derivative as calls without arguments."""

    def __init__(self, folder, system, inputs, work):
        start = time.perf_counter()
        peer = module(folder / f"peer_{system}.py")
        functions = peer.functions(inputs)
        self.call = functions[0] if work == "objective" else functions[1]
        self.ready_ms = 1e3 * (time.perf_counter() - start) if getattr(peer, "COMPILES", False) else None

    def time(self, count):
        times = []
        for _ in range(count):
            start = time.perf_counter()
            self.result = self.call()
            times.append(1e3 * (time.perf_counter() - start))
        return times

    def leaves(self):
        return leaves(self.result)


class Jax:
    """A peer in JAX: `functions(inputs)` gives objective, derivative and what both are called with."""

    def __init__(self, folder, system, inputs, work):
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        import jax

        jax.config.update("jax_enable_x64", True)
        objective, derivative, arguments = module(folder / f"peer_{system}.py").functions(inputs)
        self.arguments = [jax.numpy.asarray(a) for a in arguments]
        self.wait = jax.block_until_ready
        start = time.perf_counter()
        self.call = jax.jit(objective if work == "objective" else derivative).lower(*self.arguments).compile()
        self.ready_ms = 1e3 * (time.perf_counter() - start)

    def time(self, count):
        times = []
        for _ in range(count):
            start = time.perf_counter()
            self.result = self.wait(self.call(*self.arguments))
            times.append(1e3 * (time.perf_counter() - start))
        return times

    def leaves(self):
        return leaves(self.result)


class C:
    """A baseline in C: `objective` and `derivative` take sizes, inputs and outputs (baseline.h)."""

    def __init__(self, folder, system, inputs, work):
        source = folder / f"{folder.name}.c"
        problem = module(folder / "problem.py")
        library = ctypes.CDLL(str(compile_c(source)))
        self.ready_ms = None
        names = [name for name in getattr(problem, "C_INPUTS", inputs) if name in inputs]
        self.inputs = [np.ascontiguousarray(inputs[name]) for name in names]
        objective, derivative = problem.c_outputs(inputs)
        self.outputs = [np.empty(shape) if isinstance(shape, tuple) else shape for shape in (objective if work == "objective" else derivative)]
        sizes = problem.c_sizes(inputs)
        self.sizes = (ctypes.c_int64 * len(sizes))(*sizes)
        pointers = lambda arrays: (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        self.pointers = pointers(self.inputs), pointers(self.outputs)
        self.timed = getattr(library, f"time_{work}")
        self.timed.restype = None

    def time(self, count):
        times = (ctypes.c_double * count)()
        self.timed(self.sizes, *self.pointers, ctypes.c_int64(count), times)
        return list(times)

    def leaves(self):
        return self.outputs


def compile_c(source):
    """The shared library of a C file, kept by its text."""
    text = source.read_bytes() + b"".join(h.read_bytes() for h in sorted(HERE.glob("*.h"))) + " ".join(FLAGS).encode()
    library = CACHE / f"{source.stem}-{hashlib.sha256(text).hexdigest()[:16]}.so"
    if not library.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            made = Path(folder) / "made.so"
            compiler = os.environ.get("CC", "cc")
            subprocess.run([compiler, *FLAGS, f"-I{HERE}", str(source), "-o", str(made), "-lm"], check=True)
            made.rename(library)
    return library


def main():
    system, folder, data, work, out = sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5]
    inputs = dict(np.load(data))
    kind = C if system == "c" else Jax if system.startswith("jax") else Peer
    worker = kind(folder, system, inputs, work)
    ctypes.CDLL(None).malloc_trim(0)
    print(json.dumps({"ready_ms": worker.ready_ms}), flush=True)
    for line in sys.stdin:
        print(json.dumps(worker.time(int(line))), flush=True)
    np.savez(out, **{f"leaf_{k}": leaf for k, leaf in enumerate(worker.leaves())})


main()
