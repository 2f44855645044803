#!/usr/bin/env python3
"""usage: math_links.py MATH_HTML > SCRIPT   a sed script that makes every quoted heading of docs/math.md in a comment a link to it,
with the number of the section.
MATH_HTML: the page that Sphinx made, whose headings have the anchors."""

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
