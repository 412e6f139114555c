"""Runs the benchmarks: every system on the same data in the same run, by turns; checks that the results agree; writes a
table, the rows as JSON and plots. `bench/run --help` lists the options."""

import argparse
import fnmatch
import importlib.util
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np

import published
import report
from systems import IVERSON, Failed, Worker

BENCH = Path(__file__).resolve().parent.parent
TARGET = BENCH.parent / "target"
ORDER = "gmm ba lstm hand trmv mlp dot max add scale nnmf ba_projection matmul convolution softmax kmeans nbody stencil".split()
# Seconds after which the calls of one function are enough, once there are three.
SLOW_S = 6
SYSTEMS = ["c", "jax", "jax_loop", "casadi", "numpy", "numpy_zeroed", "torch"]


def problems():
    variants = sorted(path.name for path in (BENCH / "variants").iterdir() if path.is_dir())
    for name in [*ORDER, *(f"variants/{v}" for v in variants)]:
        path = BENCH / name / "problem.py"
        if path.exists():
            spec = importlib.util.spec_from_file_location(f"problem_{name.replace('/', '_')}", path)
            problem = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(problem)
            yield name, problem


def systems_of(folder, options):
    there = lambda s: (folder / (f"{folder.name}.c" if s == "c" else f"peer_{s}.py")).exists()
    chosen = [s for s in SYSTEMS if there(s) and (s != "torch" or "torch" in options.also)]
    if options.systems:
        chosen = [s for s in chosen if s in options.systems]
    return ["iverson", *(f"iverson without {p}" for p in options.without), *chosen]


def entries(problem, leaves):
    """What of a derivative is compared: its floats, but for the value that comes with them."""
    if hasattr(problem, "entries"):
        return problem.entries(leaves)
    return [leaf for leaf in leaves if leaf.dtype.kind == "f" and leaf.ndim > 0]


def marks(arrays):
    """Sum, sum of magnitudes and sum of squares."""
    flat = np.concatenate([np.asarray(a, dtype=float).ravel() for a in arrays])
    return flat.sum(), np.abs(flat).sum(), (flat * flat).sum(), flat.size


def agree(a, b):
    """To 1e-9: sums relative to the magnitudes that are summed."""
    close = lambda x, y, scale: abs(x - y) <= 1e-9 * max(scale, 1e-300)
    return a[3] == b[3] and close(a[0], b[0], max(a[1], b[1])) and close(a[2], b[2], max(a[2], b[2]))


class Measured:
    """A system on an instance."""

    def __init__(self, system):
        self.system, self.workers, self.times, self.first = system, {}, {}, {}
        self.failure, self.marks, self.peak_mb, self.compile_ms = None, None, None, None

    def start(self, problem, instance, folder, data, scratch, threads):
        try:
            for work in ("objective", "derivative"):
                worker = self.workers[work] = Worker(self.system, problem, instance, folder, data, work, scratch, threads)
                self.first[work] = worker.time(1)[0]
                if self.first[work] < 1e3 * SLOW_S:
                    # The first call finds memory that nobody has touched.
                    self.first[work] = worker.time(1)[0]
                self.times[work] = []
            self.compile_ms = self.workers["derivative"].ready_ms
            self.peak_mb = self.workers["derivative"].peak()
        except Failed as failed:
            self.give_up(failed)

    def round(self, seconds, clock):
        try:
            for work, worker in self.workers.items():
                usual = min([self.first[work], *self.times[work]])
                # What is very slow is known well enough after a few calls.
                if sum(self.times[work]) > SLOW_S * 1e3 and len(self.times[work]) >= 3:
                    continue
                count = int(np.clip(1e3 * seconds / max(usual, 1e-3), 1, 500))
                self.times[work] += worker.time(count, clock)
        except Failed as failed:
            self.give_up(failed)

    def finish(self, problem):
        if self.failure is None:
            try:
                found = {work: worker.finish() for work, worker in self.workers.items()}
                self.marks = marks(found["objective"]), marks(entries(problem, found["derivative"]))
            except Failed as failed:
                self.give_up(failed)

    def give_up(self, failed):
        self.failure = str(failed)
        for worker in self.workers.values():
            worker.stop()
        self.workers = {}

    def row(self, problem, instance, threads, reference):
        median = lambda work: None if self.failure else statistics.median(self.times[work])
        agrees = None if self.failure or reference is None else all(agree(a, b) for a, b in zip(self.marks, reference))
        return {
            "problem": problem,
            "instance": instance,
            "system": self.system,
            "threads": threads,
            "objective_ms": median("objective"),
            "derivative_ms": median("derivative"),
            "compile_ms": self.compile_ms,
            "peak_mb": self.peak_mb,
            "agrees": agrees,
        }


def measure(name, problem, instance, inputs, threads, options):
    folder = BENCH / name
    with tempfile.TemporaryDirectory(prefix="iverson-bench-") as scratch:
        scratch = Path(scratch)
        data = scratch / "data.npz"
        np.savez(data, **inputs)
        measured = [Measured(system) for system in systems_of(folder, options)]
        for m in measured:
            m.start(problem, instance, folder, data, scratch, threads)
        for _ in range(options.rounds):
            for m in measured:
                m.round(options.seconds, options.clock)
        for m in measured:
            m.finish(problem)
    # Iverson is compared with what is not Iverson, and the others with that as well.
    others = [m for m in measured if not m.system.startswith("iverson") and not m.failure]
    reference = next((m.marks for m in [*others, *measured] if not m.failure), None)
    for m in measured:
        if m.failure:
            print(f"{name} {instance}: {m.system} failed:\n{m.failure[-2000:]}", file=sys.stderr)
    return [m.row(name, instance, threads, reference) for m in measured]


def wanted(pattern, name, instance):
    """`gmm`, `gmm/1k_*`, `d64`: a pattern for problem/instance, or a part of it."""
    both = f"{name}/{instance}"
    return any(fnmatch.fnmatch(both, p) or fnmatch.fnmatch(name, p) or p in both for p in pattern.split(",")) if pattern else True


def arguments():
    parser = argparse.ArgumentParser(prog="bench/run", description="Time Iverson beside other systems.")
    parser.add_argument("--only", default="", metavar="PATTERN", help="problems or instances: gmm, 'gmm/1k_*', ba10; several with commas")
    parser.add_argument("--data", type=Path, metavar="DIR", help="the published files (default: files made like them, in target/bench-data)")
    parser.add_argument("--threads", type=int, metavar="N", help="so many threads (default: one, then all)")
    parser.add_argument("--quick", action="store_true", help="small instances, few rounds, one thread unless --threads says otherwise")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows here, too")
    parser.add_argument("--without", nargs="+", default=[], metavar="PASS", help="Iverson without a pass, beside itself; a,b leaves out both")
    parser.add_argument("--systems", nargs="+", metavar="SYSTEM", help=f"only these beside Iverson: {', '.join(SYSTEMS)}")
    parser.add_argument("--also", nargs="+", default=[], choices=["torch"], help="systems that are large to install")
    parser.add_argument("--rounds", type=int, metavar="N", help="how often all systems have a turn (default: 7)")
    clocks = "time that passes, or that the processors work: for a machine that has other things to do (one thread only)"
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall", help=clocks)
    parser.add_argument("--out", type=Path, default=TARGET / "bench-results", metavar="DIR", help="where table and plots go")
    options = parser.parse_args()
    if options.clock == "cpu" and options.threads != 1 and not options.quick:
        parser.error("--clock cpu needs --threads 1")
    published.MAKES = options.data is None
    options.data = options.data or TARGET / "bench-data"
    options.rounds = options.rounds or (3 if options.quick else 7)
    options.seconds = 0.03 if options.quick else 0.2
    return options


def main():
    options = arguments()
    everything = len(os.sched_getaffinity(0))
    threads = [options.threads] if options.threads else [1] if options.quick else sorted({1, everything})
    rows = []
    print("\n".join(report.HEAD), flush=True)
    for count in threads:
        for name, problem in problems():
            for instance in problem.INSTANCES:
                if options.quick and instance not in problem.QUICK or not wanted(options.only, name, instance):
                    continue
                try:
                    inputs = problem.inputs(instance, options.data)
                except FileNotFoundError as missing:
                    sys.exit(str(missing))
                new = measure(name, problem, instance, inputs, count, options)
                print("\n".join(report.lines(new)), flush=True)
                rows += new
    report.write(options.out, rows, "bench/run " + " ".join(sys.argv[1:]))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    wrong = [r for r in rows if not r["agrees"]]
    if not rows:
        sys.exit(f"no instance is called `{options.only}`")
    if wrong:
        sys.exit("not done, or with another result: " + ", ".join(f"{r['problem']} {r['instance']} {r['system']}" for r in wrong))


if not IVERSON.exists():
    sys.exit(f"there is no {IVERSON}: run `cargo build --release`")
main()
