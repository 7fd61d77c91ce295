#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what bench/tpt.py --json found: one SVG for each of reads and writes, a panel for each
chunk size, TPT and Baseline as lines over the request size.

    bench/plot.py RESULTS.json FOLDER
"""
import json
import math
import pathlib
import sys

from rounds import size_text

WIDTH, HEIGHT, MARGIN, GAP = 260, 180, 44, 56
COLOURS = {"TPT": "#1b6ca8", "Baseline": "#c8553d"}
FIGURES = {
    "throughput": ("mib_per_second", "MiB/s"),
    "controller-cpu": ("cpu_per_gib", "controller CPU, s per GiB"),
}


def text(x, y, words, anchor="middle", size=11, colour="#333"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
            f'fill="{colour}">{words}</text>')


def line(points, colour, width=1.8):
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (f'<polyline points="{path}" fill="none" stroke="{colour}" '
            f'stroke-width="{width}"/>')


def round_up(value):
    """To one, two or five times a power of ten."""
    power = 10 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)


class Panel:
    def __init__(self, left, sizes, top_value):
        self.left = left
        self.sizes = sizes
        self.top_value = top_value

    def x(self, size):
        along = self.sizes.index(size) / max(len(self.sizes) - 1, 1)
        return self.left + along * WIDTH

    def y(self, value):
        return MARGIN + HEIGHT * (1 - value / self.top_value)

    def frame(self, title):
        parts = [line([(self.left, MARGIN), (self.left, MARGIN + HEIGHT),
                       (self.left + WIDTH, MARGIN + HEIGHT)], "#888", 1),
                 text(self.left + WIDTH / 2, MARGIN - 12, title, size=12)]
        for share in (0, 0.5, 1):
            value = share * self.top_value
            parts.append(text(self.left - 6, self.y(value) + 4, f"{value:g}", "end"))
            parts.append(line([(self.left, self.y(value)), (self.left + WIDTH, self.y(value))],
                              "#ddd", 0.6))
        for size in self.sizes:
            parts.append(text(self.x(size), MARGIN + HEIGHT + 16, size_text(size)))
        return parts

    def curve(self, name, cells):
        points = [(self.x(cell["size"]), self.y(cell["median"])) for cell in cells]
        bars = [line([(self.x(cell["size"]), self.y(cell["low"])),
                      (self.x(cell["size"]), self.y(cell["high"]))], COLOURS[name], 1)
                for cell in cells]
        return [line(points, COLOURS[name]), *bars]


def draw(cells, operation, key, unit):
    wanted = [cell for cell in cells if cell["operation"] == operation]
    chunks = sorted({cell["chunk"] for cell in wanted})
    sizes = sorted({cell["size"] for cell in wanted})
    top_value = round_up(max(cell[key]["high"] for cell in wanted) or 1)
    width = MARGIN + len(chunks) * (WIDTH + GAP)
    parts = []
    for index, chunk in enumerate(chunks):
        panel = Panel(MARGIN + 10 + index * (WIDTH + GAP), sizes, top_value)
        parts += panel.frame(f"{operation}, chunks of {size_text(chunk)}")
        for name in COLOURS:
            parts += panel.curve(name, sorted(
                ({"size": cell["size"], **cell[key]} for cell in wanted
                 if (cell["chunk"], cell["path"]) == (chunk, name)),
                key=lambda cell: cell["size"]))
    for index, (name, colour) in enumerate(COLOURS.items()):
        parts.append(text(MARGIN + 10 + index * 90, MARGIN + HEIGHT + 38, name, "start", 12,
                          colour))
    parts.append(text(MARGIN + 10 + 200, MARGIN + HEIGHT + 38, f"{unit}, over the request size",
                      "start", 12))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
            f'height="{2 * MARGIN + HEIGHT}" font-family="sans-serif">'
            f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n')


def main():
    cells = json.loads(pathlib.Path(sys.argv[1]).read_text())["cells"]
    folder = pathlib.Path(sys.argv[2])
    for operation in ("read", "write"):
        for figure, (key, unit) in FIGURES.items():
            path = folder / f"tpt-{operation}-{figure}.svg"
            path.write_text(draw(cells, operation, key, unit))
            print(path)


if __name__ == "__main__":
    main()
