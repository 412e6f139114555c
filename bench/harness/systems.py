"""Processes that work on a problem, one for each system and for objective and derivative; all are asked in the same way."""

import json
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
IVERSON = HERE.parent.parent / "target" / "release" / "iverson"
SLOWEST_COMPILE_S = 300
SLOWEST_CALLS_S = 300
SHORT_MS = 0.3


class Failed(Exception):
    """A system that does not do its work."""


def environment(threads, cache):
    env = dict(os.environ, IVERSON_CACHE=str(cache), JAX_PLATFORMS="cpu", JAX_ENABLE_X64="1")
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        env[name] = str(threads)
    if threads == 1:
        env["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    return env


def processors(threads):
    """The last ones: the first have the most else to do."""
    return set(sorted(os.sched_getaffinity(0))[-threads:])


def iverson_command(problem, instance, folder, data, work, out, threads, without):
    command = [IVERSON, "bench", folder / problem.PROGRAM]
    words = problem.OBJECTIVE if work == "objective" else problem.DERIVATIVE
    command += words(instance) if callable(words) else words
    command += ["--data", data, "--listen", "--out", out, "--threads", threads]
    return command + (["--without", without] if without else [])


class Worker:
    def __init__(self, system, problem, instance, folder, data, work, scratch, threads):
        self.out = scratch / f"{system.replace(' ', '-')}-{work}.npz"
        self.cache = tempfile.TemporaryDirectory(dir=scratch)
        if system.startswith("iverson"):
            without = system.removeprefix("iverson").removeprefix(" without ")
            command = iverson_command(problem, instance, folder, data, work, self.out, threads, without)
        else:
            command = [sys.executable, HERE / "worker.py", system, folder, data, work, self.out]
        chosen = processors(threads)
        self.errors = tempfile.TemporaryFile(dir=scratch)
        self.process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=environment(threads, self.cache.name),
            preexec_fn=lambda: os.sched_setaffinity(0, chosen),
            text=True,
        )
        self.ready_ms = self.answer(SLOWEST_COMPILE_S)["ready_ms"]
        self.before = self.memory("VmRSS", fresh=True)

    def answer(self, seconds):
        """A line of JSON. The process writes one only when it is done, so there is never more than one to read."""
        waited, _, _ = select.select([self.process.stdout], [], [], seconds)
        line = self.process.stdout.readline() if waited else ""
        if not line:
            self.stop()
            raise Failed(self.complaint() if waited else f"nothing after {seconds} s")
        return json.loads(line)

    def complaint(self):
        """What it says on stderr."""
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace").strip()

    def time(self, count, clock="wall"):
        """Milliseconds of so many calls. By the processor's clock they are all the same: what it worked for them, without the
        time in which it worked for others. Short calls are seldom interrupted, and measured as ever."""
        before = self.worked() if clock == "cpu" else 0.0
        times = self.asked(count)
        if clock == "cpu" and sum(times) > SHORT_MS * count:
            return [(self.worked() - before) / count] * count
        return times

    def worked(self):
        """Milliseconds that processors have worked for the process."""
        total = 0
        for thread in (Path("/proc") / str(self.process.pid) / "task").iterdir():
            try:
                total += int((thread / "schedstat").read_text().split()[0])
            except OSError:
                pass
        return 1e-6 * total

    def asked(self, count):
        try:
            self.process.stdin.write(f"{count}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        return self.answer(SLOWEST_CALLS_S)

    def memory(self, what, fresh=False):
        """In MB; afresh, the most memory counts from here."""
        process = Path("/proc") / str(self.process.pid)
        try:
            if fresh:
                (process / "clear_refs").write_text("5")
            line = next(line for line in (process / "status").read_text().splitlines() if line.startswith(what))
            return int(line.split()[1]) * 1024 / 1e6
        except (OSError, StopIteration):
            return None

    def peak(self):
        """The most memory since the inputs were there and the code was made, over what was taken then; MB."""
        most = self.memory("VmHWM")
        return None if most is None or self.before is None else max(0.0, most - self.before)

    def finish(self):
        """Ends the work, and gives the arrays of the last result."""
        import numpy as np

        self.process.stdin.close()
        if self.process.wait() != 0 or not self.out.exists():
            raise Failed(self.complaint() or "no result")
        with np.load(self.out) as arrays:
            found = [arrays[name] for name in arrays.files]
        self.out.unlink()
        self.cache.cleanup()
        return found

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.cache.cleanup()
