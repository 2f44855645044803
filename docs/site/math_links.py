#!/usr/bin/env python3
"""usage: math_links.py MATH_HTML > SCRIPT   a sed script that makes every quoted heading of docs/math.md in a comment a link to it,
with the number of the section, and every number of an equation behind it, "Score" (2.15), a link to the equation.
MATH_HTML: the page that Sphinx made, whose headings and equations have the anchors."""

import html
import re
import sys

page = open(sys.argv[1], encoding="utf-8").read()
headings = re.findall(r'<section id="([^"]+)">\s*(?:<span id="[^"]*"></span>\s*)*<h[1-6]>(.*?)<a class="headerlink"', page, re.DOTALL)
for anchor, heading in headings:
    text = html.unescape(re.sub(r"<[^>]+>", "", heading)).strip()
    name = re.sub(r"^[0-9.]+ +", "", text)
    name, text = (re.sub(r"([\\.*^$\[\]/&|])", r"\\\1", t) for t in (name, text))
    print(f's|^\\( *///.*\\)"{name}"|\\1<a href="../math.html#{anchor}">{text}</a>|g')
equations = re.findall(r'<div class="equation[^"]*" id="(equation-[0-9-]+)">.*?class="number"[^>]*>\(([0-9.]+)\)</a>', page, re.DOTALL)
# Behind a heading (a link by now, or begun on the line before), "math:" or another equation, or first on its line.
before = r'^\( *///\( .*\([">)],\{0,1\}\|math[:,]\|and\)\)\{0,1\} \)'
for anchor, number in equations:
    escaped = number.replace(".", r"\.")
    print(f's!{before}({escaped})!\\1<a href="../math.html#{anchor}">({number})</a>!')
