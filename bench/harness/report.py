"""Rows as a table in Markdown, as JSON, and as plots."""

import json
import os
import platform

from plot import ratios

HEAD = [
    "| problem | instance | threads | system | objective ms | derivative ms | ratio | Iverson / it | compile ms | peak MB | agrees |",
    "|---|---|---|---|---|---|---|---|---|---|---|",
]


def is_peer(row):
    """A system that others would use: neither Iverson nor code written by hand."""
    return row["system"] != "c" and not row["system"].startswith("iverson")


def number(value):
    """Three digits."""
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def lines(rows):
    """The rows of one instance at one number of threads. The best peer's time is bold."""
    timed = [r["derivative_ms"] for r in rows if is_peer(r) and r["derivative_ms"]]
    best = min(timed, default=None)
    ours = next((r["derivative_ms"] for r in rows if r["system"] == "iverson"), None)
    out = []
    for r in rows:
        derivative = number(r["derivative_ms"])
        if r["derivative_ms"] == best and is_peer(r):
            derivative = f"**{derivative}**"
        ratio = number(r["derivative_ms"] / r["objective_ms"]) if r["derivative_ms"] and r["objective_ms"] else ""
        beside = number(ours / r["derivative_ms"]) if ours and r["derivative_ms"] else ""
        agrees = "failed" if r["objective_ms"] is None else "yes" if r["agrees"] else "NO"
        cells = [r["problem"], r["instance"], r["threads"], r["system"], number(r["objective_ms"]), derivative, ratio, beside]
        cells += [number(r["compile_ms"]), number(r["peak_mb"]), agrees]
        out.append("| " + " | ".join(str(c) for c in cells) + " |")
    return out


def groups(rows):
    """The rows of each instance at each number of threads."""
    found = {}
    for row in rows:
        found.setdefault((row["problem"], row["instance"], row["threads"]), []).append(row)
    return found


SUMMARY = [
    "| problem | instance | threads | objective ms | derivative ms | best peer | its derivative ms | Iverson / it | Iverson / C "
    "| derivative / best objective | compile ms | peak MB |",
    "|---|---|---|---|---|---|---|---|---|---|---|---|",
]


def summary(rows):
    """A line for each instance: Iverson, the best peer, and how they compare. With more threads than one, times over those
    of one thread."""
    out, found = [], groups(rows)
    for (problem, instance, threads), group in found.items():
        ours = next((r for r in group if r["system"] == "iverson"), None)
        if not ours or not ours["derivative_ms"]:
            continue
        timed = [r for r in group if r["derivative_ms"]]
        best = min((r for r in timed if is_peer(r)), key=lambda r: r["derivative_ms"], default=None)
        by_hand = next((r for r in timed if r["system"] == "c"), None)
        over = lambda row: number(ours["derivative_ms"] / row["derivative_ms"]) if row else ""
        objective = min(r["objective_ms"] for r in timed)
        cells = [problem, instance, threads, number(ours["objective_ms"]), number(ours["derivative_ms"])]
        cells += [best["system"] if best else "", number(best["derivative_ms"]) if best else "", over(best), over(by_hand)]
        cells += [number(ours["derivative_ms"] / objective), number(ours["compile_ms"]), number(ours["peak_mb"])]
        single = next((r for r in found.get((problem, instance, 1), []) if r["system"] == "iverson"), None)
        if threads > 1 and single and single["derivative_ms"]:
            cells[4] += f" ({single['derivative_ms'] / ours['derivative_ms']:.2f}x)"
        out.append("| " + " | ".join(str(c) for c in cells) + " |")
    return out


def ablations(rows):
    """How many times as long a derivative takes without each of some passes: a line for each instance, a column for each pass."""
    prefix = "iverson without "
    passes = list(dict.fromkeys(r["system"].removeprefix(prefix) for r in rows if r["system"].startswith(prefix)))
    if not passes:
        return []
    titles = [name.replace(",", ", ") for name in passes]
    out = ["| problem | instance | threads | derivative ms | " + " | ".join(titles) + " |", "|---" * (4 + len(passes)) + "|"]
    for (problem, instance, threads), group in groups(rows).items():
        times = {r["system"]: r["derivative_ms"] for r in group}
        ours = times.get("iverson")
        if not ours:
            continue
        slower = lambda name: number(times[prefix + name] / ours) if times.get(prefix + name) else "failed"
        out.append("| " + " | ".join([problem, instance, str(threads), number(ours), *map(slower, passes)]) + " |")
    return out


def machine():
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as text:
            name = next(line.split(":")[1].strip() for line in text if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return name


def write(folder, rows, command):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rows.json").write_text(json.dumps(rows, indent=1) + "\n")
    table = [line for group in groups(rows).values() for line in lines(group)]
    said = f"`{command.strip()}` on {len(os.sched_getaffinity(0))} processors of {machine()}:"
    (folder / "table.md").write_text("\n".join([said, "", *HEAD, *table]) + "\n")
    (folder / "summary.md").write_text("\n".join([said, "", *SUMMARY, *summary(rows)]) + "\n")
    without = ablations(rows)
    if without:
        (folder / "ablations.md").write_text("\n".join([said, "", *without]) + "\n")
    for old in folder.glob("*.svg"):
        old.unlink()
    for threads in sorted({r["threads"] for r in rows}):
        chosen = [group for (_, _, count), group in groups(rows).items() if count == threads]
        for what in ("derivative_ms", "objective_ms", "peak_mb", "compile_ms"):
            name = what.rsplit("_", 1)[0]
            (folder / f"{name}-{threads}.svg").write_text(ratios(chosen, what, is_peer))
