"""Plots of rows as SVG: a line for each instance, a dot for each system, on a logarithmic axis."""

import math
from html import escape

COLOURS = {"iverson": "#c2185b", "c": "#555555", "jax": "#1976d2", "jax_loop": "#64b5f6", "casadi": "#2e7d32", "numpy": "#ef6c00", "numpy_zeroed": "#ffb74d", "torch": "#7b1fa2"}
TITLES = {
    "derivative_ms": "time of the derivative, over the best peer's",
    "objective_ms": "time of the objective, over the best peer's",
    "peak_mb": "peak memory over the inputs, over the best peer's",
    "compile_ms": "time to compile the derivative, over the best peer's",
}
LEFT, RIGHT, TOP, STEP, WIDTH = 220, 30, 64, 20, 860


def colour(system):
    return COLOURS.get(system, COLOURS["iverson"] if system.startswith("iverson") else "#999999")


def ratios(groups, what, is_peer):
    """Each system's number over the least of the peers'. `groups` are the rows of each instance."""
    points = []
    for rows in groups:
        known = [(r["system"], r[what]) for r in rows if r[what]]
        best = min((v for s, v in known if is_peer({"system": s})), default=None)
        if best:
            points.append((f"{rows[0]['problem']} {rows[0]['instance']}", [(s, v / best, v) for s, v in known]))
    every = [ratio for _, dots in points for _, ratio, _ in dots] or [1.0]
    low, high = math.floor(math.log10(min(every)) * 2 - 0.2) / 2, math.ceil(math.log10(max(every)) * 2 + 0.2) / 2
    height = TOP + STEP * len(points) + 40
    across = lambda ratio: LEFT + (math.log10(ratio) - low) / max(high - low, 1e-9) * (WIDTH - LEFT - RIGHT)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="20" font-size="14">{escape(TITLES[what])}</text>',
    ]
    systems = list(dict.fromkeys(s for _, dots in points for s, _, _ in dots))
    x = LEFT
    for system in systems:
        out.append(f'<circle cx="{x + 5}" cy="38" r="5" fill="{colour(system)}"/><text x="{x + 14}" y="42">{escape(system)}</text>')
        x += 28 + 7 * len(system)
    bottom = TOP + STEP * len(points)
    for decade in range(math.floor(low), math.ceil(high) + 1):
        for digit in (1, 2, 5):
            ratio = digit * 10.0**decade
            if not low <= math.log10(ratio) <= high:
                continue
            stroke = "#444444" if ratio == 1 else "#dddddd"
            out.append(f'<line x1="{across(ratio):.1f}" y1="{TOP - 8}" x2="{across(ratio):.1f}" y2="{bottom}" stroke="{stroke}"/>')
            out.append(f'<text x="{across(ratio):.1f}" y="{bottom + 16}" text-anchor="middle" fill="#444444">{ratio:g}</text>')
    for k, (name, dots) in enumerate(points):
        y = TOP + STEP * k + 6
        out.append(f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{escape(name)}</text>')
        # Iverson is drawn last, over the others.
        for system, ratio, value in sorted(dots, key=lambda dot: dot[0].startswith("iverson")):
            hollow = ' fill-opacity="0.15" stroke="#c2185b"' if system.startswith("iverson ") else ""
            title = f"<title>{escape(system)}: {value:.4g}</title>"
            out.append(f'<circle cx="{across(ratio):.1f}" cy="{y}" r="5" fill="{colour(system)}"{hollow}>{title}</circle>')
    return "\n".join([*out, "</svg>"]) + "\n"
