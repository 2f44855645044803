#!/usr/bin/env python3
"""usage: math_links.py PAGE... > SCRIPT   a sed script that makes every quoted heading of docs/math/ in a comment a link to it, with the
number of the section, and every number of an equation behind it, "Score" (2.15), a link to the equation.
PAGE: the pages math/*.html that Sphinx made, whose headings and equations have the anchors."""

import html
import pathlib
import re
import sys

HEADING = re.compile(r'<section id="([^"]+)">\s*(?:<span id="[^"]*"></span>\s*)*<h[1-6]>(.*?)<a class="headerlink"', re.DOTALL)
EQUATION = re.compile(r'<div class="equation[^"]*" id="(equation-[0-9-]+)">.*?class="number"[^>]*>\(([0-9.]+)\)</a>', re.DOTALL)
pages = [(pathlib.Path(path).name, pathlib.Path(path).read_text(encoding="utf-8")) for path in sys.argv[1:]]
for file, page in pages:
    for anchor, heading in HEADING.findall(page):
        text = html.unescape(re.sub(r"<[^>]+>", "", heading)).strip()
        name = re.sub(r"^[0-9.]+ +", "", text)
        name, text = (re.sub(r"([\\.*^$\[\]/&|])", r"\\\1", t) for t in (name, text))
        print(f's|^\\( *///.*\\)"{name}"|\\1<a href="../math/{file}#{anchor}">{text}</a>|g')
# Behind a heading (a link by now, or begun on the line before), "math:" or another equation, or first on its line.
before = r'^\( *///\( .*\([">)],\{0,1\}\|math[:,]\|and\)\)\{0,1\} \)'
for file, page in pages:
    for anchor, number in EQUATION.findall(page):
        escaped = number.replace(".", r"\.")
        print(f's!{before}({escaped})!\\1<a href="../math/{file}#{anchor}">({number})</a>!')
