# SPDX-License-Identifier: BSD-3-Clause
"""Line charts as SVG, in the style of include/heed_kit/view/chart.hpp."""

import html
import math

COLORS = [("#1c7ed6", "#74c0fc"), ("#e8590c", "#ffa94d"), ("#2b8a3e", "#8ce99a"), ("#9c36b5", "#e599f7"),
          ("#c2255c", "#faa2c1"), ("#0b7285", "#66d9e8"), ("#846200", "#ffe066"), ("#495057", "#ced4da")]
DASHES = ["", ' stroke-dasharray="7 4"', ' stroke-dasharray="2 4"']
STYLE = """.chart text { font: 13px 'DejaVu Sans', 'Noto Sans', system-ui, sans-serif; fill: #343a40; }
.chart .title { font-weight: 600; font-size: 15px; fill: #14181f; }
.chart .tick { font-size: 12px; fill: #5f6871; }
.chart .hit { opacity: 0; }
.chart .hit:hover { opacity: .55; }
@media (prefers-color-scheme: dark) {
.chart .paper { fill: #1a1b1e; }
.chart text { fill: #ced4da; }
.chart .title { fill: #f1f3f5; }
.chart .tick { fill: #a0a7af; }
.chart .grid { stroke: #2f3238; }
.chart .base { stroke: #868e96; }
"""
WIDTH, HEIGHT, MARGIN = 760, 420, 24


def ticks(low, high, most):
    """Multiples of 1, 2 or 5 times a power of ten, from the last at most `low` to the first at least `high`."""
    least = (high - low or 1) / most
    power = 10 ** math.floor(math.log10(least))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), max(math.ceil(high / step - 1e-9), math.floor(low / step + 1e-9) + 1)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return [(n * step, f"{n * step:,.{digits}f}".replace(",", "\u202f")) for n in range(first, last + 1)]


def line_chart(title, x_label, y_label, series, groups=None):
    """A line per name of `series`, through its points (x, y); with `groups`, x is the index of a group's name."""
    size = lambda text: 7.8 * len(text)
    text = lambda words, x, y, more="": f'<text x="{x:g}" y="{y:g}"{more}>{html.escape(words)}</text>\n'
    middle, tick = ' text-anchor="middle"', ' class="tick"'
    result, x, top = text(title, MARGIN, 32, ' class="title"'), MARGIN, 44
    strokes = [f'class="l{n % 8}" stroke="{COLORS[n % 8][0]}"{DASHES[n // 8 % 3]}' for n in range(len(series))]
    for name, stroke in zip(series, strokes):
        width = 44 + size(name)
        if x > MARGIN and x + width > WIDTH - MARGIN:
            x, top = MARGIN, top + 20
        result += f'<path d="M{x:g} {top + 7}h20" stroke-width="3" {stroke}/>\n' + text(name, x + 26, top + 11.5)
        x += width
    top += 52
    result += text(y_label, MARGIN, top - 11, tick)

    points = [point for line in series.values() for point in line]
    y_ticks = ticks(min(y for _, y in points), max(y for _, y in points), 7)
    x_ticks = [(n, name) for n, name in enumerate(groups)] if groups else ticks(min(0, *(x for x, _ in points)), max(x for x, _ in points), 8)
    left, right, bottom = MARGIN + max(size(name) for _, name in y_ticks) + 4, WIDTH - MARGIN - 6, HEIGHT - 60
    x_low, x_high = (-0.5, len(groups) - 0.5) if groups else (x_ticks[0][0], max(x for x, _ in points))
    across = lambda x: round(left + (x - x_low) / (x_high - x_low) * (right - left), 1)
    down = lambda y: round(bottom - (y - y_ticks[0][0]) / (y_ticks[-1][0] - y_ticks[0][0]) * (bottom - top), 1)
    for y, name in y_ticks:
        result += f'<path class="grid" stroke="#e9ecef" d="M{left:g} {round(down(y)) + 0.5}H{right}"/>\n'
        result += text(name, left - 8, down(y) + 4.5, ' text-anchor="end"' + tick)
    result += f'<path class="base" fill="none" stroke="#868e96" d="M{left:g} {bottom + 0.5}H{right}"/>\n'
    for x, name in x_ticks:
        if x <= x_high:
            result += text(name, across(x), bottom + 19, middle + tick)
    result += text(x_label, (left + right) / 2, HEIGHT - 16, middle + tick)

    hits = ""
    for n, ((name, line), stroke) in enumerate(zip(series.items(), strokes)):
        at = [(across(x), down(y)) for x, y in line]
        result += '<path fill="none" stroke-width="2" stroke-linejoin="round" stroke-linecap="round" '
        result += f'{stroke} d="M{"L".join(f"{x:g} {y:g}" for x, y in at)}"/>\n'
        for (x, y), (x_value, y_value) in zip(at, line):
            circle, fill = f'<circle cx="{x:g}" cy="{y:g}"', f'f{n % 8}" fill="{COLORS[n % 8][0]}"'
            result += f'{circle} r="3" class="{fill}/>\n' if len(line) <= 40 else ""
            where = groups[x_value] if groups else f"{x_value:g}"
            hits += f'{circle} r="7" class="hit {fill}><title>{html.escape(name)}: {y_value:.4g} at {where}</title></circle>\n'
    dark = "".join(f".chart .l{n} {{ stroke: {color}; }}\n.chart .f{n} {{ fill: {color}; }}\n" for n, (_, color) in enumerate(COLORS))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'role="img" aria-label="{html.escape(title)}">\n<style>\n{STYLE}{dark}}}\n</style>\n'
            f'<rect class="paper" width="100%" height="100%" fill="#ffffff"/>\n{result}{hits}</svg>\n')
