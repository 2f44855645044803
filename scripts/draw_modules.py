#!/usr/bin/env python3
"""Draws the modules of include/sheafnn and which includes which, from the #include lines of the headers.

usage: draw_modules.py [--root DIR] [--svg FILE] [--table]

--svg FILE   the picture: one box per module with its number of headers, an arrow from a module to each module it includes
             (arrows that follow from others are left out)
--table      a Markdown table: headers, median and maximum of their lines, modules included
"""
import argparse
import pathlib
import re
import statistics
import sys

from dark_scheme import with_dark_scheme


def modules_of(root):
    """Lines of every header and included modules, by module."""
    base = pathlib.Path(root) / "include" / "sheafnn"
    lines, includes = {}, {}
    for header in sorted(base.rglob("*.hpp")):
        parts = header.relative_to(base).parts
        if len(parts) == 1:
            continue  # umbrella headers
        module = parts[0]
        text = header.read_text(encoding="utf-8")
        lines.setdefault(module, []).append(text.count("\n"))
        found = set(re.findall(r'#include "sheafnn/(\w+)/', text)) - {module}
        includes.setdefault(module, set()).update(found)
    return lines, includes


def reachable(includes, start):
    seen, stack = set(), list(includes[start])
    while stack:
        module = stack.pop()
        if module not in seen:
            seen.add(module)
            stack.extend(includes.get(module, ()))
    return seen


def levels_of(includes):
    """Modules from the ground up: a module stands above all it includes."""
    level = {}
    while len(level) < len(includes):
        ready = [r for r in includes if r not in level and all(i in level for i in includes[r])]
        if not ready:
            sys.exit("draw_modules.py: modules include each other in a circle: " +
                     ", ".join(sorted(r for r in includes if r not in level)))
        for module in ready:
            level[module] = 1 + max((level[i] for i in includes[module]), default=-1)
    return level


def draw(lines, includes):
    level = levels_of(includes)
    for module in sorted(level, key=lambda r: -level[r]):  # each right below what includes it
        level[module] = min((level[r] for r in includes if module in includes[r]), default=level[module] + 1) - 1
    direct = {r: {i for i in includes[r] if not any(i in reachable(includes, j) for j in includes[r] if j != i)}
              for r in includes}
    height, width, gap = 46, 150, 44
    rows = [sorted(r for r in level if level[r] == k) for k in range(max(level.values()) + 1)]
    columns = max(len(row) for row in rows)
    total = columns * (width + gap) + gap
    place = {}
    for k, row in enumerate(rows):
        left = (total - len(row) * (width + gap) + gap) / 2
        for i, module in enumerate(row):
            place[module] = (left + i * (width + gap), gap + (len(rows) - 1 - k) * (height + gap))
    bottom = gap + len(rows) * (height + gap)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {bottom}" font-family="sans-serif">',
           '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
           '<path d="M0,0 L8,4 L0,8 z" fill="#456"/></marker></defs>',
           f'<rect width="{total}" height="{bottom}" fill="white"/>']
    for module in sorted(direct):
        x, y = place[module]
        for other in sorted(direct[module]):
            u, v = place[other]
            out.append(f'<path d="M{x + width / 2},{y + height} C{x + width / 2},{y + height + gap / 2} '
                       f'{u + width / 2},{v - gap / 2} {u + width / 2},{v - 2}" fill="none" stroke="#456" '
                       'stroke-width="1.4" marker-end="url(#tip)"/>')
    for module in sorted(place):
        x, y = place[module]
        count = len(lines[module])
        out.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="#eef4fb" stroke="#456"/>'
                   f'<text x="{x + width / 2}" y="{y + 20}" text-anchor="middle" font-size="15">{module}</text>'
                   f'<text x="{x + width / 2}" y="{y + 37}" text-anchor="middle" font-size="11" fill="#567">'
                   f'{count} headers, {sum(lines[module])} lines</text>')
    out.append("</svg>\n")
    return "\n".join(out)


def table(lines, includes):
    level = levels_of(includes)
    rows = ["| folder | headers | median lines | maximum | includes |", "| --- | --- | --- | --- | --- |"]
    for module in sorted(lines, key=lambda r: (level[r], r)):
        rows.append(f"| `{module}/` | {len(lines[module])} | {statistics.median(lines[module]):.0f} | {max(lines[module])} | "
                    f"{', '.join(sorted(includes[module])) or '–'} |")
    every = [n for module in lines.values() for n in module]
    rows.append(f"| all | {len(every)} | {statistics.median(every):.0f} | {max(every)} | |")
    return "\n".join(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--svg")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    lines, includes = modules_of(options.root)
    if not lines:
        sys.exit(f"draw_modules.py: --root: {options.root} has no headers in include/sheafnn")
    if options.svg:
        pathlib.Path(options.svg).write_text(with_dark_scheme(draw(lines, includes)), encoding="utf-8")
    if options.table:
        print(table(lines, includes))


if __name__ == "__main__":
    main()
