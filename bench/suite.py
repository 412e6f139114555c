"""Runs the benchmarks: each problem in Iverson, in C by hand and in NumPy by hand, interleaved in one run on the same
data; checks that the results agree and prints the medians and their ratios. `bench/run --help` lists the options."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
IVERSON = ROOT / "target" / "release" / "iverson"

# problem -> instances: name -> parameters and their shapes; runs per round
PROBLEMS = {
    "dot": {"n1e7": ({"x": (10_000_000,), "y": (10_000_000,)}, 11), "n1e4": ({"x": (10_000,), "y": (10_000,)}, 201)},
    "matmul": {
        "n512": ({"A": (512, 512), "B": (512, 512)}, 7),
        "n64": ({"A": (64, 64), "B": (64, 64)}, 201),
    },
}


def command(arguments, threads):
    environment = dict(os.environ, OPENBLAS_NUM_THREADS=str(threads), OMP_NUM_THREADS=str(threads))
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(str(a) for a in arguments)}\n{done.stderr}")
    return json.loads(done.stdout)


def iverson(folder, problem, data, runs, output, threads, names):
    base = [IVERSON, "bench", folder / f"{problem}.iv", problem, "--data", data, "--runs", runs, "--threads", threads, "--json"]
    objective = command(base, threads)
    derivative = command(base + ["--derivative", "grad"], threads)
    result = data.with_name("iverson.npz")
    subprocess.run([IVERSON, "grad", folder / f"{problem}.iv", problem, "--data", data, "--out", result], check=True)
    gradient = np.load(result)
    np.concatenate([gradient[n].ravel() for n in names]).tofile(output)
    value = command([IVERSON, "run", folder / f"{problem}.iv", problem, "--data", data, "--json"], threads)
    return {
        "objective_ms": objective["median_ms"],
        "derivative_ms": derivative["median_ms"],
        "compile_ms": derivative.get("compile_ms"),
        "peak_mb": derivative["peak_memory_bytes"] / 1e6 if "peak_memory_bytes" in derivative else None,
        "value": value,
    }


def c_baseline(folder, problem, work, runs, output, threads, arrays):
    program = work / problem
    if not program.exists():
        flags = "-O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp".split()
        subprocess.run([os.environ.get("CC", "cc"), *flags, folder / f"{problem}.c", "-o", program], check=True)
    inputs = []
    for name, array in arrays.items():
        path = work / f"{name}.raw"
        array.tofile(path)
        inputs += [path, array.size]
    return command([program, runs, output, len(arrays), *inputs], threads)


def agree(values, gradients):
    """Value, sum and sum of squares to 1e-9 relative."""

    def close(a, b):
        return abs(a - b) <= 1e-9 * max(abs(a), abs(b), 1e-300)

    first = next(iter(gradients.values()))
    scale = np.abs(first).sum()
    return all(close(v, next(iter(values.values()))) for v in values.values()) and all(
        abs(g.sum() - first.sum()) <= 1e-9 * scale and close((g * g).sum(), (first * first).sum()) for g in gradients.values()
    )


def run(problem, instance, shapes, runs, rounds, threads):
    folder = HERE / problem
    random = np.random.default_rng(0)
    arrays = {name: random.uniform(-1.0, 1.0, shape) for name, shape in shapes.items()}
    rows = {}
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        data = work / "data.npz"
        np.savez(data, **arrays)
        systems = {"iverson": lambda out: iverson(folder, problem, data, runs, out, threads, list(arrays))}
        if (folder / f"{problem}.c").exists():
            systems["c"] = lambda out: c_baseline(folder, problem, work, runs, out, threads, arrays)
        systems["numpy"] = lambda out: command([sys.executable, HERE / "numpy_peer.py", folder, runs, data, out], threads)
        measured = {name: [] for name in systems}
        for _ in range(rounds):
            for name, measure in systems.items():
                measured[name].append(measure(work / f"{name}.gradient"))
        gradients = {name: np.fromfile(work / f"{name}.gradient") for name in systems}
        agrees = agree({name: m[-1]["value"] for name, m in measured.items()}, gradients)
    for name, samples in measured.items():
        median = lambda key: statistics.median(s[key] for s in samples) if samples[0].get(key) is not None else None
        rows[name] = {
            "problem": problem,
            "instance": instance,
            "system": name,
            "threads": threads,
            "objective_ms": median("objective_ms"),
            "derivative_ms": median("derivative_ms"),
            "compile_ms": samples[0].get("compile_ms"),
            "peak_mb": median("peak_mb"),
            "agrees": agrees,
        }
    return rows


def main():
    parser = argparse.ArgumentParser(prog="bench/run", description="Time Iverson beside C and NumPy written by hand.")
    parser.add_argument("--only", default="", help="run problems whose name contains this")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="one round instead of three")
    parser.add_argument("--json", help="write the rows to this file")
    options = parser.parse_args()
    every = []
    print(f"| problem | system | objective ms | derivative ms | Iverson / system | agrees |\n|---|---|---|---|---|---|")
    for problem, instances in PROBLEMS.items():
        for instance, (shapes, runs) in instances.items():
            if options.only not in f"{problem} {instance}":
                continue
            rows = run(problem, instance, shapes, runs, 1 if options.quick else 3, options.threads)
            ours = rows["iverson"]["derivative_ms"]
            for row in rows.values():
                ratio = ours / row["derivative_ms"]
                print(
                    f"| {problem} {instance} | {row['system']} | {row['objective_ms']:.3f} | {row['derivative_ms']:.3f} "
                    f"| {ratio:.2f} | {'yes' if row['agrees'] else 'NO'} |",
                    flush=True,
                )
            every += rows.values()
    if options.json:
        Path(options.json).write_text(json.dumps(every, indent=1) + "\n")
    if not all(row["agrees"] for row in every):
        sys.exit("the systems disagree")


main()
