# SPDX-License-Identifier: BSD-3-Clause
"""Rearranges pictures of several mechanisms by view::svg, from side by side to one column, for narrow screens."""

import re
from pathlib import Path

PANEL = re.compile(r'<g data-size="([\d.]+) ([\d.]+)" transform="translate\(([\d.]+) ([\d.]+)\)">')
MARGIN, BETWEEN, LEGEND = 24, 40, 34  # as in view/svg.hpp


def width_of(svg: str) -> int:
    found = re.search(r'''<svg [^>]*?width=["'](\d+)''', svg)
    return int(found.group(1)) if found else 0


def width_of_file(file: Path) -> int:
    data = file.read_bytes()
    return int.from_bytes(data[16:20], "big") if data.startswith(b"\x89PNG") else width_of(data.decode("utf-8"))


def stacked(svg: str) -> str | None:
    """The panels of a picture in one column; None if they already are, or if the picture has no panels."""
    panels = PANEL.findall(svg)
    if len({x for _, _, x, _ in panels}) < 2:
        return None
    y, width = float(MARGIN), 235.0

    def place(match) -> str:
        nonlocal y, width
        at = y
        y += float(match.group(2)) + BETWEEN
        width = max(width, float(match.group(1)))
        return f'<g transform="translate({MARGIN} {at:g})">'

    svg = PANEL.sub(place, svg)
    y += LEGEND - BETWEEN
    svg = re.sub(r'(<g class="legend" transform="translate\([\d.]+ )[\d.]+', lambda m: f"{m.group(1)}{y - 12:g}", svg)
    wide, high = f"{width + 2 * MARGIN:g}", f"{y + MARGIN:g}"
    size = f'width="{wide}" height="{high}" viewBox="0 0 {wide} {high}"'
    return re.sub(r'width="[\d.]+" height="[\d.]+" viewBox="[^"]*"', size, svg, count=1)
