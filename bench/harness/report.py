"""Rows as a table in Markdown, as JSON, and as plots."""

import json
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
    (folder / "table.md").write_text("\n".join([f"`{command.strip()}` on {machine()}:", "", *HEAD, *table]) + "\n")
    for threads in sorted({r["threads"] for r in rows}):
        chosen = [group for (_, _, count), group in groups(rows).items() if count == threads]
        for what in ("derivative_ms", "objective_ms", "peak_mb", "compile_ms"):
            name = what.rsplit("_", 1)[0]
            (folder / f"{name}-{threads}.svg").write_text(ratios(chosen, what, is_peer))
